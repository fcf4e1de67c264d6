package handlers

import (
	"context"
	"net/http"

	"winnow"
	"winnow/views"
)

// ProjectStore is what the pages of projects need of the store.
type ProjectStore interface {
	Projects(ctx context.Context, user winnow.User, page winnow.Page) ([]winnow.ProjectSummary, string, error)
	CreateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) (winnow.ProjectID, error)
	UpdateProject(ctx context.Context, by winnow.UserID, p *winnow.Project) error
}

// Projects serves the list of projects, a project's page and its settings.
type Projects struct {
	*Base
	Store ProjectStore
}

const projectsPerPage = 50

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
