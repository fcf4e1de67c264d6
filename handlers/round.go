package handlers

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/a-h/templ"

	"winnow"
	"winnow/views"
)

// RoundStore is what the round pages need of the store.
type RoundStore interface {
	StartRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID) (*winnow.Round, error)
	CancelRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error)
	RetryRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error)
	CloseRound(ctx context.Context, by winnow.UserID, project winnow.ProjectID, number int) (*winnow.Round, error)
	Round(ctx context.Context, project winnow.ProjectID, number int) (*winnow.Round, error)
	Rounds(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]*winnow.Round, string, error)
	Items(ctx context.Context, round winnow.RoundID, f winnow.ItemFilter, page winnow.Page) ([]winnow.Item, string, error)
}

// Rounds serves the rounds of a project.
type Rounds struct {
	*Base
	Store RoundStore
}

const itemsPerPage = 48

// Start starts the next round.
func (h *Rounds) Start(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	round, err := h.Store.StartRound(r.Context(), s.User.ID, s.Project.ID)
	if err != nil {
		return err
	}
	return seeOther(w, r, views.RoundURL(round, ""))
}

// Cancel stops a round that has not opened for labeling.
func (h *Rounds) Cancel(w http.ResponseWriter, r *http.Request) error {
	return h.change(w, r, h.Store.CancelRound)
}

// Retry starts a failed or cancelled round again.
func (h *Rounds) Retry(w http.ResponseWriter, r *http.Request) error {
	return h.change(w, r, h.Store.RetryRound)
}

// Close ends the labeling of a round before all its images are decided.
func (h *Rounds) Close(w http.ResponseWriter, r *http.Request) error {
	return h.change(w, r, h.Store.CloseRound)
}

func (h *Rounds) change(w http.ResponseWriter, r *http.Request, act func(context.Context, winnow.UserID, winnow.ProjectID, int) (*winnow.Round, error)) error {
	number, err := pathNumber(r)
	if err != nil {
		return err
	}
	s := scopeOf(r.Context())
	round, err := act(r.Context(), s.User.ID, s.Project.ID, number)
	if err != nil {
		return err
	}
	return seeOther(w, r, views.RoundURL(round, ""))
}

// Page shows a round.
func (h *Rounds) Page(w http.ResponseWriter, r *http.Request) error {
	ctx, s := r.Context(), scopeOf(r.Context())
	number, err := pathNumber(r)
	if err != nil {
		return err
	}
	props, err := h.props(ctx, s.Project, number)
	if err != nil {
		return err
	}
	q := r.URL.Query()
	props.Filter.Verdict, props.Filter.Slice = q.Get("verdict"), winnow.Slice(q.Get("slice"))
	if props.Filter.Slice == winnow.SliceGold && !s.Role.Allows(winnow.RoleAdmin) {
		return winnow.Errorf(winnow.CodeForbidden, "Which images are gold is for the project's admins.")
	}
	if props.Filter.Class, err = queryInt(r, "class"); err != nil {
		return err
	}
	if props.Round.Counts.Total > 0 {
		var next string
		if props.Items, next, err = h.Store.Items(ctx, props.Round.ID, props.Filter, winnow.Page{After: q.Get("after"), Limit: itemsPerPage}); err != nil {
			return err
		}
		props.First, props.Next = firstURL(r), nextURL(r, next)
	}
	props.Page = h.projectPage(r, fmt.Sprintf("Round %d", number), "")
	props.Scripts = []string{"js/live.js"}
	if props.Round.State.Open() {
		props.Live = views.RoundURL(props.Round, "/events?state="+string(props.Round.State))
		props.Refresh = props.Round.State != winnow.RoundLabeling
	}
	return render(w, r, http.StatusOK, views.Round(props))
}

func (h *Rounds) props(ctx context.Context, project *winnow.Project, number int) (views.RoundProps, error) {
	round, err := h.Store.Round(ctx, project.ID, number)
	if err != nil {
		return views.RoundProps{}, err
	}
	newest, _, err := h.Store.Rounds(ctx, project.ID, winnow.Page{Limit: 1})
	if err != nil {
		return views.RoundProps{}, err
	}
	props := views.RoundProps{Project: project, Round: round, Newest: len(newest) > 0 && newest[0].Number == number}
	if scopeOf(ctx).Role.Allows(winnow.RoleAdmin) {
		props.Reviews, err = h.Waiting.ReviewCounts(ctx, project.ID)
	}
	return props, err
}

// Events streams the live part of a round's page. When the round enters another
// state the page is loaded anew, for then its images change too.
func (h *Rounds) Events(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	number, err := pathNumber(r)
	if err != nil {
		return err
	}
	if _, err := h.Store.Round(r.Context(), s.Project.ID, number); err != nil {
		return err
	}
	state := winnow.RoundState(r.URL.Query().Get("state"))
	frame := views.Page{Project: &views.ProjectFrame{ID: s.Project.ID, Name: s.Project.Name, Role: s.Role}}
	return h.stream(w, r, func(ctx context.Context) (event, templ.Component, error) {
		props, err := h.props(ctx, s.Project, number)
		if err != nil || props.Round.State != state {
			return eventReload, nil, err
		}
		if !state.Open() {
			return eventDone, nil, nil
		}
		props.Page = frame
		return eventFragment, views.RoundStatus(props), nil
	})
}

// queryInt reads an optional number of the address.
func queryInt(r *http.Request, name string) (*int, error) {
	s := r.URL.Query().Get(name)
	if s == "" {
		return nil, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 {
		return nil, winnow.Invalid(name, "This must be a number.")
	}
	return &n, nil
}
