package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"winnow"
)

// Every page obeys the content security policy and the basic rules of a page: no
// inline script or style, one h1, a title, a label for each field, a text for each image.
func TestPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "site")
	imp, err := w.store.CreateImport(t.Context(), w.site.ID, winnow.Import{ProjectID: w.project.ID, Source: "x.zip", Split: winnow.SplitPool, State: winnow.ImportRunning})
	if err != nil {
		t.Fatal(err)
	}
	images, _, err := w.store.Images(t.Context(), w.project.ID, winnow.ImageFilter{}, winnow.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	invite, err := w.store.CreateInvite(t.Context(), w.site.ID, winnow.Invite{ProjectID: w.project.ID, Email: "new@example.org", Role: winnow.RoleViewer, ExpiresAt: w.store.Now().AddDate(0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	p := fmt.Sprintf("/projects/%d", w.project.ID)
	for path, want := range map[string]string{
		"/projects":                 w.project.Name,
		"/projects/new":             "Known classes",
		"/account":                  "Set a password",
		"/invite/" + invite:         "Join " + w.project.Name,
		p:                           "Label now",
		p + "/images":               "Not labeled",
		p + "/images?verdict=known": "No image is like that",
		fmt.Sprintf("%s/images/%d", p, images[0].ID): "Why this image",
		p + "/rounds/0":                      "0 of 5 labeled, 5 left",
		p + "/settings":                      "Target precision",
		p + "/people":                        "victim@example.org",
		p + "/import":                        "x.zip",
		fmt.Sprintf("%s/imports/%d", p, imp): "Counting the files",
		p + "/label":                         "Unknown",
		"/nowhere":                           "This page does not exist",
	} {
		t.Run(path, func(t *testing.T) {
			got := c.get(path)
			if want := map[bool]int{true: 404, false: 200}[path == "/nowhere"]; got.status != want {
				t.Fatalf("status %d, want %d", got.status, want)
			}
			if !strings.Contains(got.body, html.EscapeString(want)) {
				t.Errorf("the page does not say %q", want)
			}
			if !strings.Contains(got.header.Get("Content-Security-Policy"), "script-src 'self'") {
				t.Error("no content security policy")
			}
			checkPage(t, got.body)
		})
	}
}

func checkPage(t *testing.T, page string) {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	var headings int
	var title string
	labels, ids := map[string]bool{}, map[string]bool{}
	var fields []map[string]string
	for n := range doc.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		attr := map[string]string{}
		for _, a := range n.Attr {
			attr[a.Key] = a.Val
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has the attribute %s, which the policy forbids", n.Data, a.Key)
			}
		}
		if id := attr["id"]; id != "" {
			if ids[id] {
				t.Errorf("the id %q is there twice", id)
			}
			ids[id] = true
		}
		switch n.Data {
		case "h1":
			headings++
		case "title":
			if title == "" && n.FirstChild != nil {
				title = n.FirstChild.Data
			}
		case "script":
			if attr["src"] == "" && attr["type"] != "application/json" {
				t.Error("an inline script")
			}
		case "style":
			t.Error("an inline style sheet")
		case "img":
			if _, ok := attr["alt"]; !ok {
				t.Errorf("an image without a text: %v", attr)
			}
		case "label":
			labels[attr["for"]] = true
		case "input", "select", "textarea":
			if attr["type"] != "hidden" && attr["type"] != "radio" && attr["type"] != "checkbox" && attr["aria-label"] == "" && attr["aria-hidden"] == "" {
				fields = append(fields, attr)
			}
		}
	}
	if headings != 1 {
		t.Errorf("%d h1, want 1", headings)
	}
	if !strings.Contains(title, "Winnow") {
		t.Errorf("title %q", title)
	}
	for _, f := range fields {
		if !labels[f["id"]] {
			t.Errorf("the field %v has no label", f)
		}
	}
}

func TestMarkupIsEscaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "site")
	const evil = `<script>alert("x")</script>`
	p := fmt.Sprintf("/projects/%d", w.project.ID)
	if got := c.post(p+"/settings", url.Values{"name": {evil}, "classes": {evil}, "instructions": {evil}}); got.status != http.StatusSeeOther {
		t.Fatalf("status %d: %s", got.status, got.body)
	}
	for _, path := range []string{"/projects", p, p + "/settings", p + "/images", p + "/label", p + "/rounds/0"} {
		if got := c.get(path); got.status != 200 || strings.Contains(got.body, "<script>alert") || !strings.Contains(got.body, "&lt;script&gt;") {
			t.Errorf("%s: status %d, or the markup is not escaped", path, got.status)
		}
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	site, adm := w.role(t, "site"), w.role(t, "admin")
	p := fmt.Sprintf("/projects/%d", w.project.ID)
	long := strings.Repeat("x", 10_000)
	for _, tc := range []struct {
		name   string
		c      *client
		method string
		path   string
		form   url.Values
		status int
		says   string
	}{
		{"unknown project", adm, "GET", "/projects/999999", nil, 404, "There is no such project"},
		{"project that is no number", adm, "GET", "/projects/one", nil, 404, "There is no such project"},
		{"unknown round", adm, "GET", p + "/rounds/7", nil, 404, "There is nothing here"},
		{"unknown image", adm, "GET", p + "/images/999999", nil, 404, "There is nothing here"},
		{"unknown rendition", adm, "GET", p + "/images/1/huge", nil, 404, ""},
		{"unknown import", adm, "GET", p + "/imports/999", nil, 404, ""},
		{"bad cursor", adm, "GET", p + "/images?after=zzz", nil, 422, ""},
		{"bad filter", adm, "GET", p + "/images?verdict=maybe", nil, 422, ""},
		{"bad class filter", adm, "GET", p + "/images?class=-1", nil, 422, ""},
		{"class name of 10,000 characters", adm, "POST", p + "/settings", url.Values{"name": {"n"}, "classes": {long}}, 422, "the limit is 80"},
		{"class named unknown", adm, "POST", p + "/settings", url.Values{"name": {"n"}, "classes": {"Unknown"}}, 422, "unknown class already"},
		{"class named twice", adm, "POST", p + "/settings", url.Values{"name": {"n"}, "classes": {"C0"}}, 422, "named twice"},
		{"empty name", adm, "POST", p + "/settings", url.Values{"name": {" "}}, 422, "is empty"},
		{"setting out of bounds", adm, "POST", p + "/settings", url.Values{"name": {"n"}, "target_precision": {"7"}}, 422, "at most 1"},
		{"setting that is no number", adm, "POST", p + "/settings", url.Values{"name": {"n"}, "budget": {"many"}}, 422, "must be a whole number"},
		{"form over the limit", adm, "POST", p + "/settings", url.Values{"instructions": {strings.Repeat("x", 2<<20)}}, 413, "larger than the limit"},
		{"round while one is open", adm, "POST", p + "/rounds", nil, 409, ""},
		{"cancel a round that is labeled", adm, "POST", p + "/rounds/0/cancel", nil, 409, ""},
		{"retry a round that did not fail", adm, "POST", p + "/rounds/0/retry", nil, 409, ""},
		{"invite nobody", adm, "POST", p + "/people/invites", url.Values{"email": {"nobody"}, "role": {"viewer"}}, 422, "is not an e-mail address"},
		{"invite as king", adm, "POST", p + "/people/invites", url.Values{"email": {"a@example.org"}, "role": {"king"}}, 422, "A role is"},
		{"token for ever", adm, "POST", p + "/people/tokens", url.Values{"name": {"n"}, "days": {"99999"}}, 422, "1 to 365 days"},
		{"token without a name", adm, "POST", p + "/people/tokens", url.Values{"days": {"30"}}, 422, ""},
		{"unknown action", adm, "POST", p + "/people/members/1", url.Values{"action": {"promote"}}, 422, ""},
		{"unknown member", adm, "POST", p + "/people/members/999", url.Values{"action": {"remove"}}, 404, ""},
		{"old invitation", adm, "GET", "/invite/nothing", nil, 404, ""},
		{"project form that is no multipart", site, "POST", "/projects", url.Values{"name": {"n"}}, 422, ""},
		{"import without a file", adm, "POST", p + "/imports", url.Values{"split": {"pool"}}, 422, ""},
		{"wrong method", adm, "DELETE", p, nil, 405, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := tc.c.do(tc.c.request(tc.method, tc.path, tc.form))
			if got.status != tc.status {
				t.Errorf("status %d, want %d: %s", got.status, tc.status, got.body)
			}
			if !strings.Contains(html.UnescapeString(got.body), tc.says) {
				t.Errorf("does not say %q:\n%s", tc.says, got.body)
			}
		})
	}
	after, err := w.store.Project(t.Context(), w.project.ID)
	if err != nil || after.Name != w.project.Name || len(after.Classes) != len(w.project.Classes) {
		t.Errorf("bad input changed the project: %+v, %v", after, err)
	}
}

func TestCloseTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "admin")
	path := fmt.Sprintf("/projects/%d/rounds/0/close", w.project.ID)
	if got := c.post(path, nil); got.status != http.StatusSeeOther {
		t.Fatalf("first: status %d: %s", got.status, got.body)
	}
	if got := c.post(path, nil); got.status != http.StatusConflict {
		t.Errorf("second: status %d, want 409", got.status)
	}
	if got := c.post(fmt.Sprintf("/projects/%d/rounds", w.project.ID), nil); got.status != http.StatusSeeOther || !strings.HasSuffix(got.location, "/rounds/1") {
		t.Errorf("next round: status %d to %q", got.status, got.location)
	}
	if got := c.post(fmt.Sprintf("/projects/%d/rounds", w.project.ID), nil); got.status != http.StatusConflict {
		t.Errorf("double submit: status %d, want 409", got.status)
	}
}

func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "admin")
	req := c.request("POST", fmt.Sprintf("/projects/%d/rounds/0/close", w.project.ID), nil)
	req.Header.Set("Sec-Fetch-Site", "cross-site")
	req.Header.Set("Origin", "https://elsewhere.example")
	if got := c.do(req); got.status != http.StatusForbidden {
		t.Errorf("status %d, want 403", got.status)
	}
	round, err := w.store.Round(t.Context(), w.project.ID, 0)
	if err != nil || round.State != winnow.RoundLabeling {
		t.Errorf("the round is %v, %v: it was closed from another site", round.State, err)
	}
}

func TestImageBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "viewer")
	images, _, err := w.store.Images(t.Context(), w.project.ID, winnow.ImageFilter{}, winnow.Page{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/projects/%d/images/%d/", w.project.ID, images[0].ID)
	for rendition, mediaType := range map[string]string{"original": "image/png", "display": "image/png", "thumb": "image/jpeg"} {
		got := c.get(path + rendition)
		if got.status != 200 || got.header.Get("Content-Type") != mediaType || got.header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(got.header.Get("Cache-Control"), "private") || !strings.Contains(got.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: status %d, header %v", rendition, got.status, got.header)
		}
		again := c.request("GET", path+rendition, nil)
		again.Header.Set("If-None-Match", got.header.Get("ETag"))
		if got := c.do(again); got.status != http.StatusNotModified || got.body != "" {
			t.Errorf("%s again: status %d", rendition, got.status)
		}
	}
}

func TestHealth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.anonymous(t)
	// In this order: there are no requests to count before the first.
	for _, tt := range []struct{ path, want string }{
		{"/healthz", "ok"}, {"/readyz", "ready"}, {"/metrics", "winnow_http_requests_total"},
	} {
		if got := c.get(tt.path); got.status != 200 || !strings.Contains(got.body, tt.want) {
			t.Errorf("%s: status %d, no %q in the answer", tt.path, got.status, tt.want)
		}
	}
	w.store.Close()
	if got := c.get("/readyz"); got.status != http.StatusServiceUnavailable {
		t.Errorf("/readyz without a database: status %d, want 503", got.status)
	}
	if got := c.get("/healthz"); got.status != 200 {
		t.Errorf("/healthz without a database: status %d, want 200", got.status)
	}
}
