package db

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/tern/v2/migrate"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"winnow"
	"winnow/migrations"
)

const (
	versionTable  = "schema_version"
	migrationLock = 0x77696e6e6f77 // "winnow": one process migrates at a time
)

// Migrate brings the database at url to the newest schema, the job queue's tables
// included. Several processes may call it at once: one works, the others wait.
func Migrate(ctx context.Context, url string) error {
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return wrap(err, "migrate")
	}
	defer pool.Close()
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return wrap(err, "migrate")
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return wrap(err, "migrate: take lock")
	}
	// Closing the connection gives the lock back, whatever happens before.
	defer conn.Conn().Close(context.WithoutCancel(ctx))

	m, err := migrator(ctx, conn.Conn())
	if err != nil {
		return err
	}
	if err := m.Migrate(ctx); err != nil {
		return wrap(err, "migrate")
	}
	jobs, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		return wrap(err, "migrate job queue")
	}
	if _, err := jobs.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return wrap(err, "migrate job queue")
	}
	return nil
}

func migrator(ctx context.Context, conn *pgx.Conn) (*migrate.Migrator, error) {
	m, err := migrate.NewMigrator(ctx, conn, versionTable)
	if err != nil {
		return nil, wrap(err, "migrate")
	}
	if err := m.LoadMigrations(migrations.Files); err != nil {
		return nil, fmt.Errorf("db: load migrations: %w", err)
	}
	current, err := m.GetCurrentVersion(ctx)
	if err != nil {
		return nil, wrap(err, "read schema version")
	}
	if int(current) > len(m.Migrations) {
		return nil, winnow.Errorf(winnow.CodeConflict,
			"The database has schema version %d, made by a newer Winnow; this one knows versions up to %d. Run the newer Winnow.",
			current, len(m.Migrations))
	}
	return m, nil
}

// MigrationStatus returns the schema version of the database at url, 0 if it is
// empty, and the version that this program needs. It changes nothing.
func MigrationStatus(ctx context.Context, url string) (current, target int32, err error) {
	files, err := migrate.FindMigrations(migrations.Files)
	if err != nil {
		return 0, 0, fmt.Errorf("db: find migrations: %w", err)
	}
	target = int32(len(files))
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, target, wrap(err, "read schema version")
	}
	defer conn.Close(ctx)
	exists, err := value[bool](ctx, conn, "SELECT to_regclass(@table) IS NOT NULL", pgx.NamedArgs{"table": versionTable})
	if err != nil || !exists {
		return 0, target, wrap(err, "read schema version")
	}
	current, err = value[int32](ctx, conn, "SELECT version FROM schema_version", nil)
	return current, target, wrap(err, "read schema version")
}
