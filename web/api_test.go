package web_test

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"winnow"
	"winnow/db/dbtest"
)

// call asks the API with a token.
func (c *client) call(path, token string) answer {
	c.t.Helper()
	req := c.request(http.MethodGet, path, nil)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return c.do(req)
}

func (w *world) token(t *testing.T, owner winnow.User, life time.Duration) string {
	t.Helper()
	secret, err := w.store.CreateToken(t.Context(), winnow.Token{ProjectID: w.project.ID, UserID: owner.ID, Name: "test", ExpiresAt: w.store.Now().Add(life)})
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func TestAPITokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := dbtest.Project(t, w.store, w.people["admin"].ID, dbtest.Settings(), 2, 1)
	c := w.anonymous(t)
	good := w.token(t, w.people["viewer"], time.Hour)
	brief := w.token(t, w.people["viewer"], 10*time.Millisecond)
	removed := w.token(t, w.people["victim"], time.Hour)
	if err := w.store.RemoveMember(t.Context(), w.site.ID, w.project.ID, w.people["victim"].ID); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Millisecond); time.Now().Before(deadline); {
		time.Sleep(5 * time.Millisecond)
	}
	for _, tc := range []struct {
		name    string
		project winnow.ProjectID
		token   string
		status  int
	}{
		{"good", w.project.ID, good, 200},
		{"none", w.project.ID, "", 401},
		{"wrong", w.project.ID, "winnow_nonsense", 401},
		{"expired", w.project.ID, brief, 401},
		{"of another project", other.ID, good, 404},
		{"of a removed member", w.project.ID, removed, 404},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, path := range []string{"", "/rounds", "/rounds/0", "/labels"} {
				got := c.call(fmt.Sprintf("/api/v1/projects/%d%s", tc.project, path), tc.token)
				ok := got.status == tc.status
				if tc.name == "of a removed member" { // revoked with the membership, or refused for want of a role
					ok = got.status == 404 || got.status == 401
				}
				if !ok {
					t.Errorf("%s: status %d, want %d: %s", path, got.status, tc.status, got.body)
				}
				if got.status >= 400 {
					var problem struct{ Code, Detail string }
					if err := json.Unmarshal([]byte(got.body), &problem); err != nil || problem.Code == "" || problem.Detail == "" ||
						!strings.HasPrefix(got.header.Get("Content-Type"), "application/problem+json") {
						t.Errorf("%s: not problem JSON: %s %s", path, got.header.Get("Content-Type"), got.body)
					}
				}
			}
		})
	}
	if got := w.role(t, "admin").get(fmt.Sprintf("/api/v1/projects/%d", w.project.ID)); got.status != 401 {
		t.Errorf("a session on the API: status %d, want 401", got.status)
	}
}

func TestAPILabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	annotator := w.people["annotator"].ID
	_, items, err := w.store.Claim(t.Context(), w.project.ID, annotator, 4)
	if err != nil {
		t.Fatal(err)
	}
	for i, verdict := range []winnow.Verdict{winnow.VerdictKnown, winnow.VerdictUnknown, winnow.VerdictSkip, winnow.VerdictUnreadable} {
		if _, err := w.store.Decide(t.Context(), w.project.ID, annotator, winnow.Decision{ItemID: items[i].ID, Verdict: verdict, ClientKey: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	dbtest.AddImages(t, w.store, w.project.ID, dbtest.Labeled(dbtest.Images(99, 2, 8), 1))
	c, token := w.anonymous(t), w.token(t, w.people["viewer"], time.Hour)
	base := fmt.Sprintf("/api/v1/projects/%d/labels", w.project.ID)
	for query, want := range map[string]int{
		"":                              6,
		"?round=0":                      4,
		"?status=known":                 3,
		"?status=known&round=0":         1,
		"?status=unknown,skip":          2,
		"?status=unlabeled":             8,
		"?split=test":                   0,
		"?status=unreadable&split=pool": 1,
	} {
		got := c.call(base+query, token)
		rows := 0
		for scan := bufio.NewScanner(strings.NewReader(got.body)); scan.Scan(); rows++ {
			var r winnow.LabelRecord
			if err := json.Unmarshal(scan.Bytes(), &r); err != nil || r.Status == "" {
				t.Errorf("%s: %v in %s", query, err, scan.Text())
			}
		}
		if got.status != 200 || rows != want || got.header.Get("Content-Type") != "application/jsonl" {
			t.Errorf("%q: status %d, %d rows of %s, want %d", query, got.status, rows, got.header.Get("Content-Type"), want)
		}
	}
	got := c.call(base+"?format=csv", token)
	rows, err := csv.NewReader(strings.NewReader(got.body)).ReadAll()
	if err != nil || len(rows) != 7 || !strings.HasPrefix(got.header.Get("Content-Type"), "text/csv") {
		t.Errorf("CSV: %d lines, %v, %s", len(rows), err, got.header.Get("Content-Type"))
	}
	for query, status := range map[string]int{"?format=xml": 422, "?status=maybe": 422, "?split=all": 422, "?round=7": 404, "?round=x": 422} {
		got := c.call(base+query, token)
		if got.status != status {
			t.Errorf("%q: status %d, want %d: %s", query, got.status, status, got.body)
		}
		checkProblem(t, query, got)
	}
}

// checkProblem checks that an answer is problem JSON as all of the API's is, whoever
// found the error.
func checkProblem(t *testing.T, what string, got answer) {
	t.Helper()
	var p map[string]any
	if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s: %s, %v: %s", what, got.header.Get("Content-Type"), err, got.body)
		return
	}
	for name := range p {
		if !slices.Contains([]string{"type", "title", "status", "detail", "code", "field"}, name) {
			t.Errorf("%s: the member %q is not one of ours", what, name)
		}
	}
	if p["code"] == "" || p["code"] == nil || p["detail"] == "" || p["status"] != float64(got.status) {
		t.Errorf("%s: %s", what, got.body)
	}
}

func TestAPIProblemsAreOfOneKind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c, token := w.anonymous(t), w.token(t, w.people["viewer"], time.Hour)
	base := fmt.Sprintf("/api/v1/projects/%d", w.project.ID)
	for path, want := range map[string]struct {
		status int
		code   winnow.Code
		field  string
	}{
		base + "/rounds?limit=0":            {422, winnow.CodeInvalid, "limit"},
		base + "/rounds?limit=x":            {422, winnow.CodeInvalid, "limit"},
		base + "/rounds?after=x":            {422, winnow.CodeInvalid, "after"},
		base + "/rounds/x":                  {422, winnow.CodeInvalid, "number"},
		base + "/rounds/77":                 {404, winnow.CodeNotFound, ""},
		"/api/v1/projects/x":                {422, winnow.CodeInvalid, "id"},
		"/api/v1/projects/0":                {422, winnow.CodeInvalid, "id"},
		"/api/v1/nowhere":                   {404, winnow.CodeNotFound, ""},
		base + "/labels?split=x&format=pdf": {422, winnow.CodeInvalid, "format"},
	} {
		got := c.call(path, token)
		checkProblem(t, path, got)
		var p struct {
			Code  winnow.Code
			Field string
		}
		if err := json.Unmarshal([]byte(got.body), &p); err != nil || got.status != want.status || p.Code != want.code || p.Field != want.field {
			t.Errorf("%s: status %d, want %v: %s", path, got.status, want, got.body)
		}
	}
	if doc := c.get("/api/openapi.json").body; strings.Contains(doc, "ErrorModel") || strings.Count(doc, "#/components/schemas/Problem") < 4 {
		t.Error("the document does not describe the problems that are sent")
	}
}

func TestAPIDocument(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.anonymous(t)
	var doc struct {
		OpenAPI string
		Paths   map[string]any
	}
	got := c.get("/api/openapi.json")
	if err := json.Unmarshal([]byte(got.body), &doc); err != nil || !strings.HasPrefix(doc.OpenAPI, "3.1") {
		t.Fatalf("status %d, version %q, %v", got.status, doc.OpenAPI, err)
	}
	for _, path := range []string{"/api/v1/projects/{id}", "/api/v1/projects/{id}/labels", "/api/v1/projects/{id}/rounds", "/api/v1/projects/{id}/rounds/{number}"} {
		if doc.Paths[path] == nil {
			t.Errorf("%s is not described", path)
		}
	}
	page := c.get("/api/docs")
	if page.status != 200 || strings.Contains(page.body, "https://") {
		t.Errorf("the API page: status %d, or it loads from elsewhere", page.status)
	}
	for _, asset := range []string{"/api/docs/swagger-ui.css", "/api/docs/swagger-ui-bundle.js"} {
		if got := c.get(asset); got.status != 200 || len(got.body) < 10_000 {
			t.Errorf("%s: status %d, %d bytes", asset, got.status, len(got.body))
		}
	}
}
