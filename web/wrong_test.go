package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"winnow"
)

// Addresses that are not ours, and methods that an address does not take, get our
// own error page, and programs get problem JSON.
func TestWrongAddressesAndMethods(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	project := fmt.Sprintf("/projects/%d", w.project.ID)
	for _, tc := range []struct {
		method, path string
		status       int
		allow        string
		code         winnow.Code
	}{
		{"GET", "/nowhere", 404, "", winnow.CodeNotFound},
		{"POST", "/nowhere", 404, "", winnow.CodeNotFound},
		{"GET", project + "/nowhere", 404, "", winnow.CodeNotFound},
		{"PROPFIND", "/nowhere", 404, "", winnow.CodeNotFound},
		{"GET", "/static/css/nowhere.css", 404, "", winnow.CodeNotFound},
		{"GET", "/api/v1/nowhere", 404, "", winnow.CodeNotFound},
		{"DELETE", "/projects", 405, "GET, HEAD, POST", winnow.CodeMethod},
		{"PUT", project, 405, "GET, HEAD", winnow.CodeMethod},
		{"PUT", project + "/", 405, "GET, HEAD", winnow.CodeMethod},
		{"GET", project + "/rounds", 405, "POST", winnow.CodeMethod},
		{"GET", "/signout", 405, "POST", winnow.CodeMethod},
		{"POST", "/healthz", 405, "GET, HEAD", winnow.CodeMethod},
		{"POST", "/api/v1" + project, 405, "GET, HEAD", winnow.CodeMethod},
		{"PROPFIND", project, 405, "GET, HEAD", winnow.CodeMethod},
	} {
		for _, who := range []string{"anonymous", "viewer"} {
			c := w.role(t, who)
			for _, accept := range []string{"text/html", "application/json"} {
				req := c.request(tc.method, tc.path, url.Values{})
				req.Header.Set("Accept", accept)
				got := c.do(req)
				if got.status != tc.status || got.header.Get("Allow") != tc.allow {
					t.Errorf("%s %s of %s: status %d, Allow %q; want %d, %q", tc.method, tc.path, who, got.status, got.header.Get("Allow"), tc.status, tc.allow)
					continue
				}
				if accept == "text/html" && !strings.HasPrefix(tc.path, "/api/") {
					checkPage(t, got.body)
					if (who == "viewer") != strings.Contains(got.body, `action="/signout"`) {
						t.Errorf("%s %s: the page for the %s is not in their frame", tc.method, tc.path, who)
					}
					continue
				}
				var problem struct{ Code winnow.Code }
				if err := json.Unmarshal([]byte(got.body), &problem); err != nil || problem.Code != tc.code || got.header.Get("Content-Type") != "application/problem+json" {
					t.Errorf("%s %s: %s, %s", tc.method, tc.path, got.header.Get("Content-Type"), got.body)
				}
			}
		}
	}
}

func TestHeadIsGetWithoutItsBody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "viewer")
	for _, path := range []string{"/healthz", "/projects", fmt.Sprintf("/projects/%d", w.project.ID)} {
		got := c.do(c.request(http.MethodHead, path, nil))
		if got.status != 200 || got.body != "" {
			t.Errorf("HEAD %s: status %d, %d bytes", path, got.status, len(got.body))
		}
	}
}
