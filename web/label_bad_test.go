package web_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alexedwards/scs/pgxstore"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/web"
)

// The table "What is refused, and how" of docs/labeling.md, against the real handlers
// and a real Postgres.

// labelJSON posts a body to one of the labeling page's addresses, as a script does.
func (c *client) labelJSON(project winnow.ProjectID, verb, body string, header ...string) answer {
	c.t.Helper()
	return c.do(c.labelRequest(project, verb, strings.NewReader(body), header...))
}

func (c *client) labelRequest(project winnow.ProjectID, verb string, body io.Reader, header ...string) *http.Request {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, fmt.Sprintf("%s/projects/%d/label/%s", c.base, project, verb), body)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// refusal checks that an answer is a problem with that status and code.
func refusal(t *testing.T, got answer, status int, code winnow.Code) {
	t.Helper()
	var p struct{ Code, Detail string }
	err := json.Unmarshal([]byte(got.body), &p)
	if got.status != status || err != nil || p.Code != string(code) || p.Detail == "" {
		t.Errorf("status %d, %v: %s; want %d %s", got.status, err, got.body, status, code)
	}
}

// noDecision checks that nothing was recorded.
func (w *world) noDecision(t *testing.T) {
	t.Helper()
	var events, late int
	if err := w.store.Pool().QueryRow(t.Context(), `SELECT (SELECT count(*) FROM label_events), (SELECT count(*) FROM late_decisions)`).Scan(&events, &late); err != nil {
		t.Fatal(err)
	}
	if events != 0 || late != 0 {
		t.Errorf("%d events and %d late decisions were recorded", events, late)
	}
	for _, broken := range dbtest.Broken(t, w.store) {
		t.Error(broken)
	}
}

