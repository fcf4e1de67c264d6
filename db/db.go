// Package db keeps Winnow's domain in Postgres: people, projects, images, rounds,
// labels. Its methods are the application's transactions. SQL stands beside the
// method that runs it, and this is the one place where Postgres's errors become
// the domain's.
//
// Rows are always locked in the order item, image, slot, round, chunk, project, invite,
// member, annotator, and among themselves items and slots by id, images by content,
// annotators by id, so that no two transactions wait for each other.
package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"winnow"
)

// Options are what a store needs from the rest of the application.
type Options struct {
	// Now tells the time; nil means time.Now.
	Now winnow.Clock
	// LeaseNow tells the time by which leases are set and judged; nil, but for tests,
	// means the database's own clock.
	LeaseNow winnow.Clock
	// NextK gives the k of the next round from the precision of the one that closes.
	// Nil keeps k as it is.
	NextK func(s winnow.Settings, k, precision float64, unlabeled int64) float64
	// Enqueue inserts the job that works on a round, in the transaction that makes
	// the round ready for it. Nil inserts none.
	Enqueue func(ctx context.Context, tx pgx.Tx, round winnow.RoundID, attempt int) error
	// EnqueueScoring inserts n jobs that score a chunk of the round each, for workers of
	// the backend that has the round. Nil inserts none.
	EnqueueScoring func(ctx context.Context, tx pgx.Tx, round winnow.RoundID, attempt int, backend string, n int) error
}

// Store is the application's state in Postgres. It is safe for concurrent use.
type Store struct {
	pool *pgxpool.Pool
	opts Options
}

// maxConns is how many connections a process opens, unless its URL says so
// (pool_max_conns). pgx's own default, one a core, would let a few slow exports keep
// the annotators waiting.
const maxConns = 16

// Open connects to the database at url. It does not look at the schema; see
// MigrationStatus.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NextK == nil {
		o.NextK = func(_ winnow.Settings, k, _ float64, _ int64) float64 { return k }
	}
	if o.Enqueue == nil {
		o.Enqueue = func(context.Context, pgx.Tx, winnow.RoundID, int) error { return nil }
	}
	if o.EnqueueScoring == nil {
		o.EnqueueScoring = func(context.Context, pgx.Tx, winnow.RoundID, int, string, int) error { return nil }
	}
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		// The cause quotes the URL, with its password.
		return nil, winnow.Errorf(winnow.CodeInvalid, "The database URL cannot be read; it looks like postgres://user:password@host:5432/name.")
	}
	if !strings.Contains(url, "pool_max_conns") {
		config.MaxConns = maxConns
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("db: open: %w", err)
	}
	s := &Store{pool: pool, opts: o}
	if err := s.Ping(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Close waits for the queries that run and closes the connections.
func (s *Store) Close() { s.pool.Close() }

// Pool is for the libraries that keep their own tables: sessions and jobs.
func (s *Store) Pool() *pgxpool.Pool { return s.pool }

// Ping reports whether the database answers: CodeUnavailable if it does not.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.pool.Ping(ctx); err != nil {
		return wrap(err, "ping")
	}
	return nil
}

// tx runs fn in a transaction that commits when fn returns nil.
func (s *Store) tx(ctx context.Context, fn func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, s.pool, fn)
}

// Now is the time by the store's clock.
func (s *Store) Now() time.Time { return s.opts.Now() }

// now is the time as the database stores it.
func (s *Store) now() time.Time { return s.opts.Now().UTC().Truncate(time.Microsecond) }

// querier is a pool or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// collect returns the rows of a query as scan makes them.
func collect[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args pgx.NamedArgs) ([]T, error) {
	rows, err := q.Query(ctx, sql, args)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scan)
}

// one returns the single row of a query; pgx.ErrNoRows if there is none.
func one[T any](ctx context.Context, q querier, scan pgx.RowToFunc[T], sql string, args pgx.NamedArgs) (T, error) {
	rows, err := q.Query(ctx, sql, args)
	if err != nil {
		var zero T
		return zero, err
	}
	return pgx.CollectExactlyOneRow(rows, scan)
}

// value returns the single column of the single row of a query.
func value[T any](ctx context.Context, q querier, sql string, args pgx.NamedArgs) (T, error) {
	return one(ctx, q, pgx.RowTo[T], sql, args)
}
