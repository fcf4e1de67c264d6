package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"winnow"
	"winnow/password"
	"winnow/web"
)

const secret = "correct horse battery"

func (w *world) withPassword(t *testing.T, name string) winnow.User {
	t.Helper()
	hash, err := password.Hash(secret)
	if err != nil {
		t.Fatal(err)
	}
	u := winnow.User{Email: name + "@example.org", Name: name}
	if u.ID, err = w.store.CreateUser(t.Context(), u, hash); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := w.withPassword(t, "pat")
	for _, tc := range []struct {
		name, email, password, next string
		status                      int
		location                    string
	}{
		{"right", u.Email, secret, "", 303, "/projects"},
		{"address in capitals", " PAT@Example.org", secret, "", 303, "/projects"},
		{"back to where one was", u.Email, secret, "/projects/1/label", 303, "/projects/1/label"},
		{"not to another site", u.Email, secret, "//evil.example", 303, "/projects"},
		{"not to another site either", u.Email, secret, "https://evil.example", 303, "/projects"},
		{"nor by a backslash", u.Email, secret, `/\evil.example`, 303, "/projects"},
		{"wrong password", u.Email, "wrong password", "", 401, ""},
		{"nobody", "nobody@example.org", secret, "", 401, ""},
		{"no address", "pat", secret, "", 401, ""},
		{"person without a password", "viewer@example.org", "", "", 401, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := w.anonymous(t)
			got := c.post("/signin", url.Values{"email": {tc.email}, "password": {tc.password}, "next": {tc.next}})
			if got.status != tc.status || got.location != tc.location {
				t.Errorf("status %d to %q, want %d to %q", got.status, got.location, tc.status, tc.location)
			}
			in := c.get("/projects").status == 200
			if in != (tc.status == 303) {
				t.Errorf("signed in: %v", in)
			}
			if in {
				if c.post("/signout", nil); c.get("/projects").status != 303 {
					t.Error("signing out did not")
				}
			}
		})
	}
}

func TestSessionCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *web.Config) { c.SecureCookies = true })
	token, err := w.store.CreateSignInLink(t.Context(), w.site.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	got := w.anonymous(t).post("/signin/link/"+token, nil)
	cookie := got.header.Get("Set-Cookie")
	for _, want := range []string{"HttpOnly", "SameSite=Lax", "Secure", "Path=/"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("the cookie %q is not %s", cookie, want)
		}
	}
	if again := w.anonymous(t).post("/signin/link/"+token, nil); again.status != http.StatusGone && again.status != http.StatusNotFound {
		t.Errorf("the link a second time: status %d", again.status)
	}
}

func TestSignInIsLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *web.Config) { c.SignInAttempts = 3 })
	c := w.anonymous(t)
	var last answer
	for range 4 {
		last = c.post("/signin", url.Values{"email": {"a@example.org"}, "password": {"guess"}})
	}
	if last.status != http.StatusTooManyRequests || last.header.Get("Retry-After") == "" {
		t.Errorf("the fourth attempt: status %d", last.status)
	}
}

func TestPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "viewer")
	change := func(current, next string) answer {
		return c.post("/account", url.Values{"current": {current}, "password": {next}})
	}
	if got := change("", "short"); got.status != 422 || !strings.Contains(got.body, "at least 10") {
		t.Errorf("short: status %d", got.status)
	}
	if got := change("", secret); got.status != 303 {
		t.Fatalf("the first password: status %d: %s", got.status, got.body)
	}
	if got := change("wrong password", secret+"!"); got.status != 422 || !strings.Contains(got.body, "not your current password") {
		t.Errorf("wrong current password: status %d", got.status)
	}
	if got := change(secret, secret+"!"); got.status != 303 {
		t.Errorf("right current password: status %d", got.status)
	}
	if got := w.anonymous(t).post("/signin", url.Values{"email": {"viewer@example.org"}, "password": {secret + "!"}}); got.status != 303 {
		t.Errorf("signing in with it: status %d", got.status)
	}
}

