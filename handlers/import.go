package handlers

import (
	"context"
	"fmt"
	"net/http"

	"github.com/a-h/templ"

	"winnow"
	"winnow/views"
)

// ImportStore is what the import pages need of the store.
type ImportStore interface {
	Import(ctx context.Context, project winnow.ProjectID, id winnow.ImportID) (*winnow.Import, error)
	Imports(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Import, string, error)
}

// Imports serves the pages that bring images in.
type Imports struct {
	*Base
	Store   ImportStore
	Uploads *Uploads
}

const importsPerPage = 50

// Form shows where to drop images, and the imports so far.
func (h *Imports) Form(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, http.StatusOK, views.FormError{})
}

// Create takes an upload and starts its import.
func (h *Imports) Create(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	imp, err := h.create(w, r, s)
	if e, ok := refused(err); ok && !wantsJSON(r) {
		return h.render(w, r, Status(err), e)
	}
	if err != nil {
		return err
	}
	return created(w, r, importPath(s.Project.ID, imp.ID))
}

func (h *Imports) create(w http.ResponseWriter, r *http.Request, s *Scope) (*winnow.Import, error) {
	form, upload, err := h.Uploads.read(w, r)
	if err != nil {
		return nil, err
	}
	if upload == nil {
		return nil, winnow.Invalid("files", "Choose a ZIP of images first.")
	}
	defer upload.discard()
	return h.Uploads.begin(r.Context(), s.Project, s.User.ID, form, upload)
}

// Page shows an import and its report.
func (h *Imports) Page(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	imp, err := h.find(r)
	if err != nil {
		return err
	}
	props := views.ImportRunProps{Page: h.projectPage(r, "Import", views.TabImport), Project: s.Project, Import: imp}
	if imp.State == winnow.ImportRunning {
		props.Live = importPath(s.Project.ID, imp.ID) + "/events"
		props.Scripts, props.Refresh = []string{"js/live.js"}, true
	}
	return render(w, r, http.StatusOK, views.ImportRun(props))
}

// Events streams the live part of an import's page.
func (h *Imports) Events(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	imp, err := h.find(r)
	if err != nil {
		return err
	}
	return h.stream(w, r, func(ctx context.Context) (event, templ.Component, error) {
		imp, err := h.Store.Import(ctx, s.Project.ID, imp.ID)
		if err != nil || imp.State != winnow.ImportRunning {
			return eventReload, nil, err
		}
		return eventFragment, views.ImportStatus(views.ImportRunProps{Project: s.Project, Import: imp}), nil
	})
}

func (h *Imports) find(r *http.Request) (*winnow.Import, error) {
	id, err := pathID(r, "import")
	if err != nil {
		return nil, err
	}
	return h.Store.Import(r.Context(), scopeOf(r.Context()).Project.ID, winnow.ImportID(id))
}

func (h *Imports) render(w http.ResponseWriter, r *http.Request, status int, e views.FormError) error {
	s := scopeOf(r.Context())
	imports, next, err := h.Store.Imports(r.Context(), s.Project.ID, winnow.Page{After: r.URL.Query().Get("after"), Limit: importsPerPage})
	if err != nil {
		return err
	}
	p := h.projectPage(r, "Import", views.TabImport)
	p.Scripts = []string{"js/upload.js"}
	return render(w, r, status, views.Import(views.ImportProps{
		Page: p, Project: s.Project, Limit: h.Uploads.Limit, Imports: imports, First: firstURL(r), Next: nextURL(r, next), Error: e,
	}))
}

func importPath(project winnow.ProjectID, id winnow.ImportID) string {
	return views.ProjectURL(project, fmt.Sprintf("/imports/%d", id))
}
