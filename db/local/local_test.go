package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db/local"
)

// tempDir is a directory that the server's user can enter, which t.TempDir is not
// when the test runs as root.
func tempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "winnow-local-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T, dir string) *local.Server {
	t.Helper()
	s, err := local.Start(t.Context(), dir, local.Options{Database: "winnow", Settings: []string{"fsync=off"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func exec(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func TestServerIsShared(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "a data directory")

	first := start(t, dir)
	if first.Adopted {
		t.Error("the first start adopted a server")
	}
	exec(t, first.URL, "CREATE TABLE kept (id int)")

	second := start(t, dir)
	if !second.Adopted {
		t.Error("the second start did not adopt the server that runs")
	}
	if err := first.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	exec(t, second.URL, "INSERT INTO kept VALUES (1)")
	if err := second.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if pid := second.PID(); pid != 0 {
		t.Errorf("the last use ended, and process %d still runs", pid)
	}

	third := start(t, dir)
	defer third.Stop(t.Context())
	if third.Adopted {
		t.Error("the third start adopted a server that was stopped")
	}
	exec(t, third.URL, "INSERT INTO kept VALUES (2)")
}

func TestStartAfterInterruptedInit(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	half := filepath.Join(dir, "data.new")
	if err := os.MkdirAll(half, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(half, "PG_VERSION"), []byte("15\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, dir)
	defer s.Stop(t.Context())
	exec(t, s.URL, "SELECT 1")
}

func TestTryLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	first, err := local.TryLock(path)
	if err != nil || first == nil {
		t.Fatalf("TryLock of a free file: %v, %v", first, err)
	}
	if second, err := local.TryLock(path); err != nil || second != nil {
		t.Errorf("TryLock of a taken file: %v, %v", second, err)
	}
	first.Release()
	third, err := local.TryLock(path)
	if err != nil || third == nil {
		t.Fatalf("TryLock of a released file: %v, %v", third, err)
	}
	third.Release()
}

func TestStartWithLongPath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), strings.Repeat("long", 25))
	s := start(t, dir)
	defer s.Stop(t.Context())
	exec(t, s.URL, "SELECT 1")
}

func TestStartRefusesDataOfAnotherVersion(t *testing.T) {
	t.Parallel()
	dir := tempDir(t)
	if err := os.MkdirAll(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data", "PG_VERSION"), []byte("9\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := local.Start(t.Context(), dir, local.Options{})
	if winnow.ErrorCode(err) != winnow.CodeConflict || !strings.Contains(err.Error(), "Postgres 9") {
		t.Errorf("got %v, want a conflict that names the version", err)
	}
}

// TestInterruptedStartLeavesNoServer cancels a start in the middle, as Ctrl-C does.
func TestInterruptedStartLeavesNoServer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(tempDir(t), "pg")
	if err := start(t, dir).Stop(t.Context()); err != nil { // there is a cluster: the next start is that of the server alone
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	pidFile := filepath.Join(dir, "data", "postmaster.pid")
	go func() {
		defer cancel()
		for ctx.Err() == nil {
			if _, err := os.Stat(pidFile); err == nil {
				return
			}
		}
	}()
	s, err := local.Start(ctx, dir, local.Options{Database: "winnow", Settings: []string{"fsync=off"}})
	if err == nil {
		_ = s.Stop(context.WithoutCancel(ctx))
		t.Fatal("the start was cancelled, and succeeded")
	}
	if data, err := os.ReadFile(pidFile); err == nil {
		t.Errorf("the server runs on: %s", data)
		pid, _, _ := strings.Cut(string(data), "\n")
		if n, err := strconv.Atoi(pid); err == nil {
			_ = syscall.Kill(n, syscall.SIGQUIT)
		}
	}
}
