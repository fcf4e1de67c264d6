package web_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"winnow"
	"winnow/web"
)

// access is who may use a route.
type access string

const (
	anybody   access = "anybody"
	signedIn  access = "signed in"
	siteAdmin access = "site admin"
	viewer    access = "viewer"
	annotator access = "annotator"
	admin     access = "admin"
)

// permissions is every route of the pages with who may use it. TestEveryRouteIsListed
// keeps it complete.
var permissions = map[string]access{
	"GET /":                     anybody,
	"GET /signin":               anybody,
	"POST /signin":              anybody,
	"GET /signin/link/{token}":  anybody,
	"POST /signin/link/{token}": anybody,
	"GET /invite/{token}":       anybody,
	"POST /invite/{token}":      anybody,
	"POST /signout":             anybody,
	"GET /account":              signedIn,
	"POST /account":             signedIn,
	"POST /account/keys":        signedIn,
	"GET /projects":             signedIn,
	"GET /projects/new":         siteAdmin,
	"POST /projects":            siteAdmin,

	"GET /projects/{project}":                                 viewer,
	"GET /projects/{project}/events":                          viewer,
	"GET /projects/{project}/images":                          viewer,
	"GET /projects/{project}/images/{image}":                  viewer,
	"GET /projects/{project}/images/{image}/{rendition}":      viewer,
	"GET /projects/{project}/rounds/{number}":                 viewer,
	"GET /projects/{project}/rounds/{number}/events":          viewer,
	"GET /projects/{project}/label":                           annotator,
	"POST /projects/{project}/label":                          annotator,
	"GET /projects/{project}/label/state":                     annotator,
	"POST /projects/{project}/label/claim":                    annotator,
	"POST /projects/{project}/label/decide":                   annotator,
	"POST /projects/{project}/label/undo":                     annotator,
	"POST /projects/{project}/label/renew":                    annotator,
	"POST /projects/{project}/label/release":                  annotator,
	"POST /projects/{project}/label/flag":                     annotator,
	"POST /projects/{project}/label/theme":                    annotator,
	"GET /projects/{project}/annotators/me":                   annotator,
	"GET /projects/{project}/annotators":                      admin,
	"GET /projects/{project}/annotators/{user}":               admin,
	"GET /projects/{project}/review":                          admin,
	"POST /projects/{project}/review":                         admin,
	"POST /projects/{project}/images/{image}/correct":         admin,
	"POST /projects/{project}/images/{image}/gold":            admin,
	"GET /projects/{project}/label/grid":                      annotator,
	"POST /projects/{project}/label/grid":                     annotator,
	"POST /projects/{project}/label/grid/undo":                annotator,
	"GET /projects/{project}/label/alike":                     annotator,
	"POST /projects/{project}/label/alike":                    annotator,
	"POST /projects/{project}/label/decide-all":               annotator,
	"POST /projects/{project}/label/undo-all":                 annotator,
	"GET /projects/{project}/settings":                        admin,
	"POST /projects/{project}/settings":                       admin,
	"GET /projects/{project}/import":                          admin,
	"POST /projects/{project}/imports":                        admin,
	"GET /projects/{project}/imports/{import}":                admin,
	"GET /projects/{project}/imports/{import}/events":         admin,
	"GET /projects/{project}/people":                          admin,
	"POST /projects/{project}/people/invites":                 admin,
	"POST /projects/{project}/people/invites/{invite}/revoke": admin,
	"POST /projects/{project}/people/members/{user}":          admin,
	"POST /projects/{project}/people/tokens":                  admin,
	"POST /projects/{project}/people/tokens/{token}/revoke":   admin,
	"POST /projects/{project}/rounds":                         admin,
	"POST /projects/{project}/rounds/{number}/cancel":         admin,
	"POST /projects/{project}/rounds/{number}/retry":          admin,
	"POST /projects/{project}/rounds/{number}/close":          admin,
}

func TestEveryRouteIsListed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	seen := map[string]bool{}
	for _, route := range w.server.Routes() {
		if web.Public(route) {
			continue
		}
		seen[route] = true
		if _, ok := permissions[route]; !ok {
			t.Errorf("%s is not in the table of permissions", route)
		}
	}
	for route := range permissions {
		if !seen[route] {
			t.Errorf("%s is in the table of permissions but not on the site", route)
		}
	}
}

// Every route, asked by every kind of person.
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, who := range []string{"anonymous", "outsider", "viewer", "annotator", "admin"} {
		t.Run(who, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.role(t, who)
			images, _, err := w.store.Images(t.Context(), w.project.ID, winnow.ImageFilter{}, winnow.Page{Limit: 1})
			if err != nil {
				t.Fatal(err)
			}
			path := strings.NewReplacer(
				"{project}", fmt.Sprint(w.project.ID), "{image}", fmt.Sprint(images[0].ID), "{rendition}", "thumb",
				"{number}", "0", "{import}", "1", "{user}", fmt.Sprint(w.people["victim"].ID), "{token}", "1", "{invite}", "1",
			)
			for route, need := range permissions {
				if need == anybody || strings.HasSuffix(route, "/events") && may(who, need) {
					continue // a stream that is let in does not end by itself; see TestStream
				}
				method, pattern, _ := strings.Cut(route, " ")
				got := c.do(c.request(method, path.Replace(pattern), url.Values{"x": {"y"}}))
				switch {
				case who == "anonymous":
					if got.status != http.StatusSeeOther || !strings.HasPrefix(got.location, "/signin") {
						t.Errorf("%s: status %d to %q, want the sign-in page", route, got.status, got.location)
					}
				case may(who, need):
					if got.status == http.StatusForbidden || got.status == http.StatusUnauthorized || got.status >= 500 {
						t.Errorf("%s: status %d for one who may", route, got.status)
					}
				case who == "outsider" && need != siteAdmin:
					if got.status != http.StatusNotFound {
						t.Errorf("%s: status %d, want 404: the project does not exist for outsiders", route, got.status)
					}
				default:
					if got.status != http.StatusForbidden {
						t.Errorf("%s: status %d, want 403", route, got.status)
					}
				}
			}
		})
	}
}

func may(who string, need access) bool {
	rank := map[string]int{"viewer": 1, "annotator": 2, "admin": 3}
	switch need {
	case anybody:
		return true
	case signedIn:
		return who != "anonymous"
	case siteAdmin:
		return false
	default:
		return rank[who] > 0 && rank[who] >= rank[string(need)]
	}
}
