package handlers

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"winnow"
	"winnow/views"
)

// ProjectStore is what the pages of projects need of the store.
type ProjectStore interface {
	Projects(ctx context.Context, user winnow.User, page winnow.Page) ([]winnow.ProjectSummary, string, error)
	CreateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) (winnow.ProjectID, error)
	UpdateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) error
	Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error)
	RoundHistory(ctx context.Context, project winnow.ProjectID, n int) ([]winnow.RoundFigures, error)
	Imports(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Import, string, error)
}

// Projects serves the list of projects, a project's page and its settings.
type Projects struct {
	*Base
	Store   ProjectStore
	Uploads *Uploads
}

const (
	projectsPerPage = 50
	roundsPerPage   = 100
	roundsInCharts  = 400 // more would not be told apart
	recentImports   = 3
)

// List shows the projects that the user may see.
func (h *Projects) List(w http.ResponseWriter, r *http.Request) error {
	user := scopeOf(r.Context()).User
	projects, next, err := h.Store.Projects(r.Context(), user, winnow.Page{After: r.URL.Query().Get("after"), Limit: projectsPerPage})
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, views.Projects(views.ProjectsProps{
		Page: h.page(r, "Projects"), Projects: projects, Next: nextURL(r, next), First: firstURL(r), MayCreate: user.SiteAdmin,
	}))
}

// New shows the form of a new project.
func (h *Projects) New(w http.ResponseWriter, r *http.Request) error {
	if err := mayCreate(r); err != nil {
		return err
	}
	return h.renderNew(w, r, http.StatusOK, views.ProjectForm{Settings: winnow.DefaultSettings()})
}

// Create makes a project, and imports the images that came with the form.
func (h *Projects) Create(w http.ResponseWriter, r *http.Request) error {
	if err := mayCreate(r); err != nil {
		return err
	}
	form, upload, err := h.Uploads.read(w, r)
	if err != nil {
		return err
	}
	defer upload.discard()
	fields := views.ProjectForm{
		Name: form.Get("name"), Classes: form.Get("classes"), Instructions: form.Get("instructions"), Settings: winnow.DefaultSettings(),
	}
	project, imp, err := h.create(r, form, &fields, upload)
	if e, ok := refused(err); ok && !wantsJSON(r) {
		fields.Error = e
		if upload != nil {
			fields.Error.Message += " The images were not kept: choose them again."
		}
		return h.renderNew(w, r, Status(err), fields)
	}
	switch {
	case err != nil:
		return err
	case imp != nil:
		return created(w, r, importPath(project, imp.ID))
	default:
		return created(w, r, views.ProjectURL(project, ""))
	}
}

func (h *Projects) create(r *http.Request, form url.Values, fields *views.ProjectForm, upload *savedUpload) (winnow.ProjectID, *winnow.Import, error) {
	classes, err := winnow.NewClasses(lines(fields.Classes))
	if err != nil {
		return 0, nil, err
	}
	if err := setSettings(&fields.Settings, form); err != nil {
		return 0, nil, err
	}
	p := &winnow.Project{
		Name: strings.TrimSpace(fields.Name), Classes: classes, ClassVersion: 1, Instructions: newlines(fields.Instructions), Settings: fields.Settings,
	}
	if err := p.Validate(); err != nil {
		return 0, nil, err
	}
	user := scopeOf(r.Context()).User
	if p.ID, err = h.Store.CreateProject(r.Context(), user.ID, p); err != nil {
		return 0, nil, err
	}
	if upload == nil {
		h.done(r, "The project is made. Import images next.")
		return p.ID, nil, nil
	}
	imp, err := h.Uploads.begin(r.Context(), p, user.ID, form, upload)
	if err != nil {
		// The project stands; only its images are missing.
		h.done(r, "The project is made, but the images were not taken: "+winnow.ErrorMessage(err))
		return p.ID, nil, nil
	}
	return p.ID, imp, nil
}

// Page shows what a project's labels bought.
func (h *Projects) Page(w http.ResponseWriter, r *http.Request) error {
	props, older, err := h.pageProps(r.Context(), scopeOf(r.Context()).Project)
	if err != nil {
		return err
	}
	props.Table = props.Rounds
	if after := r.URL.Query().Get("after"); after != "" {
		if props.Table, older, err = h.Store.Rounds(r.Context(), props.Project.ID, winnow.Page{After: after, Limit: roundsPerPage}); err != nil {
			return err
		}
	}
	if older != "" {
		props.Older = views.ProjectURL(props.Project.ID, "?after="+url.QueryEscape(older))
	}
	if props.History, err = h.Store.RoundHistory(r.Context(), props.Project.ID, roundsInCharts); err != nil {
		return err
	}
	props.Page = h.projectPage(r, "Overview", views.TabOverview)
	props.Scripts, props.Refresh = []string{"js/live.js"}, len(props.Rounds) > 0 && props.Rounds[0].State.Open()
	return render(w, r, http.StatusOK, views.Project(props))
}

// pageProps reads what the page and its live part have in common; older is the
// cursor of the rounds before those.
func (h *Projects) pageProps(ctx context.Context, project *winnow.Project) (props views.ProjectProps, older string, err error) {
	rounds, older, err := h.Store.Rounds(ctx, project.ID, winnow.Page{Limit: roundsPerPage})
	if err != nil {
		return views.ProjectProps{}, "", err
	}
	imports, _, err := h.Store.Imports(ctx, project.ID, winnow.Page{Limit: recentImports})
	if err != nil {
		return views.ProjectProps{}, "", err
	}
	props = views.ProjectProps{Project: project, Rounds: rounds, Imports: imports}
	props.Live = views.ProjectURL(project.ID, "/events?at="+url.QueryEscape(standing(rounds)))
	return props, older, nil
}

