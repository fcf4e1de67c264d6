package app

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// What goes wrong at a start is one line that says what to do.
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { taken.Close() })
	_, takenPort, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	empty := dbtest.EmptyURL(t)
	tests := []struct {
		name string
		env  env
		args []string
		code int
		want []string // all in the one line
	}{
		{
			"dev on a taken port", nil,
			[]string{"dev", "--data-dir", newDataDir(t), "--port", takenPort},
			exitFailed,
			[]string{"127.0.0.1:" + takenPort, "--port (PORT)"},
		},
		{
			"dev in a file", nil,
			[]string{"dev", "--data-dir", filepath.Join(file, "data")},
			exitFailed,
			[]string{file, "--data-dir (WINNOW_DATA_DIR)"},
		},
		{
			"dev without Postgres", nil,
			[]string{"dev", "--data-dir", newDataDir(t), "--port", "0", "--postgres-bin", file},
			exitFailed,
			[]string{file, "initdb"},
		},
		{
			"dev without a database server",
			env{"DATABASE_URL": "postgres://winnow:hunter2@127.0.0.1:1/winnow"},
			[]string{"dev", "--data-dir", newDataDir(t), "--port", "0"},
			exitFailed,
			[]string{`"winnow" at 127.0.0.1:1`, "DATABASE_URL"},
		},
		{"serve without a database", nil, []string{"serve"}, exitUsage, []string{"DATABASE_URL", "winnow dev"}},
		{"worker without a database", nil, []string{"worker"}, exitUsage, []string{"DATABASE_URL", "winnow dev"}},
		{
			"serve without a database server",
			env{"DATABASE_URL": "postgres://winnow:hunter2@127.0.0.1:1/winnow"},
			[]string{"serve"},
			exitFailed,
			[]string{`"winnow" at 127.0.0.1:1`, "DATABASE_URL"},
		},
		{"serve with an old schema", env{"DATABASE_URL": empty}, []string{"serve", "--port", "0"}, exitFailed, []string{"version 0", "winnow migrate up"}},
		{"worker with an old schema", env{"DATABASE_URL": empty}, []string{"worker"}, exitFailed, []string{"version 0", "winnow migrate up"}},
		{"serve on a taken port", env{"DATABASE_URL": dbtest.URL(t), "PORT": takenPort}, []string{"serve"}, exitFailed, []string{"127.0.0.1:" + takenPort, "--port (PORT)"}},
		{"worker with a backend that is not there", env{"DATABASE_URL": dbtest.URL(t)}, []string{"worker", "--backend", "abacus"}, exitFailed, []string{"backend", "abacus", "xla:cuda"}},
		{"migrate without a database server", env{"DATABASE_URL": "postgres://winnow:hunter2@127.0.0.1:1/winnow"}, []string{"migrate", "up"}, exitFailed, []string{"127.0.0.1:1", "DATABASE_URL"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := runWinnow(t, tt.env, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d", code, tt.code)
			}
			line, rest, _ := strings.Cut(stderr, "\n")
			for _, want := range tt.want {
				if !strings.Contains(line, want) {
					t.Errorf("%q does not say %q", line, want)
				}
			}
			if code == exitFailed && rest != "" {
				t.Errorf("more than one line: %q", stderr)
			}
			if stdout != "" || strings.Contains(stderr, "hunter2") {
				t.Errorf("standard output %q, standard error %q", stdout, stderr)
			}
		})
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	e := env{"DATABASE_URL": dbtest.EmptyURL(t)}
	if code, stdout, stderr := runWinnow(t, e, "migrate", "status"); code != exitFailed || !strings.Contains(stdout, "version 0") || !strings.Contains(stderr, "winnow migrate up") {
		t.Errorf("status of an empty database: %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := runWinnow(t, e, "migrate", "up"); code != exitDone || !strings.Contains(stdout, "went from version 0") {
		t.Errorf("up: %d, %s%s", code, stdout, stderr)
	}
	if code, stdout, stderr := runWinnow(t, e, "migrate", "up"); code != exitDone || !strings.Contains(stdout, "up to date") {
		t.Errorf("up again: %d, %s%s", code, stdout, stderr)
	}
	if code, _, stderr := runWinnow(t, e, "migrate", "status"); code != exitDone {
		t.Errorf("status afterwards: %d, %s", code, stderr)
	}
	if code, _, _ := runWinnow(t, e, "migrate"); code != exitUsage {
		t.Errorf("migrate alone: %d, want %d", code, exitUsage)
	}
}

func TestUserCommands(t *testing.T) {
	t.Parallel()
	e := env{"DATABASE_URL": dbtest.URL(t), "WINNOW_BASE_URL": "https://winnow.example.org"}
	store, err := db.Open(t.Context(), e["DATABASE_URL"], db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)

	code, stdout, stderr := runWinnow(t, e, "user", "create", "Ann@Example.org", "--admin")
	link := strings.TrimSpace(stdout)
	secret, ok := strings.CutPrefix(link, "https://winnow.example.org/signin/link/")
	if code != exitDone || !ok {
		t.Fatalf("create: %d, %s%s", code, stdout, stderr)
	}
	id, err := store.RedeemSignInLink(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	ann, err := store.User(t.Context(), id)
	if err != nil || ann.Email != "ann@example.org" || ann.Name != "Ann" || !ann.SiteAdmin {
		t.Errorf("the account is %+v, %v", ann, err)
	}

	if err := store.SetPassword(t.Context(), id, "a hash"); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = runWinnow(t, e, "user", "reset-password", "ann@example.org")
	if code != exitDone || !strings.Contains(stdout, "/signin/link/") {
		t.Errorf("reset: %d, %s%s", code, stdout, stderr)
	}
	if _, hash, err := store.UserByEmail(t.Context(), "ann@example.org"); err != nil || hash != "" {
		t.Errorf("after the reset the hash is %q, %v", hash, err)
	}

	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"twice", []string{"create", "ann@example.org"}, exitFailed, "has an account already"},
		{"no address", []string{"create", "ann"}, exitFailed, "not an e-mail address"},
		{"nothing", []string{"create"}, exitUsage, "accepts 1 arg"},
		{"reset nobody", []string{"reset-password", "bob@example.org"}, exitFailed, "No account has the address"},
	} {
		if code, _, stderr := runWinnow(t, e, append([]string{"user"}, tt.args...)...); code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: %d, %s", tt.name, code, stderr)
		}
	}
}

