package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
	"winnow/db/local"
	"winnow/jobs"
	"winnow/ml/eaoa"
)

// openStore opens the database that the configuration names, or the private one,
// which runs for as long as somebody uses it. The caller calls close at the end.
func (c *cli) openStore(ctx context.Context) (store *db.Store, close func(), err error) {
	databaseURL, stop, err := c.startDatabase(ctx)
	if err != nil {
		return nil, nil, err
	}
	if store, err = c.connect(ctx, databaseURL); err != nil {
		stop()
		return nil, nil, err
	}
	return store, func() { store.Close(); stop() }, nil
}

// startDatabase returns the URL of the database, and what to call when it is no
// longer used.
func (c *cli) startDatabase(ctx context.Context) (databaseURL string, stop func(), err error) {
	if c.cfg.DatabaseURL != "" {
		return c.cfg.DatabaseURL, func() {}, nil
	}
	server, err := startLocal(ctx, &c.cfg)
	if err != nil {
		return "", nil, err
	}
	return server.URL, func() { stopLocal(server, c.log) }, nil
}

func startLocal(ctx context.Context, cfg *Config) (*local.Server, error) {
	if err := makeDataDir(cfg.DataDir); err != nil {
		return nil, err
	}
	return local.Start(ctx, filepath.Join(cfg.DataDir, "postgres"), local.Options{Database: "winnow", Binaries: cfg.PostgresBin})
}

// stopLocal stops the server even when the command was interrupted.
func stopLocal(server *local.Server, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		log.Error("cannot stop the private Postgres", "error", err)
	}
}

// connect opens the store and refuses a schema that is not this program's.
func (c *cli) connect(ctx context.Context, databaseURL string) (*db.Store, error) {
	current, target, err := db.MigrationStatus(ctx, databaseURL)
	if err != nil {
		return nil, unreachable(databaseURL, err)
	}
	if current != target {
		return nil, schemaMismatch(current, target)
	}
	enqueue, err := jobs.NewEnqueue()
	if err != nil {
		return nil, err
	}
	enqueueScoring, err := jobs.NewEnqueueScoring()
	if err != nil {
		return nil, err
	}
	store, err := db.Open(ctx, withPoolSize(databaseURL, c.cfg.DatabaseConns), db.Options{
		NextK: eaoa.NextK, Enqueue: enqueue, EnqueueScoring: enqueueScoring,
	})
	if err != nil {
		return nil, unreachable(databaseURL, err)
	}
	return store, nil
}

// schemaMismatch says what to do about a schema that is not this program's.
func schemaMismatch(current, target int32) error {
	if current < target {
		return winnow.Errorf(winnow.CodeConflict,
			"The database has schema version %d, and this program needs %d. Run: winnow migrate up", current, target)
	}
	return winnow.Errorf(winnow.CodeConflict,
		"The database has schema version %d, made by a newer Winnow; this one knows %d. Run the newer one.", current, target)
}

// unreachable says where the database was looked for, if that is what failed.
func unreachable(databaseURL string, err error) error {
	if winnow.ErrorCode(err) != winnow.CodeUnavailable {
		return err
	}
	where := "the database"
	if cfg, e := pgx.ParseConfig(databaseURL); e == nil {
		where = fmt.Sprintf("the database %q at %s", cfg.Database, net.JoinHostPort(cfg.Host, strconv.Itoa(int(cfg.Port))))
	}
	return &winnow.Error{
		Code: winnow.CodeUnavailable, Err: errors.Unwrap(err),
		Message: fmt.Sprintf("Cannot use %s. Is it running, and is --database-url (DATABASE_URL) right?", where),
	}
}

// withPoolSize adds the size of the pool to the URL or keywords, unless they say one.
func withPoolSize(databaseURL string, conns int) string {
	const key = "pool_max_conns="
	switch {
	case strings.Contains(databaseURL, key):
		return databaseURL
	case !strings.Contains(databaseURL, "://"):
		return fmt.Sprintf("%s %s%d", databaseURL, key, conns)
	case strings.Contains(databaseURL, "?"):
		return fmt.Sprintf("%s&%s%d", databaseURL, key, conns)
	default:
		return fmt.Sprintf("%s?%s%d", databaseURL, key, conns)
	}
}
