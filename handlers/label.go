package handlers

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"

	"winnow"
	"winnow/views"
)

// LabelStore is what the labeling page needs of the store.
type LabelStore interface {
	Claim(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, []winnow.Item, error)
	Decide(ctx context.Context, project winnow.ProjectID, user winnow.UserID, d winnow.Decision) (winnow.DecideResult, error)
	Undo(ctx context.Context, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, clientKey string) (*winnow.Item, error)
	Renew(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID) ([]winnow.ItemID, error)
	Release(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID, asOf time.Time) error
	Recent(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) ([]winnow.Item, error)
	Flag(ctx context.Context, project winnow.ProjectID, user winnow.UserID, item winnow.ItemID, note string) error
}

// Limits of the labeling page's requests.
const (
	maxClaim      = 100
	maxLabelBody  = 64 << 10
	recentAnswers = 10
)

// Label serves the labeling page, its plain forms, and the JSON that
// static/js/label.js speaks. Answers come with a client key, so each may be sent
// any number of times and counts once.
type Label struct {
	*Base
	Labels LabelStore
	Keys   KeyStore
}

// Page shows the next image.
func (h *Label) Page(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, http.StatusOK, "")
}

// Submit takes an answer from the plain form and shows the next image.
func (h *Label) Submit(w http.ResponseWriter, r *http.Request) error {
	at := scopeOf(r.Context())
	d, err := h.formDecision(w, r)
	if err == nil {
		_, err = h.Labels.Decide(r.Context(), at.Project.ID, at.User.ID, d)
	}
	return h.next(w, r, err)
}

// submitUndo takes the user's last answer back and shows its image again.
func (h *Label) submitUndo(w http.ResponseWriter, r *http.Request) error {
	at := scopeOf(r.Context())
	if err := parseLabelForm(w, r); err != nil {
		return err
	}
	_, err := h.Labels.Undo(r.Context(), at.Project.ID, at.User.ID, 0, r.PostForm.Get("client_key"))
	return h.next(w, r, err)
}

// next answers a form: on to the next image, or the page again with what went
// wrong. A refused answer has the status of its error, and loses nothing.
func (h *Label) next(w http.ResponseWriter, r *http.Request, err error) error {
	if err == nil {
		return seeOther(w, r, labelURL(scopeOf(r.Context()).Project.ID))
	}
	err = bodyError(err)
	var said *winnow.Error
	if !errors.As(err, &said) || said.Code == winnow.CodeInternal {
		return err
	}
	return h.render(w, r, Status(said), winnow.ErrorMessage(said))
}

func (h *Label) render(w http.ResponseWriter, r *http.Request, status int, notice string) error {
	at := scopeOf(r.Context())
	ctx, project, user := r.Context(), at.Project.ID, at.User.ID
	round, items, err := h.Labels.Claim(ctx, project, user, 1)
	if err != nil {
		return err
	}
	recent, err := h.Labels.Recent(ctx, project, user, recentAnswers)
	if err != nil {
		return err
	}
	keys, err := h.Keys.Keys(ctx, user)
	if err != nil {
		return err
	}
	page := h.projectPage(r, "Label", views.TabLabel)
	page.Theme, page.Bare = labelTheme(r), true
	page.Styles, page.Scripts = []string{"css/label.css"}, []string{"js/label.js"}
	p := views.LabelProps{
		Project:   *at.Project,
		Round:     labelRound(round),
		Recent:    labelRecent(recent),
		Notice:    notice,
		ClientKey: rand.Text(),
		UndoKey:   rand.Text(),
		ShownAt:   h.Now().UnixMilli(),
		Keys:      keys.Of(),
	}
	if len(items) > 0 {
		p.Item = &suggesting(at.Project, items)[0]
	} else {
		p.Wait = labelWait(at.Project, at.Role, round)
		page.Refresh = true
	}
	p.Page = page
	p.Boot = views.LabelBoot{
		Base:         labelURL(project),
		User:         int64(user),
		Project:      int64(project),
		LeaseSeconds: at.Project.Settings.LeaseSeconds,
		Keys:         keys,
		Round:        p.Round,
		Item:         p.Item,
		Recent:       p.Recent,
	}
	return render(w, r, status, views.Label(p))
}

// formDecision reads the plain form: one field holds the whole answer, the value
// of the button pressed.
func (h *Label) formDecision(w http.ResponseWriter, r *http.Request) (winnow.Decision, error) {
	if err := parseLabelForm(w, r); err != nil {
		return winnow.Decision{}, err
	}
	item, err := formItem(r)
	if err != nil {
		return winnow.Decision{}, err
	}
	d := winnow.Decision{ItemID: item, Class: -1, ClientKey: r.PostForm.Get("client_key")}
	verdict, index, known := strings.Cut(r.PostForm.Get("answer"), ":")
	d.Verdict = winnow.Verdict(verdict)
	if known {
		if d.Class, err = strconv.Atoi(index); err != nil {
			return winnow.Decision{}, winnow.Invalid("answer", "The class is not a number.")
		}
	}
	// The page says when it was made. A clock that moved must not cost the answer.
	if shown, err := strconv.ParseInt(r.PostForm.Get("shown_at"), 10, 64); err == nil {
		d.DurationMS = min(max(0, h.Now().UnixMilli()-shown), winnow.MaxDurationMS)
	}
	return d, nil
}

