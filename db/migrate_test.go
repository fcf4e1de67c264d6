package db_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

func TestMigrateFromZero(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := dbtest.EmptyURL(t)

	current, target, err := db.MigrationStatus(ctx, url)
	if err != nil || current != 0 || target == 0 {
		t.Fatalf("an empty database has version %d of %d, %v", current, target, err)
	}
	// Twice at once and once more: only the first has work to do.
	done := make(chan error)
	for range 2 {
		go func() { done <- db.Migrate(ctx, url) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Migrate(ctx, url); err != nil {
		t.Fatal(err)
	}
	current, target, err = db.MigrationStatus(ctx, url)
	if err != nil || current != target {
		t.Fatalf("a migrated database has version %d of %d, %v", current, target, err)
	}
}

func TestEveryTableHasAComment(t *testing.T) {
	t.Parallel()
	s := dbtest.New(t, db.Options{})
	rows, err := s.Pool().Query(t.Context(), `
		SELECT relname FROM pg_class
		WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
		  AND NOT relname LIKE 'river\_%' -- the job queue's own
		  AND coalesce(obj_description(oid, 'pg_class'), '') = ''`)
	if err != nil {
		t.Fatal(err)
	}
	bare, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{}, bare); diff != "" {
		t.Errorf("tables without a comment: %s", diff)
	}
}

func TestMigrateRefusesANewerSchema(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	url := dbtest.URL(t)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "UPDATE schema_version SET version = 1000"); err != nil {
		t.Fatal(err)
	}
	err = db.Migrate(ctx, url)
	if winnow.ErrorCode(err) != winnow.CodeConflict || !strings.Contains(winnow.ErrorMessage(err), "1000") {
		t.Errorf("got %v, want a conflict that names the version", err)
	}
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	_, err := db.Open(t.Context(), "postgres://user:secret@:not-a-port/x", db.Options{})
	if winnow.ErrorCode(err) != winnow.CodeInvalid || strings.Contains(err.Error(), "secret") {
		t.Errorf("a bad URL gives %v, want CodeInvalid without the password", err)
	}
	_, err = db.Open(t.Context(), "postgres:///x?host=/nonexistent", db.Options{})
	if winnow.ErrorCode(err) != winnow.CodeUnavailable {
		t.Errorf("no server gives %v, want CodeUnavailable", err)
	}
}
