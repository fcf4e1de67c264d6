package e2e

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/password"
)

// secret is every test person's password.
const secret = "correct horse battery"

// program builds winnow once, unless WINNOW_BIN names a built one.
var program = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("WINNOW_BIN"); path != "" {
		return path, nil
	}
	dir, err := os.MkdirTemp("", "winnow-e2e-")
	if err != nil {
		return "", err
	}
	atExit(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "winnow")
	build := exec.Command("go", "build", "-o", path, "winnow/cmd/winnow")
	build.Env = append(os.Environ(), "GOEXPERIMENT=simd")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build winnow: %w\n%s", err, out)
	}
	return path, nil
})

// world is one Winnow: a database of its own and a `winnow dev` on it, web server
// and worker in one process.
type world struct {
	t     testing.TB
	bin   string
	url   string // of the database
	store *db.Store
	port  int
	base  string // of the site
	log   *lockedBuffer

	data     string // directory for the process
	projects int    // made by openRound

	process *exec.Cmd
	exited  chan error
}

// newWorld starts a Winnow without projects that ends with the test.
func newWorld(t testing.TB) *world {
	t.Helper()
	if _, err := chromium(); err != nil {
		t.Skipf("no browser: %v (scripts/need.sh browser installs one)", err)
	}
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, bin: bin, url: dbtest.URL(t), port: freePort(t), data: t.TempDir(), log: &lockedBuffer{}}
	w.base = fmt.Sprintf("http://127.0.0.1:%d", w.port)
	if w.store, err = db.Open(t.Context(), w.url, db.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.store.Close)
	t.Cleanup(func() {
		w.stop()
		if t.Failed() {
			t.Logf("log of the server:\n%s", w.log)
		}
	})
	w.start()
	return w
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

// environment is what every winnow process of the world sees.
func (w *world) environment() []string {
	return append(os.Environ(),
		"DATABASE_URL="+w.url,
		fmt.Sprintf("PORT=%d", w.port),
		"WINNOW_DATA_DIR="+w.data,
		"WINNOW_DEMO=false",
		"WINNOW_LOG_FORMAT=text",
		"GOMAXPROCS=2",
	)
}

// start runs the process and waits until it answers.
func (w *world) start() {
	w.t.Helper()
	w.process = exec.Command(w.bin, "dev")
	w.process.Env = w.environment()
	w.process.Stdout, w.process.Stderr = w.log, w.log
	if err := w.process.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.exited = make(chan error, 1)
	go func() { w.exited <- w.process.Wait() }()
	w.eventually("the server answers", func() (bool, error) {
		select {
		case err := <-w.exited:
			w.process = nil
			return false, fmt.Errorf("winnow dev ended: %w\n%s", err, w.log)
		default:
		}
		response, err := http.Get(w.base + "/readyz")
		if err != nil {
			return false, nil
		}
		response.Body.Close()
		return response.StatusCode == http.StatusOK, nil
	})
}

// stop ends the process the polite way.
func (w *world) stop() {
	if w.process == nil {
		return
	}
	w.process.Process.Signal(syscall.SIGTERM)
	select {
	case <-w.exited:
	case <-time.After(30 * time.Second):
		w.t.Errorf("winnow dev does not stop on SIGTERM")
		w.process.Process.Kill()
		<-w.exited
	}
	w.process = nil
}

// kill ends the process with SIGKILL: it cannot clean up.
func (w *world) kill() {
	w.t.Helper()
	if err := w.process.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	<-w.exited
	w.process = nil
}

// winnow runs a command and returns what it wrote to the standard output.
func (w *world) winnow(args ...string) string {
	w.t.Helper()
	command := exec.Command(w.bin, args...)
	command.Env = w.environment()
	var stderr bytes.Buffer
	command.Stderr = &stderr
	out, err := command.Output()
	if err != nil {
		w.t.Fatalf("winnow %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return string(out)
}

// eventually waits for a condition of the world.
func (w *world) eventually(what string, condition func() (bool, error)) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, err := condition()
		if err != nil {
			w.t.Fatalf("waited until %s: %v", what, err)
		}
		if ok {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("waited too long until %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// person makes an account with the password secret.
func (w *world) person(name string, siteAdmin bool) winnow.User {
	w.t.Helper()
	hash, err := password.Hash(secret)
	if err != nil {
		w.t.Fatal(err)
	}
	u := winnow.User{Email: name + "@example.org", Name: name, SiteAdmin: siteAdmin}
	if u.ID, err = w.store.CreateUser(w.t.Context(), u, hash); err != nil {
		w.t.Fatal(err)
	}
	return u
}

// signIn opens a tab in which the person is signed in.
func (w *world) signIn(u winnow.User) *tab {
	w.t.Helper()
	b := newTab(w.t, w.base)
	b.signIn(u)
	return b
}

func (b *tab) signIn(u winnow.User) {
	b.t.Helper()
	b.open("/signin")
	b.fill("#email", u.Email)
	b.fill("#password", secret)
	b.click("main button[type=submit]")
	b.until(`!location.pathname.startsWith("/signin")`)
}

// project makes a project of the CIFAR-10 classes that the tests know, with
// settings small enough to train in seconds.
func (w *world) project(by winnow.User, name string, change func(*winnow.Settings)) *winnow.Project {
	w.t.Helper()
	classes, err := winnow.NewClasses(known)
	if err != nil {
		w.t.Fatal(err)
	}
	p := &winnow.Project{Name: name, Classes: classes, Settings: tinySettings()}
	if change != nil {
		change(&p.Settings)
	}
	if p.ID, err = w.store.CreateProject(w.t.Context(), by.ID, p); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// tinySettings train in seconds and still run every part of the method.
func tinySettings() winnow.Settings {
	s := winnow.DefaultSettings()
	s.Budget, s.Neighbours = 12, 20
	s.AuditShare = 0 // a round asks for as many images as its budget
	s.Width, s.InputSize = 4, 16
	s.Epochs, s.Batch, s.LRStep, s.CropPad = 3, 16, 2, 1
	s.LearningRate = 0.05
	return s
}

// client is somebody signed in without a browser, for requests that no page sends.
func (w *world) client(u winnow.User) *client {
	w.t.Helper()
	c := w.anonymous()
	if status, body := c.form("/signin", "email", u.Email, "password", secret); status != http.StatusSeeOther {
		w.t.Fatalf("sign in of %s: status %d\n%s", u.Email, status, body)
	}
	return c
}

// anonymous is a client that is not signed in.
func (w *world) anonymous() *client {
	return &client{t: w.t, base: w.base, http: &http.Client{
		Jar:           newJar(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// lockedBuffer collects the output of a process.
type lockedBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