func formItem(r *http.Request) (winnow.ItemID, error) {
	item, err := strconv.ParseInt(r.PostForm.Get("item"), 10, 64)
	if err != nil || item <= 0 {
		return 0, winnow.Invalid("item", "No image was named.")
	}
	return winnow.ItemID(item), nil
}

func parseLabelForm(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxLabelBody)
	if err := r.ParseForm(); err != nil {
		return &winnow.Error{Code: winnow.CodeInvalid, Message: "The form cannot be read.", Err: err}
	}
	return nil
}

// Claim leases the next images to the user.
func (h *Label) Claim(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		User winnow.UserID `json:"user"`
		N    int           `json:"n"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if in.N < 1 || in.N > maxClaim {
		return winnow.Invalid("n", "Ask for 1 to %d images.", maxClaim)
	}
	round, items, err := h.Labels.Claim(r.Context(), at.Project.ID, at.User.ID, in.N)
	if err != nil {
		return err
	}
	out := struct {
		Round *views.LabelRound `json:"round"`
		Items []views.LabelItem `json:"items"`
		Wait  *views.LabelWait  `json:"wait,omitempty"`
		AsOf  time.Time         `json:"as_of"`
	}{Round: labelRound(round), Items: suggesting(at.Project, items), AsOf: h.Now()}
	if len(items) == 0 {
		out.Wait = labelWait(at.Project, at.Role, round)
	}
	return respondJSON(w, out)
}

// Decide records an answer.
func (h *Label) Decide(w http.ResponseWriter, r *http.Request) error {
	d, at, err := decodeDecision(w, r)
	if err != nil {
		return err
	}
	result, err := h.Labels.Decide(r.Context(), at.Project.ID, at.User.ID, d)
	if err != nil {
		return err
	}
	return respondJSON(w, struct {
		Event    winnow.EventID    `json:"event"`
		Replayed bool              `json:"replayed"`
		Round    *views.LabelRound `json:"round"`
	}{result.Event, result.Replayed, labelRound(&result.Round)})
}

func decodeDecision(w http.ResponseWriter, r *http.Request) (winnow.Decision, *Scope, error) {
	var in struct {
		User       winnow.UserID  `json:"user"`
		Item       winnow.ItemID  `json:"item"`
		Verdict    winnow.Verdict `json:"verdict"`
		Class      int            `json:"class"`
		ClientKey  string         `json:"client_key"`
		DurationMS int64          `json:"duration_ms"`
	}
	in.Class = -1 // a class that was left out is none
	at, err := decodeLabel(w, r, &in, &in.User)
	return winnow.Decision{
		ItemID: in.Item, Verdict: in.Verdict, Class: in.Class, ClientKey: in.ClientKey, DurationMS: in.DurationMS,
	}, at, err
}

// Undo takes an answer back: that on the item, or the last one.
func (h *Label) Undo(w http.ResponseWriter, r *http.Request) error {
	if !wantsJSON(r) {
		return h.submitUndo(w, r)
	}
	var in struct {
		User      winnow.UserID `json:"user"`
		Item      winnow.ItemID `json:"item"`
		ClientKey string        `json:"client_key"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	item, err := h.Labels.Undo(r.Context(), at.Project.ID, at.User.ID, in.Item, in.ClientKey)
	if err != nil {
		return err
	}
	round, _, err := h.Labels.Claim(r.Context(), at.Project.ID, at.User.ID, 0)
	if err != nil {
		return err
	}
	return respondJSON(w, struct {
		Item  views.LabelItem   `json:"item"`
		Round *views.LabelRound `json:"round"`
	}{labelItem(*item), labelRound(round)})
}

