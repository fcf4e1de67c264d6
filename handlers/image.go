package handlers

import (
	"bytes"
	"context"
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
	images, next, err := h.Store.Images(r.Context(), s.Project.ID, filter, winnow.Page{After: q.Get("after"), Limit: imagesPerPage})
	if err != nil {
		return err
	}
	return render(w, r, http.StatusOK, views.Images(views.ImagesProps{
		Page: h.projectPage(r, "Images", views.TabImages), Project: s.Project, Filter: filter, Images: images,
		First: firstURL(r), Next: nextURL(r, next),
	}))
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
	return render(w, r, http.StatusOK, views.Image(views.ImageProps{
		Page: h.projectPage(r, "Image", views.TabImages), Project: s.Project, Image: image, History: history, Queried: queried,
	}))
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
