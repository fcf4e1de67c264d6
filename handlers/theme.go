package handlers

import (
	"net/http"

	"winnow/views"
)

// themeCookie keeps the colours of the labeling page, one choice a browser: a bright
// office and a dark evening are different devices more often than different people.
// The page's script writes it too.
const themeCookie = "winnow_theme"

// labelTheme is dark unless this browser was told otherwise.
func labelTheme(r *http.Request) string {
	if c, err := r.Cookie(themeCookie); err == nil && c.Value == "light" {
		return "light"
	}
	return "dark"
}

// Theme changes the colours of the labeling page in this browser.
func (h *Label) Theme(w http.ResponseWriter, r *http.Request) error {
	if err := parseLabelForm(w, r); err != nil {
		return err
	}
	theme := "dark"
	if r.PostForm.Get("theme") == "light" {
		theme = "light"
	}
	http.SetCookie(w, &http.Cookie{
		Name: themeCookie, Value: theme, Path: "/", MaxAge: 400 * 24 * 3600, SameSite: http.SameSiteLaxMode,
	})
	return seeOther(w, r, views.ProjectURL(scopeOf(r.Context()).Project.ID, "/label"))
}
