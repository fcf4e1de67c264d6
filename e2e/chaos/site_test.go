package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"winnow/db"
	"winnow/db/local"
)

// site is a Winnow as it is deployed: a Postgres of its own with the durability that
// Postgres has by default, and `winnow serve` as a process. Both may be killed.
type site struct {
	t        testing.TB
	dir      string
	settings []string // of Postgres
	postgres *local.Server
	store    *db.Store // the tests' own way to the database
	url      string
	port     int
	log      *lockedBuffer

	mu  sync.Mutex
	web *exec.Cmd
	end chan error // of the web process
}

// newSite starts a site that ends with the test. The settings are for Postgres.
func newSite(t testing.TB, settings ...string) *site {
	t.Helper()
	dir, err := os.MkdirTemp("", "winnow-chaos-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	// Root's Postgres runs as another user, who must get through.
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, dir: dir, settings: append([]string{"max_connections=60"}, settings...), port: freePort(t), log: &lockedBuffer{}}
	s.startPostgres()
	t.Cleanup(s.stopPostgres)
	s.url = s.postgres.URL
	if err := db.Migrate(t.Context(), s.url); err != nil {
		t.Fatal(err)
	}
	if s.store, err = db.Open(t.Context(), s.url, db.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	t.Cleanup(func() {
		s.killWeb()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", s.log.tail(20_000))
		}
		if found := s.log.lines("msg=panic"); len(found) > 0 {
			t.Errorf("the server panicked %d times: %.3000s", len(found), found[0])
		}
	})
	s.startWeb()
	return s
}

func (s *site) address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// startWeb runs the web server until it answers, again and again if need be, as a
// service manager does.
func (s *site) startWeb() {
	s.t.Helper()
	bin, err := program()
	if err != nil {
		s.t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		web := exec.Command(bin, "serve", "--port", strconv.Itoa(s.port))
		web.Env = append(os.Environ(), "DATABASE_URL="+s.url, "WINNOW_TRUST_PROXY=true", "WINNOW_LOG_FORMAT=text", "WINNOW_LOG_LEVEL=warn")
		web.Stdout, web.Stderr = s.log, s.log
		if err := web.Start(); err != nil {
			s.t.Fatal(err)
		}
		end := make(chan error, 1)
		go func() { end <- web.Wait() }()
		s.mu.Lock()
		s.web, s.end = web, end
		s.mu.Unlock()
		if s.answers(end) {
			return
		}
	}
	s.t.Fatalf("the web server does not start:\n%s", s.log.tail(4000))
}

// answers waits until the web server is ready, and reports false if it ends first.
func (s *site) answers(end chan error) bool {
	for {
		select {
		case err := <-end:
			end <- err
			return false
		case <-time.After(20 * time.Millisecond):
		}
		response, err := http.Get("http://" + s.address() + "/healthz")
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			return true
		}
	}
}

// killWeb ends the web server with SIGKILL: it cannot clean up.
func (s *site) killWeb() {
	s.mu.Lock()
	web, end := s.web, s.end
	s.web = nil
	s.mu.Unlock()
	if web == nil {
		return
	}
	_ = web.Process.Kill() // it may have ended by itself
	end <- <-end
}

// peakMemory is the most memory that the web server has had resident, in bytes.
func (s *site) peakMemory() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.web.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		s.t.Fatal(err)
	}
	return kib << 10
}

func (s *site) startPostgres() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var err error
	for ctx.Err() == nil {
		// Right after a kill, what is left of the old server may still be ending.
		s.postgres, err = local.Start(ctx, filepath.Join(s.dir, "pg"), local.Options{Database: "winnow", Settings: s.settings})
		if err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	s.t.Fatal(err)
}

// killPostgres ends Postgres with SIGKILL, all its processes at once: what it had
// not written is lost, as when the machine loses its power.
func (s *site) killPostgres() {
	s.t.Helper()
	pid := s.postgres.PID()
	if pid == 0 {
		s.t.Fatal("Postgres does not run")
	}
	all := append([]int{pid}, childrenOf(pid)...)
	for _, p := range all {
		if err := syscall.Kill(p, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			s.t.Fatal(err)
		}
	}
	for _, p := range all {
		for alive(p) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	// There is nothing left to stop; this gives up our share of it.
	_ = s.postgres.Stop(context.Background())
}

func (s *site) stopPostgres() {
	if err := s.postgres.Stop(context.Background()); err != nil {
		s.t.Errorf("stop Postgres: %v", err)
	}
}

// childrenOf lists the processes that a process has started.
func childrenOf(parent int) (children []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		if pid, ppid, _ := readStat(path); ppid == parent {
			children = append(children, pid)
		}
	}
	return children
}

// alive reports whether a process runs: one that has ended and was not waited for
// does not.
func alive(pid int) bool {
	_, _, state := readStat(fmt.Sprintf("/proc/%d/stat", pid))
	return state != 0 && state != 'Z'
}

// readStat reads the beginning of a /proc/PID/stat; it is empty when the process is gone.
func readStat(path string) (pid, ppid int, state byte) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, 0, 0
	}
	// The name in parentheses may hold spaces.
	head, rest, _ := strings.Cut(string(data), " (")
	rest = rest[strings.LastIndexByte(rest, ')')+1:]
	pid, _ = strconv.Atoi(head)
	_, _ = fmt.Sscanf(rest, " %c %d", &state, &ppid)
	return pid, ppid, state
}

// program builds winnow once, unless WINNOW_BIN names a built one.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("WINNOW_BIN"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "winnow-chaos-bin-")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "winnow")
	if out, err := exec.Command("go", "build", "-o", path, "winnow/cmd/winnow").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build winnow: %w\n%s", err, out)
	}
	return path, nil
})

var built string // directory of the program, removed after the tests

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// lockedBuffer collects the output of processes.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// lines are those that hold a text.
func (b *lockedBuffer) lines(with string) (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.buf.String()) {
		if strings.Contains(line, with) {
			found = append(found, line)
		}
	}
	return found
}

func (b *lockedBuffer) tail(n int) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	data := b.buf.Bytes()
	return string(data[max(0, len(data)-n):])
}
