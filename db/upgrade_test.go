package db_test

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/migrations"
)

// TestUpgradeKeepsLabelsAndLeases fills a database of the schema before items had
// slots, with a closed round, an open one, leases and undone decisions, brings it to
// the newest schema, and goes on labeling in it.
func TestUpgradeKeepsLabelsAndLeases(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := dbtest.EmptyURL(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	applyUpTo(t, conn, 9)
	for _, sql := range strings.Split(oldData, ";\n") {
		if _, err := conn.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	if err := db.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}

	clock := dbtest.NewClock()
	s, err := db.Open(ctx, url, db.Options{Now: clock.Now, LeaseNow: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := &bench{Store: s, t: t, clock: clock, admin: winnow.User{ID: 1}, project: 1}
	b.checkInvariants()
	const ann, bob = winnow.UserID(1), winnow.UserID(2)

	// Settings that were not there are off.
	p, err := s.Project(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if p.Settings.Overlap != 1 || p.Settings.AuditShare != 0 || p.Settings.GoldEvery != 0 {
		t.Errorf("the project now has %+v", p.Settings)
	}
	b.checkPool(winnow.PoolCounts{Pool: 8, Known: 3, Unknown: 1, Skipped: 1})

	members, _, err := s.Members(ctx, 1, winnow.Page{})
	if err != nil || len(members) != 2 || members[0].Labels != 3 || members[1].Labels != 1 || members[1].LastAt.IsZero() {
		t.Errorf("members: %+v, %v", members, err)
	}
	recent, err := s.Recent(ctx, 1, ann, 10)
	if err != nil || len(recent) != 1 || recent[0].ID != 4 || recent[0].Verdict != winnow.VerdictKnown || recent[0].Class != 1 {
		t.Errorf("recent: %+v, %v", recent, err)
	}
	// Bob holds item 5; item 6 is free, item 7's lease has run out.
	if diff := cmp.Diff([]winnow.ItemID{5}, idsOf(b.claim(bob, 1))); diff != "" {
		t.Error("bob's lease:", diff)
	}
	if diff := cmp.Diff([]winnow.ItemID{6, 7}, idsOf(b.claim(ann, 5))); diff != "" {
		t.Error("what is free:", diff)
	}
	// A retry from before the upgrade is still the same event.
	again := b.decide(ann, decision(4, winnow.VerdictKnown, 1, "a4"))
	if !again.Replayed {
		t.Errorf("a retry became %+v", again)
	}
	// An undo gives the image the label that an import had given it.
	if _, err := s.Undo(ctx, 1, ann, 4, "u4"); err != nil {
		t.Fatal(err)
	}
	if image, err := s.Image(ctx, 1, 4); err != nil || image.Verdict != winnow.VerdictKnown || image.Class != 0 {
		t.Errorf("image 4 is %+v, %v", image, err)
	}
	b.checkInvariants()
	for i, id := range []winnow.ItemID{4, 6, 7} {
		b.decide(ann, decision(id, winnow.VerdictUnknown, -1, string(rune('x'+i))))
	}
	if last := b.decide(bob, decision(5, winnow.VerdictUnknown, -1, "b5")); last.Round.State != winnow.RoundClosed {
		t.Errorf("the round is %s, %+v", last.Round.State, last.Round.Counts)
	}
	b.checkInvariants()
	// What the round saw when it began, event 5 being the last then, is as it was.
	ids, labels, err := s.TrainingSet(ctx, 1, 5, 2)
	if err != nil || !slices.Equal(ids, []winnow.ImageID{1, 2}) || !slices.Equal(labels, []int{0, 2}) {
		t.Errorf("the round had learned from %v %v, %v", ids, labels, err)
	}
	if pool, err := s.PoolSet(ctx, 1, 5, 100); err != nil || !slices.Equal(pool, []winnow.ImageID{4, 5, 6, 7, 8}) {
		t.Errorf("its pool was %v, %v", pool, err)
	}
}

func applyUpTo(t *testing.T, conn *pgx.Conn, version int) {
	t.Helper()
	files, err := fs.Glob(migrations.Files, "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	if _, err := conn.Exec(t.Context(), `CREATE TABLE schema_version (version int4 NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	for _, name := range files[:version] {
		sql, err := fs.ReadFile(migrations.Files, name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := conn.Exec(t.Context(), string(sql)); err != nil {
			t.Fatalf("%s: %v", path.Base(name), err)
		}
	}
	if _, err := conn.Exec(t.Context(), `INSERT INTO schema_version VALUES ($1)`, version); err != nil {
		t.Fatal(err)
	}
}

// oldData is a project of 2 classes and 8 images. Round 0 asked about images 1 to 3 and
// is closed; its item 2 was decided, undone and decided anew. Round 1 asks about 4 to 7:
// an import has labeled 4 before ann did, bob holds 5, 6 is free, and a lease on 7 ran out.
var oldData = strings.NewReplacer("\n\n", "\n", "NOW", "'2026-03-01 12:00:00+00'").Replace(`
INSERT INTO users (email, name, created_at) VALUES ('ann@example.org', 'ann', NOW), ('bob@example.org', 'bob', NOW);
INSERT INTO projects (name, settings, pool_count, known_count, unknown_count, skipped_count, created_at)
VALUES ('old', '{"strategy": "random", "budget": 4, "lease_seconds": 60}', 8, 3, 1, 1, NOW);
INSERT INTO classes (project_id, position, name, colour, version) VALUES (1, 0, 'cat', '#000000', 1), (1, 1, 'dog', '#000000', 1);
INSERT INTO members (project_id, user_id, role, label_count, last_label_at, created_at)
VALUES (1, 1, 'admin', 3, NOW, NOW), (1, 2, 'annotator', 1, NOW, NOW);
INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, split, created_at)
SELECT 1, sha256(n::text::bytea), 'image/png', 8, 8, 100, n::text, 'pool', NOW FROM generate_series(1, 8) n;
INSERT INTO rounds (project_id, number, state, strategy, seed, k, settings, class_version, classes, label_version, image_version,
                    item_count, known_count, unknown_count, skipped_count, created_at, labeling_at, closed_at)
VALUES (1, 0, 'closed', 'random', 1, 5, '{"lease_seconds": 60}', 1, 2, 0, 8, 3, 1, 1, 1, NOW, NOW, NOW),
       (1, 1, 'labeling', 'random', 2, 5, '{"lease_seconds": 60}', 1, 2, 5, 8, 4, 1, 0, 0, NOW, NOW, NULL);
INSERT INTO query_items (project_id, round_id, image_id, rank, slice)
SELECT 1, CASE WHEN n < 4 THEN 1 ELSE 2 END, n, n, 'query' FROM generate_series(1, 7) n;
INSERT INTO label_events (project_id, image_id, round_id, item_id, user_id, kind, verdict, class, client_key, duration_ms, supersedes, class_version, at)
VALUES (1, 1, 1, 1, 1, 'label', 'known', 0, 'a1', 700, NULL, 1, NOW),
       (1, 2, 1, 2, 1, 'label', 'known', 1, 'a2', 900, NULL, 1, NOW),
       (1, 2, 1, 2, 1, 'undo', NULL, NULL, 'u2', 0, 2, 1, NOW),
       (1, 2, 1, 2, 2, 'label', 'unknown', NULL, 'b2', 500, NULL, 1, NOW),
       (1, 3, 1, 3, 1, 'label', 'skip', NULL, 'a3', 100000, NULL, 1, NOW),
       (1, 4, NULL, NULL, NULL, 'import', 'known', 0, NULL, 0, NULL, 1, NOW),
       (1, 4, 2, 4, 1, 'label', 'known', 1, 'a4', 300, 6, 1, NOW),
       (1, 8, NULL, NULL, NULL, 'import', 'known', 1, NULL, 0, NULL, 1, NOW);
UPDATE query_items q SET verdict = e.verdict, class = e.class, decided_by = e.user_id, decided_at = e.at, label_event_id = e.id
FROM label_events e WHERE e.item_id = q.id AND e.id IN (1, 4, 5, 7);
UPDATE images i SET verdict = e.verdict, class = e.class, label_event_id = e.id
FROM label_events e WHERE e.image_id = i.id AND e.id IN (1, 4, 5, 7, 8);
UPDATE query_items SET leased_by = 2, lease_until = '2026-03-01 12:00:30+00' WHERE id = 5;
UPDATE query_items SET leased_by = 2, lease_until = '2026-03-01 11:59:00+00' WHERE id = 7`)