// Renew keeps the leases of the items that are still the user's, and names them.
func (h *Label) Renew(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		User  winnow.UserID   `json:"user"`
		Items []winnow.ItemID `json:"items"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if len(in.Items) > maxClaim {
		return winnow.Invalid("items", "At most %d leases are renewed at once.", maxClaim)
	}
	kept, err := h.Labels.Renew(r.Context(), at.Project.ID, at.User.ID, in.Items)
	if err != nil {
		return err
	}
	if kept == nil {
		kept = []winnow.ItemID{}
	}
	return respondJSON(w, struct {
		Kept []winnow.ItemID `json:"kept"`
		AsOf time.Time       `json:"as_of"`
	}{kept, h.Now()})
}

// Release gives leases back. A page sends it while it closes, so it may come
// after the page that follows has claimed the same items again: leases newer than
// as_of stay.
func (h *Label) Release(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		User  winnow.UserID   `json:"user"`
		Items []winnow.ItemID `json:"items"`
		AsOf  time.Time       `json:"as_of"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if len(in.Items) > maxClaim {
		return winnow.Invalid("items", "At most %d leases are released at once.", maxClaim)
	}
	if err := h.Labels.Release(r.Context(), at.Project.ID, at.User.ID, in.Items, in.AsOf); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// Flag asks an admin to look at an image that the user has, or has answered. Sent
// again it replaces the note.
func (h *Label) Flag(w http.ResponseWriter, r *http.Request) error {
	if !wantsJSON(r) {
		return h.submitFlag(w, r)
	}
	var in struct {
		User winnow.UserID `json:"user"`
		Item winnow.ItemID `json:"item"`
		Note string        `json:"note"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if err := h.Labels.Flag(r.Context(), at.Project.ID, at.User.ID, in.Item, in.Note); err != nil {
		return err
	}
	return respondJSON(w, struct {
		Item winnow.ItemID `json:"item"`
	}{in.Item})
}

// submitFlag takes a flag from the plain form and shows the same image again.
func (h *Label) submitFlag(w http.ResponseWriter, r *http.Request) error {
	at := scopeOf(r.Context())
	if err := parseLabelForm(w, r); err != nil {
		return err
	}
	item, err := formItem(r)
	if err == nil {
		err = h.Labels.Flag(r.Context(), at.Project.ID, at.User.ID, item, r.PostForm.Get("note"))
	}
	if err != nil {
		return h.next(w, r, err)
	}
	return h.render(w, r, http.StatusOK, "Flagged for an admin.")
}

// State says where the round stands, and the user's last answers.
func (h *Label) State(w http.ResponseWriter, r *http.Request) error {
	at := scopeOf(r.Context())
	round, _, err := h.Labels.Claim(r.Context(), at.Project.ID, at.User.ID, 0)
	if err != nil {
		return err
	}
	recent, err := h.Labels.Recent(r.Context(), at.Project.ID, at.User.ID, recentAnswers)
	if err != nil {
		return err
	}
	return respondJSON(w, struct {
		Round  *views.LabelRound `json:"round"`
		Recent []views.LabelPast `json:"recent"`
		Wait   *views.LabelWait  `json:"wait"`
	}{labelRound(round), labelRecent(recent), labelWait(at.Project, at.Role, round)})
}

// decodeLabel reads a JSON request and checks that the page which sent it belongs to
// whoever is signed in now: answers wait in a browser while people come and go,
// and must not be recorded under another name.
func decodeLabel(w http.ResponseWriter, r *http.Request, in any, sender *winnow.UserID) (*Scope, error) {
	at := scopeOf(r.Context())
	// A script of another site can send JSON under a form's type, but not under its own.
	if mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mediaType != "application/json" {
		return nil, winnow.Errorf(winnow.CodeUnsupported, "Send JSON, as application/json.")
	}
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLabelBody))
	err := decoder.Decode(in)
	if err == nil {
		if _, more := decoder.Token(); more != io.EOF {
			err = errors.Join(errors.New("more than one value"), more)
		}
	}
	if err != nil {
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Message: "This is not the JSON that was expected.", Err: err}
	}
	if *sender != 0 && *sender != at.User.ID {
		return nil, winnow.Errorf(winnow.CodeUnauthenticated, "Somebody else is signed in in this browser now.")
	}
	return at, nil
}

func labelURL(project winnow.ProjectID) string { return views.ProjectURL(project, "/label") }

func labelRound(r *winnow.Round) *views.LabelRound {
	if r == nil {
		return nil
	}
	round := &views.LabelRound{Number: r.Number, State: string(r.State), Total: r.Counts.Total + r.GoldGiven, Done: r.Counts.Done() + r.GoldAnswered}
	if r.State != winnow.RoundLabeling && r.State != winnow.RoundClosed {
		// The answers so far are of a round before: this one learns, or has learned, from them.
		round.Fixed = fmt.Sprintf("Round %d has started, so earlier answers stand.", r.Number)
	}
	return round
}

func labelItem(i winnow.Item) views.LabelItem {
	image := views.ProjectURL(i.ProjectID, fmt.Sprintf("/images/%d/", i.ImageID))
	return views.LabelItem{
		ID: int64(i.ID), Src: image + "display", Thumb: image + "thumb", Width: i.Width, Height: i.Height,
	}
}

// suggesting are the items as the page shows them, with the classes that the model
// predicts if the project shows those.
func suggesting(p *winnow.Project, items []winnow.Item) []views.LabelItem {
	out := make([]views.LabelItem, len(items))
	for i, item := range items {
		out[i] = labelItem(item)
		if c := item.Scores.Predicted; p.Settings.Suggest && item.Scores.HasScores && c >= 0 && c < len(p.Classes) {
			out[i].Suggested = &c
		}
	}
	return out
}

func labelRecent(items []winnow.Item) []views.LabelPast {
	past := make([]views.LabelPast, len(items))
	for i, item := range items {
		past[i] = views.LabelPast{Item: labelItem(item), Verdict: string(item.Verdict), Class: item.Class}
	}
	return past
}
