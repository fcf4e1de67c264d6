// Package local runs a private Postgres server in a directory of one's own: for
// `winnow dev`, which must work without anybody setting up a database, and for tests.
// The server listens on a Unix socket in that directory only, and never runs as root.
//
// Several processes may use one server: the first starts it, the last stops it, and
// one that is killed counts no more.
package local

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// Options of a server.
type Options struct {
	// Database is created when it is missing; empty creates none and connects to "postgres".
	Database string
	// Binaries is the directory of Postgres's programs; empty looks for them.
	Binaries string
	// Settings are further server settings, such as "fsync=off".
	Settings []string
}

// Server is a running Postgres.
type Server struct {
	URL     string // of Options.Database
	Adopted bool   // it ran already

	dir  string
	bins string
	user *account
	use  *Lock // shared by all who use the server
}

const (
	role         = "winnow"
	startTimeout = 60 * time.Second
)

// Start runs the server whose data is in dir, and makes the data directory first if
// there is none. A server that runs there already is adopted, whether others use it
// or it was left by a process that was killed.
func Start(ctx context.Context, dir string, o Options) (*Server, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("local postgres: %w", err)
	}
	bins, err := findBinaries(o.Binaries)
	if err != nil {
		return nil, err
	}
	user, err := unprivileged()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bins: bins, user: user}
	if err := s.makeDirectories(); err != nil {
		return nil, err
	}
	if s.use, err = openLock(filepath.Join(dir, "lock")); err != nil {
		return nil, err
	}
	if err := s.startOrJoin(ctx, o); err != nil {
		s.use.Release()
		return nil, err
	}
	return s, nil
}

// startOrJoin returns with the server running and our share of it taken.
func (s *Server) startOrJoin(ctx context.Context, o Options) error {
	alone, err := s.use.try(syscall.LOCK_EX)
	if err != nil {
		return err
	}
	if !alone {
		if err := s.use.share(ctx); err != nil {
			return err
		}
		if s.running(ctx) {
			s.Adopted = true
			return s.createDatabase(ctx, o.Database)
		}
		// Whoever had it alone has just stopped it.
		return s.startOrJoin(ctx, o)
	}
	if err := s.init(ctx, o.Settings); err != nil {
		return err
	}
	if s.Adopted = s.running(ctx); !s.Adopted {
		if err := s.start(ctx, o.Settings); err != nil {
			return err
		}
	}
	if err := s.createDatabase(ctx, o.Database); err != nil {
		return errors.Join(err, s.shutDown(context.WithoutCancel(ctx)))
	}
	return s.use.share(ctx)
}

// Stop ends our use of the server. If nobody else uses it, it shuts down cleanly:
// connections end, data is on disk.
func (s *Server) Stop(ctx context.Context) error {
	defer s.use.Release()
	if last, err := s.use.try(syscall.LOCK_EX); err != nil || !last {
		return err
	}
	return s.shutDown(ctx)
}

func (s *Server) shutDown(ctx context.Context) error {
	if err := s.run(ctx, "pg_ctl", "stop", "--pgdata", s.data(), "--mode", "fast", "--wait", "--silent"); err != nil {
		return err
	}
	if socket := s.socketDir(); socket != s.dir {
		return os.Remove(socket)
	}
	return nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }
func (s *Server) log() string  { return filepath.Join(s.dir, "postgres.log") }

// LogPath is the file that the server writes its log to.
func (s *Server) LogPath() string { return s.log() }

// makeDirectories makes what is missing, and gives it to the server's user.
func (s *Server) makeDirectories() error {
	for _, d := range []string{s.dir, s.socketDir()} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return &winnow.Error{
				Code: winnow.CodeInvalid, Err: err,
				Message: fmt.Sprintf("The directory %s cannot be made. Choose another data directory.", d),
			}
		}
		if err := s.user.own(d); err != nil {
			return fmt.Errorf("local postgres: give %s to %s: %w", d, s.user.name, err)
		}
	}
	return nil
}

// init makes the cluster if there is none. It is made beside its place and then
// moved there: one that was interrupted is never taken for a whole one.
func (s *Server) init(ctx context.Context, settings []string) error {
	if _, err := os.Stat(filepath.Join(s.data(), "PG_VERSION")); !errors.Is(err, fs.ErrNotExist) {
		return s.checkVersion()
	}
	unfinished := s.data() + ".new"
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("local postgres: %w", err)
	}
	// The socket's directory admits its owner only, so nobody needs a password.
	args := []string{
		"--pgdata", unfinished, "--username", role, "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C.UTF-8", "--no-instructions",
	}
	if slices.Contains(settings, "fsync=off") {
		args = append(args, "--no-sync")
	}
	if err := s.run(ctx, "initdb", args...); err != nil {
		return err
	}
	if err := os.Rename(unfinished, s.data()); err != nil {
		return fmt.Errorf("local postgres: %w", err)
	}
	return nil
}

