// Package handlers answers Winnow's pages and forms: decode, call, render. Each
// resource has one file, which declares the small interfaces it needs. Handlers
// return their errors; Base turns them into a status and a page or problem JSON.
package handlers

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"

	"github.com/a-h/templ"

	"winnow"
	"winnow/views"
)

// Func is a handler that returns its error instead of writing it.
type Func func(w http.ResponseWriter, r *http.Request) error

// Sessions is what handlers need of the session manager. The session travels in
// the request's context.
type Sessions interface {
	RenewToken(ctx context.Context) error
	Destroy(ctx context.Context) error
	Put(ctx context.Context, key string, value any)
	GetInt64(ctx context.Context, key string) int64
	PopString(ctx context.Context, key string) string
}

// Access answers who somebody is and what they may do.
type Access interface {
	User(ctx context.Context, id winnow.UserID) (winnow.User, error)
	Project(ctx context.Context, id winnow.ProjectID) (*winnow.Project, error)
	Role(ctx context.Context, project winnow.ProjectID, user winnow.User) (winnow.Role, error)
}

// Events hands out notices that something of a project moved. The channel holds
// at most one notice that was not yet taken: notices say when to look, not what
// there is to see. It is closed when the server shuts down; stop ends it early.
type Events interface {
	Subscribe(project winnow.ProjectID) (moved <-chan struct{}, stop func())
}

// Waiting counts what waits for a project's admins.
type Waiting interface {
	ReviewCounts(ctx context.Context, project winnow.ProjectID) (winnow.ReviewCounts, error)
}

// Base is what every resource shares.
type Base struct {
	Log      *slog.Logger
	Sessions Sessions
	Access   Access
	Events   Events
	Waiting  Waiting
	Now      winnow.Clock
	BaseURL  string // where people reach the site; "" to go by each request
}

// Keys of the session's values.
const (
	sessionUser  = "user"  // int64
	sessionEpoch = "epoch" // int64, of the user when the session began
	sessionDone  = "done"  // what the last action did, shown once
)

// done leaves a sentence for the next page to show.
func (b *Base) done(r *http.Request, message string) {
	b.Sessions.Put(r.Context(), sessionDone, message)
}

// absolute makes a link that can be sent to somebody.
func (b *Base) absolute(r *http.Request, path string) string {
	if b.BaseURL != "" {
		return strings.TrimRight(b.BaseURL, "/") + path
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + path
}

// page starts the frame of a page for whoever asks.
func (b *Base) page(r *http.Request, title string) views.Page {
	p := views.Page{Title: title, Done: b.Sessions.PopString(r.Context(), sessionDone)}
	if s := scopeOf(r.Context()); s != nil {
		p.User = &s.User
		if s.Project != nil {
			p.Project = &views.ProjectFrame{ID: s.Project.ID, Name: s.Project.Name, Role: s.Role}
		}
	}
	return p
}

// projectPage starts the frame of a page under one of a project's tabs.
func (b *Base) projectPage(r *http.Request, title string, tab views.Tab) views.Page {
	p := b.page(r, title)
	p.Tab = tab
	if s := scopeOf(r.Context()); s != nil && s.Project != nil && s.Role.Allows(winnow.RoleAdmin) {
		counts, err := b.Waiting.ReviewCounts(r.Context(), s.Project.ID)
		if err != nil {
			b.logError(r, err) // the page is worth more than its badge
		}
		p.Project.Waiting = counts.Total
	}
	return p
}

// render writes a whole page, or nothing: a component that fails half way becomes
// an error page.
func render(w http.ResponseWriter, r *http.Request, status int, c templ.Component) error {
	var buf bytes.Buffer
	if err := c.Render(r.Context(), &buf); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(buf.Bytes()) // the reader may be gone; there is nobody to tell
	return nil
}

// seeOther leads to another page after a form was done.
func seeOther(w http.ResponseWriter, r *http.Request, url string) error {
	http.Redirect(w, r, url, http.StatusSeeOther)
	return nil
}

// wantsJSON reports whether the request comes from a script rather than from
// somebody who looks at pages.
func wantsJSON(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/api/") ||
		strings.Contains(r.Header.Get("Accept"), "application/json") ||
		strings.HasPrefix(r.Header.Get("Content-Type"), "application/json")
}
