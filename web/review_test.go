package web_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"winnow"
	"winnow/db/dbtest"
)

// disputedWorld is a world with a second project, of overlap 2, whose first image has
// two answers and no majority, whose second is flagged, and whose third is gold.
type disputedWorld struct {
	*world
	ann, bob winnow.User
	items    []winnow.Item
	base     string // address of the project
}

func newDisputedWorld(t *testing.T) *disputedWorld {
	t.Helper()
	ctx := t.Context()
	w := &disputedWorld{world: newWorld(t)}
	settings := dbtest.Settings()
	settings.Overlap = 2
	w.project = dbtest.Project(t, w.store, w.people["admin"].ID, settings, 3, 5)
	dbtest.OpenRound(t, w.store, w.site.ID, w.project.ID)
	w.base = fmt.Sprintf("/projects/%d", w.project.ID)
	w.ann = dbtest.Member(t, w.store, w.site.ID, w.project.ID, "ann", winnow.RoleAnnotator)
	w.bob = winnow.User{Email: "bob@example.org"} // has no name
	var err error
	if w.bob.ID, err = w.store.CreateUser(ctx, w.bob, ""); err != nil {
		t.Fatal(err)
	}
	dbtest.Join(t, w.store, w.site.ID, w.project.ID, w.bob, winnow.RoleAnnotator)
	for who, u := range []winnow.User{w.ann, w.bob} {
		_, items, err := w.store.Claim(ctx, w.project.ID, u.ID, 5)
		if err != nil {
			t.Fatal(err)
		}
		w.items = items
		for i, item := range items[:4] {
			d := winnow.Decision{ItemID: item.ID, Verdict: winnow.VerdictKnown, ClientKey: fmt.Sprint(i), DurationMS: 1200}
			if i == 0 {
				d.Class = who
			}
			if _, err := w.store.Decide(ctx, w.project.ID, u.ID, d); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.store.Flag(ctx, w.project.ID, w.bob.ID, w.items[1].ID, `<script>alert("flag")</script>`); err != nil {
		t.Fatal(err)
	}
	if err := w.store.SetGold(ctx, w.project.ID, w.site.ID, w.items[2].ImageID, true); err != nil {
		t.Fatal(err)
	}
	return w
}

// Every page about answers obeys the rules of a page, shows people without a name by
// their address, and runs nothing that somebody wrote into a flag.
func TestAnswerPages(t *testing.T) {
	t.Parallel()
	w := newDisputedWorld(t)
	c := w.role(t, "site")
	for path, want := range map[string]string{
		"/review":       "2 answers, no majority",
		"/review?end=1": "That was the last one",
		"/review?after=" + fmt.Sprint(w.items[0].ID): `Flagged by bob@example.org`,
		"/annotators":                                 "bob@example.org",
		fmt.Sprintf("/annotators/%d", w.bob.ID):       "By day",
		fmt.Sprintf("/images?by=%d", w.bob.ID):        "What bob@example.org answered",
		"/images?gold=true":                           "Gold set",
		"/images?answers=differ":                      "No image is like that",
		fmt.Sprintf("/images/%d", w.items[2].ImageID): "Take out of the gold set",
		fmt.Sprintf("/images/%d", w.items[1].ImageID): "Make it gold",
		"/rounds/0": "1 disagreement and 1 flagged image wait for you",
		"":          "Review",
	} {
		got := c.get(w.base + path)
		if got.status != http.StatusOK || !strings.Contains(got.body, want) {
			t.Errorf("%s: status %d, and does not say %q", path, got.status, want)
		}
		if strings.Contains(got.body, "<script>alert") {
			t.Errorf("%s: a flag's note is not escaped", path)
		}
		checkPage(t, got.body)
	}
	for path, status := range map[string]int{
		"/review?after=x": 422, "/images?answers=odd": 422, "/images?by=x": 422, "/annotators/999999": 404, "/annotators/x": 404,
		"/rounds/0?slice=odd": 422,
	} {
		if got := c.get(w.base + path); got.status != status {
			t.Errorf("%s: status %d, want %d", path, got.status, status)
		}
	}
}

// Bad corrections are refused with the status of what is wrong, and change nothing.
func TestBadCorrections(t *testing.T) {
	t.Parallel()
	w := newDisputedWorld(t)
	c := w.role(t, "admin")
	good := url.Values{
		"item": {fmt.Sprint(w.items[0].ID)}, "image": {fmt.Sprint(w.items[0].ImageID)}, "answer": {"known:2"}, "client_key": {"key"},
	}
	with := func(pairs ...string) url.Values {
		form := url.Values{}
		for k, v := range good {
			form[k] = v
		}
		for i := 0; i < len(pairs); i += 2 {
			form.Set(pairs[i], pairs[i+1])
		}
		return form
	}
	elsewhere, _, err := w.store.Images(t.Context(), w.project.ID-1, winnow.ImageFilter{}, winnow.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		form   url.Values
		status int
	}{
		"no image":                    {with("image", ""), 422},
		"no item":                     {with("item", "x"), 422},
		"no such class":               {with("answer", "known:3"), 422},
		"a class that is no number":   {with("answer", "known:x"), 422},
		"no such verdict":             {with("answer", "maybe"), 422},
		"no client key":               {with("client_key", ""), 422},
		"an image of another project": {with("image", fmt.Sprint(elsewhere[0].ID)), 404},
		"an image without a label":    {with("image", fmt.Sprint(w.items[4].ImageID)), 409},
	} {
		if got := c.post(w.base+"/review", tc.form); got.status != tc.status {
			t.Errorf("%s: status %d, want %d", name, got.status, tc.status)
		} else if got.status != 404 {
			checkPage(t, got.body)
		}
	}
	// The same twice is one correction; the same key for something else is refused.
	for range 2 {
		if got := c.post(w.base+"/review", good); got.status != http.StatusSeeOther {
			t.Fatalf("a good correction: status %d", got.status)
		}
	}
	if got := c.post(w.base+"/review", with("answer", "unknown")); got.status != http.StatusConflict {
		t.Errorf("another answer under the same key: status %d, want 409", got.status)
	}
	history, err := w.store.ImageHistory(t.Context(), w.project.ID, w.items[0].ImageID)
	if err != nil || len(history) != 3 || history[0].Kind != winnow.EventCorrection || !history[0].Stands || history[0].Class != 2 {
		t.Errorf("history: %+v, %v", history, err)
	}
	if got := c.post(fmt.Sprintf("%s/images/%d/gold", w.base, w.items[4].ImageID), url.Values{"gold": {"true"}}); got.status != http.StatusConflict {
		t.Errorf("gold without a label: status %d, want 409", got.status)
	}
	if got := c.post(fmt.Sprintf("%s/images/%d/correct", w.base, w.items[3].ImageID), url.Values{"answer": {"unknown"}, "client_key": {"k2"}}); got.status != http.StatusSeeOther {
		t.Errorf("from the image's page: status %d", got.status)
	}
}

// An annotator finds out nothing of the gold set, nor of what others answered.
func TestGoldIsNotTold(t *testing.T) {
	t.Parallel()
	w := newDisputedWorld(t)
	c := w.as(t, w.ann)
	for _, path := range []string{
		"/images?gold=true", "/images?answers=gold-wrong", "/images?answers=differ", "/rounds/0?slice=gold",
		fmt.Sprintf("/images?by=%d", w.bob.ID), fmt.Sprintf("/images?by=%d&answers=false-known", w.ann.ID),
	} {
		if got := c.get(w.base + path); got.status != http.StatusForbidden {
			t.Errorf("%s: status %d, want 403", path, got.status)
		}
	}
	for _, path := range []string{
		"/annotators/me", fmt.Sprintf("/images?by=%d", w.ann.ID), fmt.Sprintf("/images/%d", w.items[2].ImageID), "/rounds/0", "",
	} {
		got := c.get(w.base + path)
		if got.status != http.StatusOK {
			t.Errorf("%s: status %d", path, got.status)
		}
		for _, word := range []string{"gold set", "Gold set", "Make it gold", "/review"} {
			if strings.Contains(got.body, word) {
				t.Errorf("%s says %q", path, word)
			}
		}
	}
}

func TestAPIAnswersAndCorrections(t *testing.T) {
	t.Parallel()
	w := newDisputedWorld(t)
	c := w.anonymous(t)
	admin, annotator := w.token(t, w.people["admin"], time.Hour), w.token(t, w.ann, time.Hour)
	base := "/api/v1" + w.base
	for _, path := range []string{"/labels?answers=true", "/annotators"} {
		if got := c.call(base+path, annotator); got.status != http.StatusForbidden {
			t.Errorf("%s of an annotator: status %d, want 403", path, got.status)
		}
	}
	if got := c.call(base+"/labels?answers=true", admin); got.status != 200 || strings.Count(got.body, "\n") != 8 {
		t.Errorf("answers: status %d\n%s", got.status, got.body)
	}
	if got := c.call(base+"/labels?answers=true&format=csv", admin); !strings.HasPrefix(got.body, "image_id,sha256,source_path,split,round,") {
		t.Errorf("answers as CSV: %s", got.body)
	}
	if got := c.call(base+"/labels?answers=true&status=unlabeled", admin); got.status != 422 {
		t.Errorf("unlabeled answers: status %d", got.status)
	}
	var figures struct {
		Annotators []struct {
			Name                   string
			Labels, Shared, Agreed int
		}
	}
	if got := c.call(base+"/annotators", admin); json.Unmarshal([]byte(got.body), &figures) != nil || len(figures.Annotators) != 2 || figures.Annotators[1].Name != "bob@example.org" || figures.Annotators[1].Labels != 4 {
		t.Errorf("annotators: %s", got.body)
	}
	correct := func(token, key, body string) answer {
		req := c.request(http.MethodPost, fmt.Sprintf("%s/images/%d/correction", base, w.items[0].ImageID), nil)
		req.Body, req.ContentLength = nopCloser{bytes.NewBufferString(body)}, int64(len(body))
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		if key != "" {
			req.Header.Set("Idempotency-Key", key)
		}
		return c.do(req)
	}
	var first, again struct{ Event int64 }
	if got := correct(admin, "one", `{"verdict": "known", "class": 1}`); got.status != 200 || json.Unmarshal([]byte(got.body), &first) != nil || first.Event == 0 {
		t.Fatalf("a correction: status %d: %s", got.status, got.body)
	}
	if got := correct(admin, "one", `{"verdict": "known", "class": 1}`); json.Unmarshal([]byte(got.body), &again) != nil || again != first {
		t.Errorf("the same again is event %d, not %d: %s", again.Event, first.Event, got.body)
	}
	for name, tc := range map[string]struct {
		token, key, body string
		status           int
	}{
		"of an annotator":           {annotator, "two", `{"verdict": "unknown"}`, 403},
		"without a key":             {admin, "", `{"verdict": "unknown"}`, 422},
		"other content, same key":   {admin, "one", `{"verdict": "unknown"}`, 409},
		"a class that is not there": {admin, "two", `{"verdict": "known", "class": 9}`, 422},
		"a verdict that is none":    {admin, "two", `{"verdict": "maybe"}`, 422},
		"known without a class":     {admin, "two", `{"verdict": "known"}`, 422},
	} {
		got := correct(tc.token, tc.key, tc.body)
		if got.status != tc.status {
			t.Errorf("%s: status %d, want %d: %s", name, got.status, tc.status, got.body)
		}
		checkProblem(t, name, got)
	}
	if got := c.call(base+"/labels?status=known&round=0", admin); !strings.Contains(got.body, `"origin":"correction"`) {
		t.Errorf("labels: %s", got.body)
	}
}

// nopCloser makes a request's body of a buffer.
type nopCloser struct{ *bytes.Buffer }

func (nopCloser) Close() error { return nil }