func TestBadDecisions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.people["admin"].ID
	other := dbtest.Project(t, w.store, owner, dbtest.Settings(), 5, 12)
	dbtest.OpenRound(t, w.store, owner, other.ID)
	_, foreign, err := w.store.Claim(t.Context(), other.ID, owner, 1)
	if err != nil {
		t.Fatal(err)
	}
	annotator := w.people["annotator"]
	_, items, err := w.store.Claim(t.Context(), w.project.ID, annotator.ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	item := items[0].ID
	decision := func(change string) string {
		return fmt.Sprintf(`{"item": %d, "verdict": "unknown", "class": -1, "client_key": "k", "duration_ms": 5%s}`, item, change)
	}
	c := w.role(t, "annotator")
	for name, tc := range map[string]struct {
		body   string
		status int
		code   winnow.Code
	}{
		"no such item":                  {decision(`, "item": 999999`), 404, "not_found"},
		"item 0":                        {decision(`, "item": 0`), 404, "not_found"},
		"a negative item":               {decision(`, "item": -1`), 404, "not_found"},
		"the largest item":              {decision(`, "item": 9223372036854775807`), 404, "not_found"},
		"an item beyond all numbers":    {decision(`, "item": 9223372036854775808`), 422, "invalid"},
		"half an item":                  {decision(`, "item": 1.5`), 422, "invalid"},
		"an item in words":              {decision(`, "item": "1"`), 422, "invalid"},
		"another project's item":        {decision(fmt.Sprintf(`, "item": %d`, foreign[0].ID)), 404, "not_found"},
		"another project's class":       {decision(`, "verdict": "known", "class": 3`), 422, "invalid"},
		"a known without a class":       {fmt.Sprintf(`{"item": %d, "verdict": "known", "client_key": "k"}`, item), 422, "invalid"},
		"a negative class":              {decision(`, "verdict": "known"`), 422, "invalid"},
		"a class beyond all numbers":    {decision(`, "verdict": "known", "class": 1e30`), 422, "invalid"},
		"no verdict":                    {decision(`, "verdict": ""`), 422, "invalid"},
		"a verdict nobody knows":        {decision(`, "verdict": "maybe"`), 422, "invalid"},
		"a verdict with NUL":            {decision(`, "verdict": "known\u0000"`), 422, "invalid"},
		"no key":                        {decision(`, "client_key": ""`), 422, "invalid"},
		"a key that is too long":        {decision(`, "client_key": "` + strings.Repeat("k", 65) + `"`), 422, "invalid"},
		"a key with NUL":                {decision(`, "client_key": "k\u0000"`), 422, "invalid"},
		"a key that is no UTF-8":        {decision(`, "client_key": "k` + "\xff\xfe" + `"`), 422, "invalid"},
		"a key with half a character":   {decision(`, "client_key": "k\ud800"`), 422, "invalid"},
		"a key with a line end":         {decision(`, "client_key": "k\n"`), 422, "invalid"},
		"a duration before the press":   {decision(`, "duration_ms": -1`), 422, "invalid"},
		"a duration of more than a day": {decision(`, "duration_ms": 86400001`), 422, "invalid"},
		"somebody else's page":          {decision(fmt.Sprintf(`, "user": %d`, w.site.ID)), 401, "unauthenticated"},
		"nothing":                       {``, 422, "invalid"},
		"half":                          {`{"item": 1`, 422, "invalid"},
		"a list":                        {`[]`, 422, "invalid"},
		"two at once":                   {decision("") + decision(""), 422, "invalid"},
		"a form":                        {`item=1&answer=unknown`, 422, "invalid"},
		"null":                          {`null`, 404, "not_found"},
		"deep":                          {strings.Repeat(`{"a":`, 20_000), 422, "invalid"},
		"NUL bytes":                     {"\x00\x00", 422, "invalid"},
	} {
		t.Run(name, func(t *testing.T) { refusal(t, c.labelJSON(w.project.ID, "decide", tc.body), tc.status, tc.code) })
	}
	t.Run("wrong type", func(t *testing.T) {
		refusal(t, c.labelJSON(w.project.ID, "decide", decision(""), "Content-Type", "text/plain"), 415, "unsupported")
	})
	t.Run("no type", func(t *testing.T) {
		refusal(t, c.labelJSON(w.project.ID, "decide", decision(""), "Content-Type", ""), 415, "unsupported")
	})
	t.Run("from another site", func(t *testing.T) {
		refusal(t, c.labelJSON(w.project.ID, "decide", decision(""), "Origin", "https://elsewhere.example", "Sec-Fetch-Site", "cross-site"), 403, "forbidden")
	})
	t.Run("signed out", func(t *testing.T) {
		refusal(t, w.anonymous(t).labelJSON(w.project.ID, "decide", decision("")), 401, "unauthenticated")
	})
	t.Run("a viewer", func(t *testing.T) {
		refusal(t, w.role(t, "viewer").labelJSON(w.project.ID, "decide", decision("")), 403, "forbidden")
	})
	t.Run("of a project one is not in", func(t *testing.T) {
		refusal(t, c.labelJSON(other.ID, "decide", decision(fmt.Sprintf(`, "item": %d`, foreign[0].ID))), 404, "not_found")
	})
	w.noDecision(t)
}

// endless is a body that counts what was taken of it.
type endless struct{ left, taken atomic.Int64 }

func (e *endless) Read(p []byte) (int, error) {
	n := min(int64(len(p)), e.left.Load())
	if n == 0 {
		return 0, io.EOF
	}
	for i := range p[:n] {
		p[i] = ' '
	}
	e.left.Add(-n)
	e.taken.Add(n)
	return int(n), nil
}

// TestLargeBodies sends 100 MB: they are refused after the first part, and the rest is
// never taken.
func TestLargeBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "annotator")
	for _, verb := range []string{"claim", "decide", "undo", "renew", "release", "flag"} {
		t.Run(verb, func(t *testing.T) {
			var body endless
			body.left.Store(100 << 20)
			response, err := c.Do(c.labelRequest(w.project.ID, verb, &body))
			if err == nil { // or the connection broke while the rest was still being sent
				defer response.Body.Close()
				data, _ := io.ReadAll(response.Body)
				refusal(t, answer{status: response.StatusCode, body: string(data)}, 413, "too_large")
			}
			// What lies between the two ends in buffers is the rest.
			if taken := body.taken.Load(); taken > 16<<20 {
				t.Errorf("%d bytes were taken", taken)
			}
		})
	}
	w.noDecision(t)
}

