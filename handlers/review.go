package handlers

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"winnow"
	"winnow/views"
)

// ReviewStore is what the review queue and corrections need of the store.
type ReviewStore interface {
	ReviewQueue(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.ReviewItem, string, error)
	ReviewCounts(ctx context.Context, project winnow.ProjectID) (winnow.ReviewCounts, error)
	Correct(ctx context.Context, project winnow.ProjectID, by winnow.UserID, image winnow.ImageID, verdict winnow.Verdict, class int, clientKey string) (winnow.EventID, error)
	ResolveFlags(ctx context.Context, project winnow.ProjectID, by winnow.UserID, item winnow.ItemID) error
	SetGold(ctx context.Context, project winnow.ProjectID, by winnow.UserID, image winnow.ImageID, on bool) error
}

// Review serves the admin's queue of disagreements and flags, corrections, and the
// gold set.
type Review struct {
	*Base
	Store ReviewStore
}

// keep is the answer that leaves a flagged image's label as it is.
const keep = "keep"

// Page shows the first item that waits behind the cursor.
func (h *Review) Page(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, http.StatusOK, r.URL.Query().Get("after"), views.FormError{})
}

// Submit takes a correction, or keeps the label, and goes on to what comes next.
func (h *Review) Submit(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	s, after := scopeOf(r.Context()), r.PostForm.Get("after")
	image, err := h.submit(r, s)
	if wantsJSON(r) {
		if err != nil {
			return err
		}
		return respondJSON(w, map[string]winnow.ImageID{"image": image})
	}
	if e, ok := refused(err); ok {
		return h.render(w, r, Status(err), after, e)
	}
	if err != nil {
		return err
	}
	q := url.Values{"done": {fmt.Sprint(image)}}
	if after != "" {
		q.Set("after", after)
	}
	return seeOther(w, r, views.ProjectURL(s.Project.ID, "/review?"+q.Encode()))
}

func (h *Review) submit(r *http.Request, s *Scope) (winnow.ImageID, error) {
	image, err := formID(r, "image")
	if err != nil {
		return 0, err
	}
	item, err := formID(r, "item")
	if err != nil {
		return 0, err
	}
	id := winnow.ImageID(image)
	if r.PostForm.Get("answer") != keep {
		if err := h.correct(r, s, id); err != nil {
			return 0, err
		}
	}
	// A correction is of the image: what was said of this very item is answered with it.
	return id, h.Store.ResolveFlags(r.Context(), s.Project.ID, s.User.ID, winnow.ItemID(item))
}

// Correct gives an image another label, from its own page.
func (h *Review) Correct(w http.ResponseWriter, r *http.Request) error {
	image, err := h.formImage(r)
	if err != nil {
		return err
	}
	s := scopeOf(r.Context())
	if err := h.correct(r, s, image); err != nil {
		return err
	}
	h.done(r, "The label is corrected. What was said before stays in the history below.")
	return seeOther(w, r, views.ProjectURL(s.Project.ID, fmt.Sprintf("/images/%d", image)))
}

func (h *Review) correct(r *http.Request, s *Scope, image winnow.ImageID) error {
	verdict, class, err := parseAnswer(r.PostForm.Get("answer"))
	if err != nil {
		return err
	}
	_, err = h.Store.Correct(r.Context(), s.Project.ID, s.User.ID, image, verdict, class, r.PostForm.Get("client_key"))
	return err
}

// Gold puts an image into the gold set, or takes it out.
func (h *Review) Gold(w http.ResponseWriter, r *http.Request) error {
	image, err := h.formImage(r)
	if err != nil {
		return err
	}
	s, on := scopeOf(r.Context()), r.PostForm.Get("gold") == "true"
	if err := h.Store.SetGold(r.Context(), s.Project.ID, s.User.ID, image, on); err != nil {
		return err
	}
	message := "The image is no longer gold."
	if on {
		message = "The image is gold: rounds from now on mix it in to see how well people label."
	}
	h.done(r, message)
	return seeOther(w, r, views.ProjectURL(s.Project.ID, fmt.Sprintf("/images/%d", image)))
}

func (h *Review) formImage(r *http.Request) (winnow.ImageID, error) {
	id, err := pathID(r, "image")
	if err != nil {
		return 0, err
	}
	if err := r.ParseForm(); err != nil {
		return 0, formError(err)
	}
	return winnow.ImageID(id), nil
}

func (h *Review) render(w http.ResponseWriter, r *http.Request, status int, after string, e views.FormError) error {
	ctx, s := r.Context(), scopeOf(r.Context())
	p := views.ReviewProps{Project: s.Project, After: after, ClientKey: rand.Text(), Error: e}
	if done, err := strconv.ParseInt(r.URL.Query().Get("done"), 10, 64); err == nil {
		p.Corrected = winnow.ImageID(done)
	}
	counts, err := h.Store.ReviewCounts(ctx, s.Project.ID)
	if err != nil {
		return err
	}
	p.Waiting = counts.Total
	if !r.URL.Query().Has("end") {
		items, next, err := h.Store.ReviewQueue(ctx, s.Project.ID, winnow.Page{After: after, Limit: 1})
		if err != nil {
			return err
		}
		if len(items) > 0 {
			p.Entry, p.Next = &items[0], views.ReviewAfter(s.Project.ID, next)
		}
	}
	p.Page = h.projectPage(r, "Review", views.TabReview)
	p.Styles, p.Scripts = []string{"css/review.css"}, []string{"js/review.js"}
	return render(w, r, status, views.Review(p))
}

// parseAnswer reads the value of an answer's button: "known:2", "unknown", "skip" or
// "unreadable".
func parseAnswer(value string) (winnow.Verdict, int, error) {
	verdict, index, known := strings.Cut(value, ":")
	if !known {
		return winnow.Verdict(verdict), -1, nil
	}
	class, err := strconv.Atoi(index)
	if err != nil {
		return "", -1, winnow.Invalid("answer", "The class is not a number.")
	}
	return winnow.Verdict(verdict), class, nil
}

// formID reads a positive number from the form.
func formID(r *http.Request, name string) (int64, error) {
	id, err := strconv.ParseInt(r.PostForm.Get(name), 10, 64)
	if err != nil || id <= 0 {
		return 0, winnow.Invalid(name, "The form names no %s.", name)
	}
	return id, nil
}