// A session that somebody else may hold must not outlive the password.
func TestNewPasswordEndsOtherSessions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := w.withPassword(t, "pat")
	here, elsewhere, bystander := w.as(t, u), w.as(t, u), w.role(t, "viewer")
	link, err := w.store.CreateSignInLink(t.Context(), u.ID, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	signedIn := func(c *client) bool { return c.get("/projects").status == 200 }

	if got := here.post("/account", url.Values{"current": {"wrong password"}, "password": {secret + "!"}}); got.status != 422 || !signedIn(elsewhere) {
		t.Errorf("a change that was refused: status %d, signed in elsewhere: %v", got.status, signedIn(elsewhere))
	}
	if got := here.post("/account", url.Values{"current": {secret}, "password": {secret + "!"}}); got.status != 303 {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if !signedIn(here) || signedIn(elsewhere) || !signedIn(bystander) {
		t.Errorf("signed in here: %v, elsewhere: %v, somebody else: %v", signedIn(here), signedIn(elsewhere), signedIn(bystander))
	}
	if got := w.anonymous(t).post("/signin/link/"+link, nil); got.status != http.StatusGone {
		t.Errorf("a link from before: status %d", got.status)
	}
	if got := elsewhere.post("/signin", url.Values{"email": {u.Email}, "password": {secret + "!"}}); got.status != 303 || !signedIn(elsewhere) {
		t.Errorf("signing in again: status %d", got.status)
	}

	// As winnow user reset-password does.
	if err := w.store.SetPassword(t.Context(), u.ID, ""); err != nil {
		t.Fatal(err)
	}
	if signedIn(here) || signedIn(elsewhere) {
		t.Errorf("after a reset, signed in here: %v, elsewhere: %v", signedIn(here), signedIn(elsewhere))
	}
	if !signedIn(w.as(t, u)) {
		t.Error("the link after a reset does not sign in")
	}
}

func TestInvitation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *web.Config) { c.BaseURL = "https://winnow.example" })
	adm := w.role(t, "admin")
	people := fmt.Sprintf("/projects/%d/people", w.project.ID)
	invite := func(email string) string {
		t.Helper()
		got := adm.post(people+"/invites", url.Values{"email": {email}, "role": {"annotator"}})
		_, rest, ok := strings.Cut(got.body, "https://winnow.example/invite/")
		if got.status != 201 || !ok {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		token, _, _ := strings.Cut(rest, `"`)
		return token
	}
	token := invite("new@example.org")
	c := w.anonymous(t)
	if got := c.get("/invite/" + token); got.status != 200 || !strings.Contains(got.body, "new@example.org") {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	if got := c.post("/invite/"+token, url.Values{"name": {"New"}, "password": {"short"}}); got.status != 422 {
		t.Errorf("short password: status %d", got.status)
	}
	if got := c.post("/invite/"+token, url.Values{"name": {"New"}, "password": {secret}}); got.status != 303 {
		t.Fatalf("accept: status %d: %s", got.status, got.body)
	}
	if got := c.get(fmt.Sprintf("/projects/%d/label", w.project.ID)); got.status != 200 {
		t.Errorf("the new annotator cannot label: status %d", got.status)
	}
	if got := w.anonymous(t).get("/invite/" + token); got.status != 410 && got.status != 404 {
		t.Errorf("a used invitation: status %d", got.status)
	}
	outsider := w.role(t, "outsider")
	token = invite("outsider@example.org")
	open, err := w.store.Invites(t.Context(), w.project.ID)
	if err != nil || len(open) != 1 {
		t.Fatalf("open invitations: %v, %v", open, err)
	}
	revoke := fmt.Sprintf("%s/invites/%d/revoke", people, open[0].ID)
	if got := adm.get(people); !strings.Contains(got.body, `action="`+revoke+`"`) {
		t.Error("the people page has no button that revokes the invitation")
	}
	if got := adm.post(revoke, nil); got.status != 303 || strings.Contains(adm.get(people).body, revoke) {
		t.Errorf("revoke: status %d, or the invitation still stands there", got.status)
	}
	if got := outsider.get("/invite/" + token); got.status != 410 || !strings.Contains(got.body, "taken back") {
		t.Errorf("a revoked invitation: status %d: %s", got.status, got.body)
	}
	if got := outsider.post("/invite/"+token, nil); got.status != 410 {
		t.Errorf("joining by a revoked invitation: status %d", got.status)
	}
	if got := adm.post(revoke, nil); got.status != 404 {
		t.Errorf("revoking twice: status %d", got.status)
	}
	if got := outsider.post("/invite/"+invite("outsider@example.org"), nil); got.status != 303 {
		t.Errorf("joining with an account: status %d: %s", got.status, got.body)
	}
	if got := outsider.get(fmt.Sprintf("/projects/%d", w.project.ID)); got.status != 200 {
		t.Errorf("the joined member: status %d", got.status)
	}
}

func TestLastAdminStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "site")
	people := fmt.Sprintf("/projects/%d/people/members/", w.project.ID)
	if got := c.post(people+fmt.Sprint(w.people["admin"].ID), url.Values{"action": {"role"}, "role": {"viewer"}}); got.status != 303 {
		t.Fatalf("status %d", got.status)
	}
	if got := c.post(people+fmt.Sprint(w.site.ID), url.Values{"action": {"remove"}}); got.status != 409 {
		t.Errorf("removing the last admin: status %d, want 409", got.status)
	}
}
