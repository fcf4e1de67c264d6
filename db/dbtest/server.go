package dbtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow/db"
	"winnow/db/local"
)

const (
	databasePrefix = "winnow_test_"
	// A database that is older than this belongs to no test any more.
	staleAfter = 2 * time.Hour
)

// server is where the tests' databases are made.
type server struct {
	admin *url.URL // of a database to connect to for that
	alive *os.File // open as long as this process lives; see stopAtExit
	once  sync.Once
	name  string // of the template
	err   error
}

// theServer starts the private server of this process, or connects to the one that
// the environment names. It is the only state of the package, and what makes tests
// cheap.
var theServer = sync.OnceValues(func() (*server, error) {
	for _, name := range []string{"WINNOW_TEST_DATABASE_URL", "DATABASE_URL"} {
		if v := os.Getenv(name); v != "" {
			u, err := url.Parse(v)
			if err != nil {
				return nil, fmt.Errorf("%s is not a URL", name)
			}
			s := &server{admin: u}
			return s, s.dropStale(context.Background())
		}
	}
	return startPrivate(context.Background())
})

// startPrivate starts a server that does not outlive this process.
func startPrivate(ctx context.Context) (*server, error) {
	dir, err := os.MkdirTemp("", "winnow-test-")
	if err != nil {
		return nil, err
	}
	// Root's server runs as another user, who must get through.
	if err := os.Chmod(dir, 0o711); err != nil {
		return nil, err
	}
	pg, err := local.Start(ctx, dir+"/pg", local.Options{Settings: []string{
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", // the data is thrown away
		"autovacuum=off", "max_connections=300", "shared_buffers=64MB", "max_wal_size=256MB",
	}})
	if err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	alive, err := stopAtExit(pg.PID(), dir)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(pg.URL)
	return &server{admin: u, alive: alive}, err
}

// stopAtExit leaves a process behind that waits for this one to end, whether it
// returns, panics or is killed, and then stops the server and removes its files. It
// notices the end by its standard input, whose other side, alive, this process holds.
func stopAtExit(pid int, dir string) (alive *os.File, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	// QUIT is Postgres's immediate shutdown: the data is not needed.
	cmd := exec.Command("/bin/sh", "-c", `
		cat >/dev/null
		kill -QUIT "$1"
		while kill -0 "$1" 2>/dev/null; do sleep 0.05; done
		rm -rf "$2"`, "dbtest-watch", strconv.Itoa(pid), dir)
	cmd.Stdin = r
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // out of reach of Ctrl-C
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return w, nil
}

// database returns the address of a database of the server.
func (s *server) database(name string) string {
	u := *s.admin
	u.Path = "/" + name
	return u.String()
}

// exec runs one statement on a connection of its own.
func (s *server) exec(ctx context.Context, sql string, args ...any) error {
	conn, err := pgx.Connect(ctx, s.admin.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// template returns the name of a migrated database that is made once a process.
func template(ctx context.Context, s *server) (string, error) {
	s.once.Do(func() {
		// The first test may end before the others: its context is not theirs.
		ctx := context.WithoutCancel(ctx)
		s.name = fmt.Sprintf("%s%d_template_%d", databasePrefix, time.Now().Unix(), os.Getpid())
		if s.err = s.exec(ctx, "CREATE DATABASE "+s.name); s.err == nil {
			s.err = db.Migrate(ctx, s.database(s.name))
		}
	})
	return s.name, s.err
}

// dropStale removes what runs that crashed have left on a server that stays.
func (s *server) dropStale(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.admin.String())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE datname LIKE $1`, databasePrefix+"%")
	if err != nil {
		return err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range names {
		made, _, _ := strings.Cut(strings.TrimPrefix(name, databasePrefix), "_")
		seconds, err := strconv.ParseInt(made, 10, 64)
		if err != nil || time.Since(time.Unix(seconds, 0)) < staleAfter {
			continue
		}
		if err := s.exec(ctx, "DROP DATABASE IF EXISTS "+pgx.Identifier{name}.Sanitize()+" WITH (FORCE)"); err != nil {
			return err
		}
	}
	return nil
}