// TestReplays sends a decision again, as it was and otherwise.
func TestReplays(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, items, err := w.store.Claim(t.Context(), w.project.ID, w.people["annotator"].ID, 2)
	if err != nil {
		t.Fatal(err)
	}
	c := w.role(t, "annotator")
	send := func(item winnow.ItemID, verdict string, class int) answer {
		return c.labelJSON(w.project.ID, "decide", fmt.Sprintf(`{"item": %d, "verdict": %q, "class": %d, "client_key": "k"}`, item, verdict, class))
	}
	event := func(a answer) (e struct {
		Event    int64
		Replayed bool
	},
	) {
		if err := json.Unmarshal([]byte(a.body), &e); err != nil || a.status != 200 {
			t.Errorf("status %d, %v: %s", a.status, err, a.body)
		}
		return e
	}
	first := event(send(items[0].ID, "known", 1))
	if again := event(send(items[0].ID, "known", 1)); again.Event != first.Event || !again.Replayed || first.Replayed {
		t.Errorf("first %+v, again %+v", first, again)
	}
	refusal(t, send(items[0].ID, "unknown", -1), 409, "conflict")
	refusal(t, send(items[0].ID, "known", 2), 409, "conflict")
	refusal(t, send(items[1].ID, "known", 1), 409, "conflict")
	refusal(t, c.labelJSON(w.project.ID, "undo", `{"client_key": "k"}`), 422, "invalid")
	var verdict string
	var class, events int
	err = w.store.Pool().QueryRow(t.Context(), `
		SELECT verdict, class, (SELECT count(*) FROM label_events) FROM query_items WHERE id = $1`, items[0].ID).Scan(&verdict, &class, &events)
	if err != nil || verdict != "known" || class != 1 || events != 1 {
		t.Errorf("%s %d with %d events, %v: the first was not kept", verdict, class, events, err)
	}
	for _, broken := range dbtest.Broken(t, w.store) {
		t.Error(broken)
	}
}

// TestForeignLeases has somebody act on what another person holds.
func TestForeignLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, annotator := w.role(t, "admin"), w.role(t, "annotator")
	_, items, err := w.store.Claim(t.Context(), w.project.ID, w.people["admin"].ID, 1)
	if err != nil {
		t.Fatal(err)
	}
	item := items[0].ID
	decide := func(c *client, key string) answer {
		return c.labelJSON(w.project.ID, "decide", fmt.Sprintf(`{"item": %d, "verdict": "unknown", "client_key": %q}`, item, key))
	}
	late := func(want int) {
		t.Helper()
		var got int
		if err := w.store.Pool().QueryRow(t.Context(), `SELECT count(*) FROM late_decisions WHERE item_id = $1`, item).Scan(&got); err != nil || got != want {
			t.Errorf("%d late decisions are on record, want %d, %v", got, want, err)
		}
	}
	mine := func() string {
		return fmt.Sprintf(`{"items": [%d, 0, -1, 999999], "as_of": "2099-01-01T00:00:00Z"}`, item)
	}

	refusal(t, decide(annotator, "a"), 409, "conflict")
	late(1)
	if got := annotator.labelJSON(w.project.ID, "renew", mine()); got.status != 200 || !strings.Contains(got.body, `"kept":[]`) {
		t.Errorf("renew: status %d: %s", got.status, got.body)
	}
	if got := annotator.labelJSON(w.project.ID, "release", mine()); got.status != 204 {
		t.Errorf("release: status %d: %s", got.status, got.body)
	}
	refusal(t, annotator.labelJSON(w.project.ID, "flag", fmt.Sprintf(`{"item": %d, "note": "mine?"}`, item)), 404, "not_found")
	if got := admin.labelJSON(w.project.ID, "renew", mine()); !strings.Contains(got.body, fmt.Sprintf(`"kept":[%d]`, item)) {
		t.Errorf("the holder lost it: %s", got.body)
	}

	// The holder's lease runs out: while nobody takes the item, their answer counts.
	if _, err := w.store.Pool().Exec(t.Context(), `UPDATE item_answers SET lease_until = now() - interval '1 hour' WHERE item_id = $1`, item); err != nil {
		t.Fatal(err)
	}
	if got := decide(admin, "b"); got.status != 200 {
		t.Errorf("after the lease: status %d: %s", got.status, got.body)
	}
	refusal(t, decide(annotator, "c"), 409, "conflict")
	late(2)
	refusal(t, annotator.labelJSON(w.project.ID, "undo", fmt.Sprintf(`{"item": %d, "client_key": "d"}`, item)), 409, "conflict")
	for verb, body := range map[string]string{
		"claim":   `{"n": 1000000}`,
		"renew":   `{"items": [` + strings.Repeat("1,", 100) + `1]}`,
		"release": `{"items": [1], "as_of": "yesterday"}`,
		"undo":    `{"client_key": "\u0000"}`,
		"flag":    fmt.Sprintf(`{"item": %d, "note": "\u0000"}`, item),
	} {
		t.Run(verb, func(t *testing.T) { refusal(t, annotator.labelJSON(w.project.ID, verb, body), 422, "invalid") })
	}
	for _, broken := range dbtest.Broken(t, w.store) {
		t.Error(broken)
	}
}

