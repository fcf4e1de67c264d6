package db_test

import (
	"fmt"
	"strings"
	"testing"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// TestImagesReadsLittleMoreThanItShows looks at how many rows a page of the gallery
// fetches, whatever is asked for, in a project whose test images come after a pool
// that is much like them. The plans are those that Postgres makes without looking at
// the arguments, as it does once a statement has been used a few times.
func TestImagesReadsLittleMoreThanItShows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := dbtest.URL(t)
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	s, err := db.Open(ctx, url+sep+"pool_max_conns=1&plan_cache_mode=force_generic_plan", db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	admin := dbtest.User(t, s, "admin")
	project := dbtest.Project(t, s, admin.ID, dbtest.Settings(), 3, 0).ID
	// Of the pool a third is known, and a third not decided; the same of the test images.
	for _, sql := range []string{
		fmt.Sprintf(`
			INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, split, created_at)
			SELECT %d, sha256(n::text::bytea), 'image/png', 32, 32, 3000, n::text,
			       CASE WHEN n <= 20000 THEN 'pool' ELSE 'test' END, now()
			FROM generate_series(1, 21000) n`, project),
		fmt.Sprintf(`
			WITH event AS (
				INSERT INTO label_events (project_id, image_id, kind, verdict, class, class_version, at)
				SELECT %d, id, 'import', CASE id %% 3 WHEN 0 THEN 'known' ELSE 'unknown' END, CASE id %% 3 WHEN 0 THEN id %% 2 END, 1, now()
				FROM images WHERE id %% 3 < 2
				RETURNING id, image_id, verdict, class)
			UPDATE images SET verdict = event.verdict, class = event.class, label_event_id = event.id
			FROM event WHERE images.id = event.image_id`, project),
		`VACUUM ANALYZE images`,
	} {
		if _, err := s.Pool().Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	fetched := func() (n int64) {
		if _, err := s.Pool().Exec(ctx, `SELECT pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		if err := s.Pool().QueryRow(ctx, `
			SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relname = 'images'`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	const page = 20
	for _, f := range []winnow.ImageFilter{
		{},
		{Split: winnow.SplitPool},
		{Split: winnow.SplitTest},
		{Verdict: "known"},
		{Verdict: winnow.Unlabeled},
		{Verdict: "unreadable"},
		{Class: new(int)},
		{Verdict: "unknown", Class: new(int)},
		{Split: winnow.SplitPool, Verdict: winnow.Unlabeled},
		{Split: winnow.SplitTest, Verdict: winnow.Unlabeled},
		{Split: winnow.SplitTest, Verdict: "known"},
		{Split: winnow.SplitTest, Verdict: "skip"},
		{Split: winnow.SplitTest, Class: new(int)},
		{Split: winnow.SplitTest, Verdict: "known", Class: new(int)},
	} {
		before := fetched()
		images, _, err := s.Images(ctx, project, f, winnow.Page{Limit: page})
		if err != nil {
			t.Fatal(err)
		}
		if n := fetched() - before; n > 5*page { // a third of the images in a row fits many filters
			t.Errorf("split %q, verdict %q, class asked for: %t: %d rows were read to show %d", f.Split, f.Verdict, f.Class != nil, n, len(images))
		}
	}
}
