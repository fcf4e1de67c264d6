package web_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alexedwards/scs/pgxstore"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/handlers"
	"winnow/ml/eaoa"
	"winnow/web"
)

// world is a server on a database of its own, with a project and people in it.
type world struct {
	store    *db.Store
	server   *web.Server
	http     *httptest.Server
	importer *importer
	project  *winnow.Project
	round    *winnow.Round
	site     winnow.User            // admin of the site
	people   map[string]winnow.User // by role, and "outsider"
}

func newWorld(t *testing.T, change ...func(*web.Config)) *world {
	t.Helper()
	return newWorldWith(t, func(c *web.Config, _ *web.Deps) {
		for _, f := range change {
			f(c)
		}
	})
}

func newWorldWith(t *testing.T, change func(*web.Config, *web.Deps)) *world {
	t.Helper()
	w := &world{people: map[string]winnow.User{}, importer: &importer{}}
	w.store = dbtest.New(t, db.Options{
		NextK:   eaoa.NextK,
		Enqueue: func(context.Context, pgx.Tx, winnow.RoundID, int) error { return nil },
	})
	w.importer.store = w.store
	ctx := t.Context()
	w.site = winnow.User{Email: "site@example.org", Name: "Site", SiteAdmin: true}
	var err error
	if w.site.ID, err = w.store.CreateUser(ctx, w.site, ""); err != nil {
		t.Fatal(err)
	}
	w.project = dbtest.Project(t, w.store, w.site.ID, dbtest.Settings(), 3, 12)
	for _, role := range winnow.Roles {
		w.people[string(role)] = dbtest.Member(t, w.store, w.site.ID, w.project.ID, string(role), role)
	}
	w.people["outsider"] = dbtest.User(t, w.store, "outsider")
	w.people["victim"] = dbtest.Member(t, w.store, w.site.ID, w.project.ID, "victim", winnow.RoleViewer)
	w.round = dbtest.OpenRound(t, w.store, w.site.ID, w.project.ID)

	cfg := web.Config{UploadDir: t.TempDir(), MaxUpload: 1 << 20, SignInAttempts: 1000}
	deps := web.Deps{
		Log: slog.New(slog.DiscardHandler), Sessions: pgxstore.NewWithCleanupInterval(w.store.Pool(), 0),
		Access: w.store, Accounts: w.store, Projects: w.store, People: w.store, Invites: w.store, Tokens: w.store,
		Images: w.store, Imports: w.store, Rounds: w.store, Labels: w.store, Grid: w.store, Groups: w.store, API: w.store, Reviews: w.store, Annotate: w.store,
		Importer: w.importer, Ready: w.store.Ping, Listen: w.store.Listen,
	}
	change(&cfg, &deps)
	w.server = web.New(cfg, deps)
	t.Cleanup(w.server.Close)
	w.http = httptest.NewServer(w.server)
	t.Cleanup(w.http.Close)
	return w
}

// importer stands in for the job that reads ZIPs: it keeps what it was given.
type importer struct {
	store   *db.Store
	refuse  error
	uploads []handlers.Upload
	data    []byte
}

func (i *importer) BeginUpload(ctx context.Context, p *winnow.Project, by winnow.UserID, u handlers.Upload) (*winnow.Import, func(context.Context), error) {
	if i.refuse != nil {
		return nil, nil, i.refuse
	}
	var err error
	if i.data, err = os.ReadFile(u.Path); err != nil {
		return nil, nil, err
	}
	i.uploads = append(i.uploads, u)
	imp := &winnow.Import{ProjectID: p.ID, Source: u.Name, Split: u.Split, Labeled: u.Labeled, State: winnow.ImportRunning}
	if imp.ID, err = i.store.CreateImport(ctx, by, *imp); err != nil {
		return nil, nil, err
	}
	return imp, func(context.Context) { _ = os.Remove(u.Path) }, nil
}

// client is a browser without JavaScript. It does not follow redirects.
type client struct {
	t *testing.T
	*http.Client
	base string
}

func (w *world) anonymous(t *testing.T) *client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &client{t, &http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, w.http.URL}
}

// as signs a person in by a one-time link.
func (w *world) as(t *testing.T, u winnow.User) *client {
	t.Helper()
	token, err := w.store.CreateSignInLink(t.Context(), u.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	c := w.anonymous(t)
	if got := c.post("/signin/link/"+token, nil); got.status != http.StatusSeeOther {
		t.Fatalf("sign in: status %d", got.status)
	}
	return c
}

// role signs in the person with a role in the project: a winnow.Role, "outsider",
// "site" or "anonymous".
func (w *world) role(t *testing.T, role string) *client {
	t.Helper()
	switch role {
	case "anonymous":
		return w.anonymous(t)
	case "site":
		return w.as(t, w.site)
	default:
		u, ok := w.people[role]
		if !ok {
			t.Fatalf("no %s among %v", role, slices.Sorted(maps.Keys(w.people)))
		}
		return w.as(t, u)
	}
}

type answer struct {
	status   int
	header   http.Header
	location string
	body     string
}

func (c *client) do(req *http.Request) answer {
	c.t.Helper()
	res, err := c.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header, res.Header.Get("Location"), string(body)}
}

func (c *client) request(method, path string, form url.Values) *http.Request {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), method, c.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		c.t.Fatal(err)
	}
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	return req
}

func (c *client) get(path string) answer {
	c.t.Helper()
	return c.do(c.request(http.MethodGet, path, nil))
}

func (c *client) post(path string, form url.Values) answer {
	c.t.Helper()
	return c.do(c.request(http.MethodPost, path, form))
}

// noFiles checks that no upload was left behind.
func noFiles(t *testing.T, dir string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