// standing names the newest round and its state: when it changes, more of the page
// does than its live part.
func standing(rounds []*winnow.Round) string {
	if len(rounds) == 0 {
		return "none"
	}
	return strconv.Itoa(rounds[0].Number) + string(rounds[0].State)
}

// Events streams the live part of a project's page.
func (h *Projects) Events(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	at := r.URL.Query().Get("at")
	frame := views.Page{Project: &views.ProjectFrame{ID: s.Project.ID, Name: s.Project.Name, Role: s.Role}}
	return h.stream(w, r, func(ctx context.Context) (event, templ.Component, error) {
		project, err := h.freshProject(ctx)
		if err != nil {
			return eventReload, nil, err
		}
		props, _, err := h.pageProps(ctx, project)
		if err != nil {
			return eventReload, nil, err
		}
		if standing(props.Rounds) != at {
			return eventReload, nil, nil
		}
		props.Page = frame
		return eventFragment, views.ProjectStatus(props), nil
	})
}

// Settings shows the form of a project's settings.
func (h *Projects) Settings(w http.ResponseWriter, r *http.Request) error {
	p := scopeOf(r.Context()).Project
	return h.renderSettings(w, r, http.StatusOK, views.ProjectForm{Name: p.Name, Instructions: p.Instructions, Settings: p.Settings})
}

// SaveSettings changes a project. Classes are added, never renamed or removed.
func (h *Projects) SaveSettings(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	s := scopeOf(r.Context())
	fields := views.ProjectForm{
		Name: r.PostForm.Get("name"), Classes: r.PostForm.Get("classes"), Instructions: r.PostForm.Get("instructions"), Settings: s.Project.Settings,
	}
	err := h.saveSettings(r, s, &fields)
	if e, ok := refused(err); ok {
		fields.Error = e
		return h.renderSettings(w, r, Status(err), fields)
	}
	if err != nil {
		return err
	}
	h.done(r, "The settings are saved.")
	return seeOther(w, r, views.ProjectURL(s.Project.ID, "/settings"))
}

func (h *Projects) saveSettings(r *http.Request, s *Scope, fields *views.ProjectForm) error {
	if err := setSettings(&fields.Settings, r.PostForm); err != nil {
		return err
	}
	p := *s.Project
	p.Name, p.Instructions, p.Settings = strings.TrimSpace(fields.Name), newlines(fields.Instructions), fields.Settings
	if more := lines(fields.Classes); len(more) > 0 {
		names := make([]string, 0, len(p.Classes)+len(more))
		for _, c := range p.Classes {
			names = append(names, c.Name)
		}
		all, err := winnow.NewClasses(append(names, more...))
		if err != nil {
			return err
		}
		p.Classes = append(p.Classes[:len(p.Classes):len(p.Classes)], all[len(p.Classes):]...)
	}
	if err := p.Validate(); err != nil {
		return err
	}
	return h.Store.UpdateProject(r.Context(), s.User.ID, &p)
}

func (h *Projects) renderNew(w http.ResponseWriter, r *http.Request, status int, form views.ProjectForm) error {
	p := h.page(r, "New project")
	p.Width, p.Scripts = "narrow", []string{"js/upload.js"}
	return render(w, r, status, views.NewProject(views.NewProjectProps{Page: p, Form: form, Limit: h.Uploads.Limit}))
}

func (h *Projects) renderSettings(w http.ResponseWriter, r *http.Request, status int, form views.ProjectForm) error {
	p := h.projectPage(r, "Settings", views.TabSettings)
	p.Width = "narrow"
	return render(w, r, status, views.Settings(views.SettingsProps{Page: p, Project: scopeOf(r.Context()).Project, Form: form}))
}

func mayCreate(r *http.Request) error {
	if !scopeOf(r.Context()).User.SiteAdmin {
		return winnow.Errorf(winnow.CodeForbidden, "Only an admin of this site makes projects. Ask one to make it and to invite you.")
	}
	return nil
}

// setSettings takes the settings that the form names. A box that is not ticked is
// not sent, so once any setting is there, a missing one is off.
func setSettings(s *winnow.Settings, form url.Values) error {
	fields := s.Fields()
	any := false
	for _, f := range fields {
		any = any || form.Has(f.Name)
	}
	var first error // after it, the others are taken all the same: the form shows them again
	for _, f := range fields {
		switch {
		case form.Has(f.Name):
			if err := f.Set(strings.TrimSpace(form.Get(f.Name))); err != nil && first == nil {
				first = err
			}
		case f.Bool != nil && any:
			*f.Bool = false
		}
	}
	if first != nil {
		return first
	}
	return s.Validate()
}

// lines cuts a text area into its lines that are not empty.
func lines(s string) []string {
	var out []string
	for line := range strings.Lines(s) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, line)
		}
	}
	return out
}

// newlines undoes the line ends that browsers send.
func newlines(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

// created leads to what was made: a redirect for a form, its address for a script.
func created(w http.ResponseWriter, r *http.Request, location string) error {
	if !wantsJSON(r) {
		return seeOther(w, r, location)
	}
	w.Header().Set("Location", location)
	return writeJSON(w, http.StatusCreated, "application/json", map[string]string{"location": location})
}
