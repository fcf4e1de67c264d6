package handlers

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"time"

	"github.com/go-chi/chi/v5"

	"winnow"
	"winnow/views"
)

// ImageStore is what the gallery, an image's page and image bytes need of the store.
type ImageStore interface {
	Images(ctx context.Context, project winnow.ProjectID, f winnow.ImageFilter, page winnow.Page) ([]winnow.Image, string, error)
	Image(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) (*winnow.Image, error)
	ImageHistory(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) ([]winnow.HistoryEntry, error)
	ImageItems(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) ([]winnow.QueriedItem, error)
	AnsweredImages(ctx context.Context, project winnow.ProjectID, f winnow.ImageFilter, page winnow.Page) ([]winnow.AnsweredImage, string, error)
	IsGold(ctx context.Context, project winnow.ProjectID, id winnow.ImageID) (bool, error)
	ImageBytes(ctx context.Context, project winnow.ProjectID, id winnow.ImageID, rendition string) (data []byte, mediaType string, sha [32]byte, err error)
}

// Images serves a project's images.
type Images struct {
	*Base
	Store ImageStore
}

const imagesPerPage = 60

// Gallery lists the images that fit the filter of the address.
func (h *Images) Gallery(w http.ResponseWriter, r *http.Request) error {
	s, q := scopeOf(r.Context()), r.URL.Query()
	filter := winnow.ImageFilter{Split: winnow.Split(q.Get("split")), Verdict: q.Get("verdict")}
	var err error
	if filter.Class, err = queryInt(r, "class"); err != nil {
		return err
	}
	if filter.Round, err = queryInt(r, "round"); err != nil {
		return err
	}
	filter.Answers, filter.Gold = winnow.AnswerFilter(q.Get("answers")), q.Get("gold") == "true"
	by, err := queryInt(r, "by")
	if err != nil {
		return err
	}
	if by != nil {
		filter.By = winnow.UserID(*by)
	}
	if err := mayFilter(s, &filter); err != nil {
		return err
	}
	var (
		props = views.ImagesProps{Project: s.Project, Filter: filter, First: firstURL(r)}
		page  = winnow.Page{After: q.Get("after"), Limit: imagesPerPage}
		next  string
	)
	if filter.By != 0 || filter.Answers != "" {
		props.Answered, next, err = h.Store.AnsweredImages(r.Context(), s.Project.ID, filter, page)
		props.Who = whose(s, filter.By, props.Answered)
	} else {
		props.Images, next, err = h.Store.Images(r.Context(), s.Project.ID, filter, page)
	}
	if err != nil {
		return err
	}
	props.Page, props.Next = h.projectPage(r, "Images", views.TabImages), nextURL(r, next)
	return render(w, r, http.StatusOK, views.Images(props))
}

// mayFilter keeps what others answered, and which images are gold, to admins.
func mayFilter(s *Scope, f *winnow.ImageFilter) error {
	if s.Role.Allows(winnow.RoleAdmin) {
		return nil
	}
	own := f.By == s.User.ID && (f.Answers == "" || f.Answers == winnow.AnswersDiffer)
	if f.Gold || (f.By != 0 || f.Answers != "") && !own {
		return winnow.Errorf(winnow.CodeForbidden, "What others answered, and which images are gold, is for the project's admins. Your own answers are under Your labels.")
	}
	f.HideGold = true
	return nil
}

// whose names the person whose answers are shown.
func whose(s *Scope, by winnow.UserID, answered []winnow.AnsweredImage) string {
	switch {
	case by == s.User.ID:
		return "you"
	case len(answered) > 0:
		return answered[0].Said.User
	default:
		return "this person"
	}
}

// Page shows one image, what was said of it, and why it was asked about.
func (h *Images) Page(w http.ResponseWriter, r *http.Request) error {
	s, ctx := scopeOf(r.Context()), r.Context()
	id, err := pathID(r, "image")
	if err != nil {
		return err
	}
	image, err := h.Store.Image(ctx, s.Project.ID, winnow.ImageID(id))
	if err != nil {
		return err
	}
	history, err := h.Store.ImageHistory(ctx, s.Project.ID, image.ID)
	if err != nil {
		return err
	}
	queried, err := h.Store.ImageItems(ctx, s.Project.ID, image.ID)
	if err != nil {
		return err
	}
	props := views.ImageProps{Project: s.Project, Image: image, History: history, Queried: queried}
	if s.Role.Allows(winnow.RoleAdmin) {
		props.ClientKey = rand.Text()
		if props.Gold, err = h.Store.IsGold(ctx, s.Project.ID, image.ID); err != nil {
			return err
		}
	}
	props.Page = h.projectPage(r, "Image", views.TabImages)
	return render(w, r, http.StatusOK, views.Image(props))
}

// Bytes serves a rendition of an image: original, display or thumb. The content
// never changes, so browsers keep it; it is somebody else's file, so it may do
// nothing but be shown.
func (h *Images) Bytes(w http.ResponseWriter, r *http.Request) error {
	s := scopeOf(r.Context())
	id, err := pathID(r, "image")
	if err != nil {
		return err
	}
	rendition := chi.URLParam(r, "rendition")
	data, mediaType, sha, err := h.Store.ImageBytes(r.Context(), s.Project.ID, winnow.ImageID(id), rendition)
	if err != nil {
		return err
	}
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("ETag", `"`+hex.EncodeToString(sha[:12])+"-"+rendition+`"`)
	header.Set("Cache-Control", "private, max-age=31536000, immutable")
	header.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	return nil
}