// checkVersion refuses data of another major version of Postgres, which the server
// would only say in its log.
func (s *Server) checkVersion() error {
	have, err := os.ReadFile(filepath.Join(s.data(), "PG_VERSION"))
	if err != nil {
		return fmt.Errorf("local postgres: %w", err)
	}
	out, err := exec.Command(filepath.Join(s.bins, "postgres"), "--version").Output()
	if err != nil {
		return fmt.Errorf("local postgres: ask for the version: %w", err)
	}
	version := strings.TrimSpace(string(have))
	if !strings.Contains(string(out), " "+version+".") {
		return winnow.Errorf(winnow.CodeConflict,
			"The data in %s was made by Postgres %s, but %s is %s. Install Postgres %s, or choose another data directory.",
			s.dir, version, s.bins, strings.TrimSpace(string(out)), version)
	}
	return nil
}

// running reports whether the server runs, whoever started it.
func (s *Server) running(ctx context.Context) bool {
	return s.run(ctx, "pg_ctl", "status", "--pgdata", s.data()) == nil
}

func (s *Server) start(ctx context.Context, settings []string) error {
	flags := fmt.Sprintf(`-c listen_addresses='' -c unix_socket_directories='%s'`, s.socketDir())
	for _, setting := range settings {
		flags += " -c " + setting
	}
	// pg_ctl makes the server a daemon, which would stay behind if pg_ctl were cut off
	// here: the start is carried through, and who is cancelled then shuts it down.
	err := s.run(context.WithoutCancel(ctx), "pg_ctl", "start", "--pgdata", s.data(), "--log", s.log(), "--wait", "--silent",
		"--timeout", fmt.Sprint(int(startTimeout.Seconds())), "--options", flags)
	if err != nil {
		return fmt.Errorf("%w; the end of %s: %s", err, s.log(), tail(s.log()))
	}
	return nil
}

// socketDir is where the socket lies: beside the data, unless its path is longer
// than a socket's may be, or cannot be written in the server's settings.
func (s *Server) socketDir() string {
	const longest = 107 - len("/.s.PGSQL.5432.lock")
	if len(s.dir) <= longest && !strings.ContainsAny(s.dir, `'",\`) {
		return s.dir
	}
	sum := sha256.Sum256([]byte(s.dir))
	return filepath.Join(os.TempDir(), fmt.Sprintf("winnow-%x", sum[:8]))
}

// url names a database of the server.
func (s *Server) url(database string) string {
	u := url.URL{
		Scheme: "postgres", User: url.User(role), Path: "/" + database,
		// Not url.Values: pgx does not read its "+" as a space.
		RawQuery: "host=" + url.PathEscape(s.socketDir()),
	}
	return u.String()
}

// createDatabase waits for the server to answer and creates the database if needed.
func (s *Server) createDatabase(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	conn, err := connect(ctx, s.url("postgres"))
	if err != nil {
		return fmt.Errorf("local postgres: the server in %s does not answer: %w; the end of its log: %s", s.dir, err, tail(s.log()))
	}
	defer conn.Close(ctx)
	s.URL = s.url("postgres")
	if name == "" {
		return nil
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("local postgres: %w", err)
	}
	if !exists {
		if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
			return fmt.Errorf("local postgres: %w", err)
		}
	}
	s.URL = s.url(name)
	return nil
}

// connect tries until the server answers: one that was adopted may be recovering.
func connect(ctx context.Context, url string) (*pgx.Conn, error) {
	for {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// run executes one of Postgres's programs as the server's user.
func (s *Server) run(ctx context.Context, program string, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.bins, program), args...)
	cmd.Dir = s.dir
	cmd.SysProcAttr = s.user.attributes()
	out, err := cmd.CombinedOutput()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return &winnow.Error{
			Code: winnow.CodeInvalid, Err: err,
			Message: fmt.Sprintf("Postgres runs as the user %s, who may not enter %s. Choose a data directory that is open to that user.", s.user.name, s.dir),
		}
	case err != nil:
		return fmt.Errorf("local postgres: %s: %w: %s", program, err, bytes.TrimSpace(out))
	}
	return nil
}

// tail returns the end of a log file for an error message.
func tail(path string) string {
	const most = 600
	data, err := os.ReadFile(path)
	if err != nil {
		return "(unreadable)"
	}
	return strings.TrimSpace(string(data[max(0, len(data)-most):]))
}

// PID is the process id of the server, 0 if it does not run.
func (s *Server) PID() int {
	data, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(data), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return 0
	}
	return pid
}
