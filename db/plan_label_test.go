package db_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// TestLabelingReadsLittle looks at how many rows the steps of labeling fetch, in a round of
// many items of which the first are answered and the next are held by others. The plans
// are those that Postgres makes without looking at the arguments, both before it has
// statistics of the round, as when it has just opened, and with them.
func TestLabelingReadsLittle(t *testing.T) {
	t.Parallel()
	for _, overlap := range []int{1, 3} {
		t.Run(fmt.Sprint("overlap ", overlap), func(t *testing.T) {
			t.Parallel()
			testLabelingReadsLittle(t, overlap)
		})
	}
}

func testLabelingReadsLittle(t *testing.T, overlap int) {
	const (
		items    = 5000
		answered = 500
		held     = 300
	)
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
	settings := dbtest.Settings()
	settings.Budget, settings.Overlap = items, overlap
	project := dbtest.Project(t, s, admin.ID, settings, 3, 0).ID
	exec := func(sql string) {
		t.Helper()
		if _, err := s.Pool().Exec(ctx, sql); err != nil {
			t.Fatal(err)
		}
	}
	exec(fmt.Sprintf(`
		INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, split, created_at)
		SELECT %d, sha256(n::text::bytea), 'image/png', 32, 32, 3000, n::text, 'pool', now()
		FROM generate_series(1, %d) n`, project, 2*items))
	// An import has labeled the other half.
	exec(fmt.Sprintf(`
		WITH event AS (
			INSERT INTO label_events (project_id, image_id, kind, verdict, class_version, at)
			SELECT %d, id, 'import', 'unknown', 1, now() FROM images WHERE id > %d
			RETURNING id, image_id)
		UPDATE images SET verdict = 'unknown', label_event_id = event.id FROM event WHERE images.id = event.image_id`, project, items))
	exec(fmt.Sprintf(`UPDATE projects SET pool_count = %d, unknown_count = %d`, 2*items, items))
	dbtest.OpenRound(t, s, admin.ID, project)
	people := make([]winnow.UserID, 2*overlap)
	for i := range people {
		people[i] = dbtest.Member(t, s, admin.ID, project, fmt.Sprint("annotator", i), winnow.RoleAnnotator).ID
	}
	// Some have answered the first items, others hold the next.
	for i := range overlap {
		for n := 0; n < answered; {
			_, claimed, err := s.Claim(ctx, project, people[i], 100)
			if err != nil {
				t.Fatal(err)
			}
			var ds []winnow.Decision
			for _, item := range claimed {
				ds = append(ds, decision(item.ID, winnow.VerdictUnknown, -1, fmt.Sprint("before ", item.ID)))
			}
			if _, _, err := s.DecideAll(ctx, project, people[i], ds); err != nil {
				t.Fatal(err)
			}
			n += len(ds)
		}
	}
	exec(fmt.Sprintf(`
		UPDATE item_answers SET user_id = %d + slot, lease_until = now() + interval '1 hour'
		WHERE rank BETWEEN %d AND %d`, people[overlap]-1, answered+1, answered+held))

	me := dbtest.Member(t, s, admin.ID, project, "me", winnow.RoleAnnotator).ID
	tables := []string{"item_answers", "query_items", "images", "label_events", "late_decisions", "annotators"}
	for _, analyzed := range []bool{false, true} {
		if analyzed {
			exec(`VACUUM ANALYZE`)
		}
		var mine []winnow.Item
		ids := func() (ids []winnow.ItemID) {
			for _, item := range mine {
				ids = append(ids, item.ID)
			}
			return ids
		}
		key := func(what string) string { return fmt.Sprint(what, analyzed) }
		for _, step := range []struct {
			what  string
			most  int64
			doing func() error
		}{
			// It passes over what others hold, looking whether a slot is lower, or mine.
			{"claim", held*int64(overlap)*int64(overlap+1) + 200, func() (err error) { _, mine, err = s.Claim(ctx, project, me, 10); return err }},
			{"claim again", 100, func() error { _, _, err := s.Claim(ctx, project, me, 10); return err }},
			{"renew", 60, func() error { _, err := s.Renew(ctx, project, me, ids()); return err }},
			{"decide", 40, func() error {
				_, err := s.Decide(ctx, project, me, decision(mine[0].ID, winnow.VerdictUnknown, -1, key("a")))
				return err
			}},
			{"decide again", 40, func() error {
				_, err := s.Decide(ctx, project, me, decision(mine[0].ID, winnow.VerdictUnknown, -1, key("a")))
				return err
			}},
			{"decide late", 60, func() error {
				_, err := s.Decide(ctx, project, people[0], decision(mine[1].ID, winnow.VerdictUnknown, -1, key("late")))
				if overlap > 1 {
					return err
				}
				if winnow.ErrorCode(err) != winnow.CodeConflict {
					return fmt.Errorf("taken: %w", err)
				}
				return nil
			}},
			{"recent", 60, func() error { _, err := s.Recent(ctx, project, me, 10); return err }},
			{"undo", 80, func() error { _, err := s.Undo(ctx, project, me, 0, key("u")); return err }},
			{"decide anew", 40, func() error {
				_, err := s.Decide(ctx, project, me, decision(mine[0].ID, winnow.VerdictSkip, -1, key("b")))
				return err
			}},
			{"flag", 40, func() error { return s.Flag(ctx, project, me, mine[0].ID, "") }},
			{"review", 80, func() error { _, _, err := s.ReviewQueue(ctx, project, winnow.Page{}); return err }},
			{"correct", 60, func() error {
				_, err := s.Correct(ctx, project, admin.ID, firstImage(t, s, project), winnow.VerdictSkip, -1, key("c"))
				return err
			}},
			{"release", 60, func() error { return s.Release(ctx, project, me, ids(), time.Now().Add(time.Hour)) }},
		} {
			before := fetched(t, s, tables)
			if err := step.doing(); err != nil {
				t.Fatalf("%s: %v", step.what, err)
			}
			if n := fetched(t, s, tables) - before; n > step.most {
				t.Errorf("%s reads %d rows, want at most %d; with statistics: %v", step.what, n, step.most, analyzed)
			}
		}
	}
}

func firstImage(t *testing.T, s *db.Store, project winnow.ProjectID) winnow.ImageID {
	t.Helper()
	images, _, err := s.Images(t.Context(), project, winnow.ImageFilter{Verdict: "unknown"}, winnow.Page{Limit: 1})
	if err != nil || len(images) == 0 {
		t.Fatalf("%d labeled images, %v", len(images), err)
	}
	return images[0].ID
}

// fetched is how many rows of tables the store has read so far.
func fetched(t *testing.T, s *db.Store, tables []string) (n int64) {
	t.Helper()
	if _, err := s.Pool().Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
		t.Fatal(err)
	}
	if err := s.Pool().QueryRow(t.Context(), `
		SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::bigint FROM pg_stat_user_tables WHERE relname = ANY($1)`, tables).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
