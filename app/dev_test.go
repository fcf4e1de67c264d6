package app

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/db/local"
	"winnow/jobs"
)

// asProgram, in the environment of this test's own binary, makes it the program.
const asProgram = "WINNOW_TEST_AS_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" {
		os.Exit(Main(context.Background(), os.Args[1:], os.Getenv, os.Stdout))
	}
	os.Exit(m.Run())
}

// newDataDir makes a directory that the private Postgres's user can enter, which
// that of t.TempDir is not when the test runs as root.
func newDataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "winnow-dev-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

var linkPattern = regexp.MustCompile(`(http://\S+)/signin/link/\S+`)

// awaitLink reads the output of winnow dev up to its sign-in link, and goes on
// reading so that nothing waits for it.
func awaitLink(t *testing.T, out io.Reader) (baseURL, link string) {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := linkPattern.FindStringSubmatch(lines.Text()); m != nil {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return m[1], m[0]
		}
	}
	t.Fatal("winnow dev ended without a sign-in link")
	return "", ""
}

// startDev runs winnow dev in this process until stop, which returns its exit code.
func startDev(t *testing.T, dataDir string) (baseURL, link string, stop func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	done := make(chan int, 1)
	go func() {
		done <- run(ctx, []string{"dev", "--data-dir", dataDir, "--port", "0", "--demo=false"}, env{}.get, in, &stderr)
		in.Close()
	}()
	stop = func() int {
		cancel()
		code := <-done
		done <- code
		if code != exitDone {
			t.Errorf("winnow dev ended with %d:\n%s", code, &stderr)
		}
		return code
	}
	t.Cleanup(func() { stop() })
	baseURL, link = awaitLink(t, out)
	return baseURL, link, stop
}

// get returns the final URL and the status.
func get(t *testing.T, client *http.Client, url string) (final string, status int) {
	t.Helper()
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.Request.URL.Path, resp.StatusCode
}

func newBrowser(t *testing.T) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &http.Client{Jar: jar}
}

func TestDevStartsStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	dir := newDataDir(t)
	baseURL, link, stop := startDev(t, dir)

	browser := newBrowser(t)
	// A link preview must not use the link up; people press the button behind it.
	get(t, browser, link)
	resp, err := browser.Post(link, "application/x-www-form-urlencoded", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if path, status := get(t, browser, baseURL+"/projects"); path != "/projects" || status != http.StatusOK {
		t.Errorf("after signing in: %s, %d", path, status)
	}
	if path, _ := get(t, newBrowser(t), baseURL+"/projects"); path == "/projects" {
		t.Error("the projects are shown to somebody who is not signed in")
	}

	// Other commands use the database of the server that runs.
	code, stdout, stderr := runWinnow(t, nil, "user", "create", "ann@example.org", "--data-dir", dir)
	if code != exitDone || !strings.Contains(stdout, "/signin/link/") {
		t.Errorf("user create beside winnow dev: %d, %s%s", code, stdout, stderr)
	}
	if _, status := get(t, browser, baseURL+"/readyz"); status != http.StatusOK {
		t.Errorf("after another command used the database, the server is not ready: %d", status)
	}

	code, _, stderr = runWinnow(t, nil, "dev", "--data-dir", dir, "--port", "0")
	if code != exitFailed || !strings.Contains(stderr, "Another winnow dev uses the data directory "+dir) || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a second winnow dev: %d, %s", code, stderr)
	}

	stop()
	if _, err := net.DialTimeout("tcp", strings.TrimPrefix(baseURL, "http://"), time.Second); err == nil {
		t.Error("the server still listens after the stop")
	}

	_, second, _ := startDev(t, dir)
	if second == link {
		t.Error("the second start printed the same sign-in link")
	}
	code, _, stderr = runWinnow(t, nil, "user", "create", "ann@example.org", "--data-dir", dir)
	if code != exitFailed || !strings.Contains(stderr, "has an account already") {
		t.Errorf("the account of the first start is gone: %d, %s", code, stderr)
	}
}

// A killed process leaves its database running and its round in training; the next
// start goes on with both.
func TestDevAfterKill(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("trains for seconds")
	}
	dir := newDataDir(t)
	start := func() (*exec.Cmd, string) {
		cmd := exec.Command(os.Args[0], "dev", "--data-dir", dir, "--port", "0", "--demo=false")
		cmd.Env = append(os.Environ(), asProgram+"=1", "DATABASE_URL=")
		cmd.Stderr = t.Output()
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		_, link := awaitLink(t, out)
		return cmd, link
	}
	first, _ := start()
	defer first.Process.Kill()

	server, err := local.Start(t.Context(), filepath.Join(dir, "postgres"), local.Options{Database: "winnow"})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop(context.WithoutCancel(t.Context()))
	enqueue, err := jobs.NewEnqueue()
	if err != nil {
		t.Fatal(err)
	}
	store, err := db.Open(t.Context(), server.URL, db.Options{Enqueue: enqueue})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()

	// Long enough to be killed in the middle, even on a fast machine.
	settings := dbtest.Settings()
	settings.InputSize, settings.Epochs, settings.Batch = 16, 150, 4
	admin, _, err := store.UserByEmail(t.Context(), devAdmin)
	if err != nil {
		t.Fatal(err)
	}
	project := dbtest.Project(t, store, admin.ID, settings, 2, 10)
	for class := range 2 {
		dbtest.AddImages(t, store, project.ID, dbtest.Labeled(dbtest.Images(uint64(10+class), 8, settings.InputSize), class))
	}
	round, err := store.StartRound(t.Context(), admin.ID, project.ID)
	if err != nil {
		t.Fatal(err)
	}
	await := func(ok func(*winnow.Round) bool) *winnow.Round {
		deadline := time.After(2 * time.Minute)
		for {
			r, err := store.RoundByID(t.Context(), round.ID)
			if err != nil {
				t.Fatal(err)
			}
			if ok(r) {
				return r
			}
			select {
			case <-deadline:
				t.Fatalf("the round is %s in attempt %d, error %q", r.State, r.Attempt, r.Error)
			case <-time.After(5 * time.Millisecond):
			}
		}
	}
	await(func(r *winnow.Round) bool { return r.Progress.Epoch > 0 })
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed

	second, _ := start()
	defer second.Process.Kill()
	after := await(func(r *winnow.Round) bool { return r.State == winnow.RoundLabeling })
	if after.Attempt != 2 {
		t.Errorf("the round was opened by attempt %d, want 2", after.Attempt)
	}
	if err := second.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = second.Wait() // an interrupt ends this binary; cmd/winnow catches it
}