// TestClockSkew has two web servers of one site, one of them two hours ahead: they
// agree on who holds what.
func TestClockSkew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ahead := func() time.Time { return time.Now().Add(2 * time.Hour) }
	store, err := db.Open(t.Context(), w.store.Pool().Config().ConnString(), db.Options{Now: ahead})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	second := web.New(web.Config{UploadDir: t.TempDir(), SignInAttempts: 1000}, web.Deps{
		Log: slog.New(slog.DiscardHandler), Now: ahead, Sessions: pgxstore.NewWithCleanupInterval(store.Pool(), 0),
		Access: store, Accounts: store, Projects: store, People: store, Invites: store, Tokens: store,
		Images: store, Imports: store, Rounds: store, Labels: store, API: store,
	})
	t.Cleanup(second.Close)
	server := httptest.NewServer(second)
	t.Cleanup(server.Close)

	claim := func(c *client) (claimed struct {
		Items []struct{ ID winnow.ItemID }
		AsOf  string `json:"as_of"`
	},
	) {
		t.Helper()
		if err := json.Unmarshal([]byte(c.labelJSON(w.project.ID, "claim", `{"n": 2}`).body), &claimed); err != nil || len(claimed.Items) != 2 {
			t.Fatalf("claim: %+v, %v", claimed, err)
		}
		return claimed
	}
	admin, annotator := w.role(t, "admin"), w.role(t, "annotator")
	held := claim(admin)
	annotator.base = server.URL // whose lease ran out long ago by that server's clock
	others := claim(annotator)
	for _, a := range held.Items {
		for _, b := range others.Items {
			if a.ID == b.ID {
				t.Errorf("item %d is with two people", a.ID)
			}
		}
	}
	refusal(t, annotator.labelJSON(w.project.ID, "decide", fmt.Sprintf(`{"item": %d, "verdict": "unknown", "client_key": "a"}`, held.Items[0].ID)), 409, "conflict")
	// A page may talk to either: its claim by the one stands with the other.
	annotator.base = admin.base
	if got := annotator.labelJSON(w.project.ID, "decide", fmt.Sprintf(`{"item": %d, "verdict": "unknown", "client_key": "b"}`, others.Items[0].ID)); got.status != 200 {
		t.Errorf("status %d: %s", got.status, got.body)
	}
	// The plain form says when its page was made: a clock that moved must not cost the answer.
	form := map[string][]string{
		"item": {fmt.Sprint(held.Items[0].ID)}, "answer": {"unknown"}, "client_key": {"c"},
		"shown_at": {fmt.Sprint(time.Now().Add(time.Hour).UnixMilli())},
	}
	if got := admin.post(fmt.Sprintf("/projects/%d/label", w.project.ID), form); got.status != 303 {
		t.Errorf("a page from the future: status %d: %s", got.status, got.body)
	}
	for _, broken := range dbtest.Broken(t, w.store) {
		t.Error(broken)
	}
}