func TestReadPassword(t *testing.T) {
	t.Parallel()
	if hash, err := readPassword(strings.NewReader("ignored"), false); hash != "" || err != nil {
		t.Errorf("not asked for: %q, %v", hash, err)
	}
	if hash, err := readPassword(strings.NewReader("correct horse\nmore"), true); !strings.HasPrefix(hash, "$argon2id$") || err != nil {
		t.Errorf("a good one: %q, %v", hash, err)
	}
	if _, err := readPassword(strings.NewReader("short\n"), true); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("a short one: %v", err)
	}
}

func TestTokenCreate(t *testing.T) {
	t.Parallel()
	e := env{"DATABASE_URL": dbtest.URL(t)}
	store, err := db.Open(t.Context(), e["DATABASE_URL"], db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	ann, bob := dbtest.User(t, store, "ann"), dbtest.User(t, store, "bob")
	project := dbtest.Project(t, store, ann.ID, dbtest.Settings(), 2, 1)

	code, stdout, stderr := runWinnow(t, e, "token", "create", "--project", project.Name, "--user", ann.Email, "--days", "7")
	if code != exitDone {
		t.Fatalf("create: %d, %s", code, stderr)
	}
	token, user, err := store.UserByToken(t.Context(), strings.TrimSpace(stdout))
	if err != nil || user.ID != ann.ID || token.ProjectID != project.ID {
		t.Errorf("the token is %+v of %+v, %v", token, user, err)
	}
	for _, tt := range []struct {
		name string
		args []string
		code int
		want string
	}{
		{"not a member", []string{"--project", project.Name, "--user", bob.Email}, exitFailed, "is not a member"},
		{"unknown project", []string{"--project", "Nothing", "--user", ann.Email}, exitFailed, "no project"},
		{"without a project", []string{"--user", ann.Email}, exitUsage, `"project" not set`},
		{"for no time", []string{"--project", project.Name, "--user", ann.Email, "--days", "0"}, exitUsage, "--days"},
	} {
		code, _, stderr := runWinnow(t, e, append([]string{"token", "create"}, tt.args...)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: %d, %s", tt.name, code, stderr)
		}
	}
}

func TestHealthcheck(t *testing.T) {
	t.Parallel()
	status := make(chan int, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(<-status) }))
	t.Cleanup(server.Close)
	u, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	e := env{"PORT": u.Port(), "WINNOW_HOST": "0.0.0.0", "WINNOW_BASE_URL": "https://elsewhere.example.org"}
	for code, want := range map[int]int{http.StatusOK: exitDone, http.StatusServiceUnavailable: exitFailed} {
		status <- code
		if got, _, stderr := runWinnow(t, e, "healthcheck"); got != want {
			t.Errorf("the server answers %d: exit code %d, want %d: %s", code, got, want, stderr)
		}
	}
	server.Close()
	if got, _, stderr := runWinnow(t, e, "healthcheck"); got != exitFailed || !strings.Contains(stderr, "does not answer") {
		t.Errorf("no server: %d, %s", got, stderr)
	}
}
