// Package views renders Winnow's pages. Each page is a templ component that takes
// one finished props struct: views do no I/O, decide nothing, and know neither
// requests nor stores.
package views

import (
	"fmt"

	"winnow"
)

// Page is what the frame around every page shows.
type Page struct {
	Title   string
	User    *winnow.User // nil when nobody is signed in
	Project *ProjectFrame
	Tab     Tab
	Done    string   // what the last action did; empty for nothing
	Refresh bool     // without JavaScript, load the page again every few seconds
	Scripts []string // modules under static, such as "js/live.js"
	Styles  []string // further style sheets under static
	Theme   string   // "dark" or "light"; empty follows the system
	Width   string   // "" for lists and charts, "narrow" for text and forms, "slim" for a single form
	Bare    bool     // the page brings its own head and main element, as the labeling page does
}

// ProjectFrame is the project around a page.
type ProjectFrame struct {
	ID   winnow.ProjectID
	Name string
	Role winnow.Role // of the person who looks
	// Waiting is how many items wait for an admin, for the badge; 0 for anybody else.
	Waiting int
}

// Tab is the current entry of a project's navigation.
type Tab string

// The entries, in their order.
const (
	TabOverview Tab = "Overview"
	TabLabel    Tab = "Label"
	TabOwn      Tab = "Your labels"
	TabReview   Tab = "Review"
	TabImages   Tab = "Images"
	TabImport   Tab = "Import"
	TabPeople   Tab = "People"
	TabSettings Tab = "Settings"
)

type tabLink struct {
	Tab  Tab
	Path string
	Need winnow.Role
	Only bool // for exactly that role
}

func (f ProjectFrame) tabs() []tabLink {
	all := []tabLink{
		{Tab: TabOverview, Need: winnow.RoleViewer},
		{Tab: TabLabel, Path: "/label", Need: winnow.RoleAnnotator},
		{Tab: TabOwn, Path: "/annotators/me", Need: winnow.RoleAnnotator, Only: true}, // admins see it among everybody's
		{Tab: TabReview, Path: "/review", Need: winnow.RoleAdmin},
		{Tab: TabImages, Path: "/images", Need: winnow.RoleViewer},
		{Tab: TabImport, Path: "/import", Need: winnow.RoleAdmin},
		{Tab: TabPeople, Path: "/people", Need: winnow.RoleAdmin},
		{Tab: TabSettings, Path: "/settings", Need: winnow.RoleAdmin},
	}
	allowed := all[:0]
	for _, t := range all {
		if f.Role == t.Need || (f.Role.Allows(t.Need) && !t.Only) {
			allowed = append(allowed, t)
		}
	}
	return allowed
}

// ProjectURL returns the address of a page of a project: ProjectURL(7, "/rounds/2").
func ProjectURL(id winnow.ProjectID, path string) string {
	return fmt.Sprintf("/projects/%d%s", id, path)
}
