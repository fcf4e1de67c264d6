package handlers

import (
	"context"
	"net/http"

	"winnow"
	"winnow/views"
)

// AnnotatorStore is what the pages about annotators need of the store.
type AnnotatorStore interface {
	AnnotatorFigures(ctx context.Context, project winnow.ProjectID, user winnow.UserID, page winnow.Page) ([]winnow.AnnotatorFigures, string, error)
	AnnotatorDays(ctx context.Context, project winnow.ProjectID, user winnow.UserID) ([]winnow.AnnotatorDay, error)
}

// Annotators serves how people label: everybody's figures for admins, and one's own.
type Annotators struct {
	*Base
	Store AnnotatorStore
}

const annotatorsPerPage = 50

// List shows a row a person.
func (h *Annotators) List(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	people, next, err := h.Store.AnnotatorFigures(r.Context(), s.Project.ID, 0, winnow.Page{After: r.URL.Query().Get("after"), Limit: annotatorsPerPage})
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, views.Annotators(views.AnnotatorsProps{
		Page: h.projectPage(r, "Annotators", views.TabPeople), Project: s.Project, People: people, First: firstURL(r), Next: nextURL(r, next),
	}))
}

// Own shows people their own figures.
func (h *Annotators) Own(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, scopeOf(r.Context()).User.ID)
}

// Person shows one person's figures to an admin.
func (h *Annotators) Person(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "user")
	if err != nil {
		return err
	}
	return h.render(w, r, winnow.UserID(id))
}

func (h *Annotators) render(w http.ResponseWriter, r *http.Request, user winnow.UserID) error {
	ctx, s := r.Context(), scopeOf(r.Context())
	figures, _, err := h.Store.AnnotatorFigures(ctx, s.Project.ID, user, winnow.Page{Limit: 1})
	if err != nil {
		return err
	}
	own := user == s.User.ID
	props := views.AnnotatorProps{Project: s.Project, Own: own, Figures: winnow.AnnotatorFigures{UserID: user}}
	switch {
	case len(figures) > 0:
		props.Figures = figures[0]
	case !own: // one's own page is there before the first answer
		return winnow.Errorf(winnow.CodeNotFound, "This person has not labeled in this project.")
	}
	if props.Days, err = h.Store.AnnotatorDays(ctx, s.Project.ID, user); err != nil {
		return err
	}
	tab, title := views.TabPeople, props.Figures.User
	if own {
		tab, title = views.TabOwn, "Your labels"
	}
	props.Page = h.projectPage(r, title, tab)
	return render(w, r, http.StatusOK, views.Annotator(props))
}
