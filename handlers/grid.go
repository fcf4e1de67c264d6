package handlers

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"winnow"
	"winnow/views"
)

// GridStore is what grid mode needs of the store.
type GridStore interface {
	Claim(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (*winnow.Round, []winnow.Item, error)
	ClaimAlike(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (round *winnow.Round, predicted int, items []winnow.Item, err error)
	DecideAll(ctx context.Context, project winnow.ProjectID, user winnow.UserID, ds []winnow.Decision) ([]winnow.DecideOutcome, *winnow.Round, error)
	UndoAll(ctx context.Context, project winnow.ProjectID, user winnow.UserID, undos []winnow.UndoRequest) ([]winnow.Item, error)
	Release(ctx context.Context, project winnow.ProjectID, user winnow.UserID, items []winnow.ItemID, asOf time.Time) error
	Recent(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) ([]winnow.Item, error)
}

// GroupStore is what the labeling page needs of the store to offer a group.
type GroupStore interface {
	Alike(ctx context.Context, project winnow.ProjectID, user winnow.UserID, n int) (class, count int, err error)
}

// gridSize is how many images a page of grid mode shows.
const gridSize = 40

// Grid serves grid mode: its page, the plain form of it, and the JSON that
// static/js/grid.js speaks besides that of the labeling page. A page of answers is
// sent at once; each has a client key of its own, so each counts once, however
// often the page is sent.
type Grid struct {
	*Base
	Labels GridStore
	Groups GroupStore
	Keys   KeyStore
}

// Page shows the next group of images that the model gives one class.
func (h *Grid) Page(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, http.StatusOK, "", nil)
}

// Submit takes a page of answers from the plain form. The button says what the
// images are that were picked out, or leaves them to be labeled on their own; all
// others are of the group's class.
func (h *Grid) Submit(w http.ResponseWriter, r *http.Request) error {
	if err := parseLabelForm(w, r); err != nil {
		return h.next(w, r, gridURL, err, nil)
	}
	form, err := h.readForm(r)
	if err != nil {
		return h.next(w, r, gridURL, err, form.picked)
	}
	ctx, project, user := r.Context(), scopeOf(r.Context()).Project.ID, scopeOf(r.Context()).User.ID
	if len(form.decisions) > 0 {
		outcomes, _, err := h.Labels.DecideAll(ctx, project, user, form.decisions)
		if err == nil {
			err = lost(outcomes)
		}
		if err != nil {
			return h.next(w, r, gridURL, err, nil)
		}
	}
	if !form.later {
		return h.next(w, r, gridURL, nil, nil)
	}
	// What was picked out goes back to those that are labeled one at a time.
	err = h.Labels.Release(ctx, project, user, form.picked, h.Now().Add(time.Hour))
	return h.next(w, r, labelURL, err, nil)
}

// gridForm is a page of answers.
type gridForm struct {
	decisions []winnow.Decision
	picked    []winnow.ItemID
	later     bool // some are picked out and stay undecided
}

func (h *Grid) readForm(r *http.Request) (gridForm, error) {
	var form gridForm
	items, err := formItems(r, "item")
	if err != nil {
		return form, err
	}
	if form.picked, err = formItems(r, "pick"); err != nil {
		return form, err
	}
	class, err := strconv.Atoi(r.PostForm.Get("class"))
	if err != nil {
		return form, winnow.Invalid("class", "The class is not a number.")
	}
	rest := winnow.Decision{Verdict: winnow.VerdictKnown, Class: class}
	other := winnow.Decision{Class: -1}
	value := r.PostForm.Get("answer")
	decided := value != "later"
	if decided {
		if other.Verdict, other.Class, err = formAnswer(value); err != nil {
			return form, err
		}
		if len(form.picked) == 0 {
			return form, winnow.Invalid("pick", "Nothing is picked out. Pick out the wrong images first, or accept all of them.")
		}
	}
	picked := map[winnow.ItemID]bool{}
	for _, id := range form.picked {
		picked[id] = true
	}
	for _, id := range items {
		d := rest
		if picked[id] {
			if !decided {
				form.later = true
				continue
			}
			d = other
		}
		d.ItemID, d.ClientKey = id, fmt.Sprintf("%s-%d", r.PostForm.Get("client_key"), id)
		form.decisions = append(form.decisions, d)
	}
	// The page says when it was made; its images share the time since.
	if shown, err := strconv.ParseInt(r.PostForm.Get("shown_at"), 10, 64); err == nil && len(form.decisions) > 0 {
		each := min(max(0, h.Now().UnixMilli()-shown), winnow.MaxDurationMS) / int64(len(form.decisions))
		for i := range form.decisions {
			form.decisions[i].DurationMS = each
		}
	}
	return form, nil
}

// formItems reads the items that a field of the form names.
func formItems(r *http.Request, field string) ([]winnow.ItemID, error) {
	values := r.PostForm[field]
	if len(values) > maxClaim {
		return nil, winnow.Invalid(field, "At most %d images are answered at once.", maxClaim)
	}
	items := make([]winnow.ItemID, len(values))
	for i, v := range values {
		id, err := strconv.ParseInt(v, 10, 64)
		if err != nil || id <= 0 {
			return nil, winnow.Invalid(field, "An image was named that there is not.")
		}
		items[i] = winnow.ItemID(id)
	}
	return items, nil
}

// formAnswer reads the value of an answer's button: "unknown", "known:3".
func formAnswer(value string) (winnow.Verdict, int, error) {
	verdict, index, known := strings.Cut(value, ":")
	if !known {
		return winnow.Verdict(verdict), -1, nil
	}
	class, err := strconv.Atoi(index)
	if err != nil {
		return "", 0, winnow.Invalid("answer", "The class is not a number.")
	}
	return winnow.Verdict(verdict), class, nil
}

// lost says which answers of a page were refused, nil if none was.
func lost(outcomes []winnow.DecideOutcome) error {
	var first error
	n := 0
	for _, o := range outcomes {
		if o.Err == nil {
			continue
		}
		if n++; first == nil {
			first = o.Err
		}
	}
	switch {
	case n == 0:
		return nil
	case n == 1 && len(outcomes) == 1:
		return first
	}
	return winnow.Errorf(winnow.ErrorCode(first), "%d of the %d answers do not count, the others are saved. %s",
		n, len(outcomes), winnow.ErrorMessage(first))
}

// SubmitUndo takes a page of answers back by the plain form, which names them: the
// form sent twice takes the same ones back.
func (h *Grid) SubmitUndo(w http.ResponseWriter, r *http.Request) error {
	if err := parseLabelForm(w, r); err != nil {
		return h.next(w, r, gridURL, err, nil)
	}
	ctx, project, user := r.Context(), scopeOf(r.Context()).Project.ID, scopeOf(r.Context()).User.ID
	items, err := formItems(r, "item")
	if err == nil && len(items) == 0 {
		err = winnow.Invalid("item", "No image was named.")
	}
	if err == nil {
		undos := make([]winnow.UndoRequest, len(items))
		for i, id := range items {
			undos[i] = winnow.UndoRequest{ItemID: id, ClientKey: fmt.Sprintf("%s-%d", r.PostForm.Get("client_key"), id)}
		}
		_, err = h.Labels.UndoAll(ctx, project, user, undos)
	}
	if err == nil { // one holds them one at a time now; the page claims them together
		err = h.Labels.Release(ctx, project, user, items, h.Now().Add(time.Hour))
	}
	return h.next(w, r, gridURL, err, nil)
}

// next answers a form: on to another page, or this one again with what went wrong.
func (h *Grid) next(w http.ResponseWriter, r *http.Request, then func(winnow.ProjectID) string, err error, picked []winnow.ItemID) error {
	if err == nil {
		return seeOther(w, r, then(scopeOf(r.Context()).Project.ID))
	}
	err = bodyError(err)
	var said *winnow.Error
	if !errors.As(err, &said) || said.Code == winnow.CodeInternal {
		return err
	}
	return h.render(w, r, Status(said), winnow.ErrorMessage(said), picked)
}

func (h *Grid) render(w http.ResponseWriter, r *http.Request, status int, notice string, picked []winnow.ItemID) error {
	at := scopeOf(r.Context())
	group, err := h.claim(r.Context(), at, gridSize)
	if err != nil {
		return err
	}
	recent, err := h.Labels.Recent(r.Context(), at.Project.ID, at.User.ID, maxClaim)
	if err != nil {
		return err
	}
	keys, err := h.Keys.Keys(r.Context(), at.User.ID)
	if err != nil {
		return err
	}
	p := views.GridProps{
		LabelProps: views.LabelProps{
			Project: *at.Project, Round: group.Round, Wait: group.Wait, Notice: notice, Keys: keys.Of(),
			ClientKey: rand.Text(), UndoKey: rand.Text(), ShownAt: h.Now().UnixMilli(),
			Boot: views.LabelBoot{Base: labelURL(at.Project.ID)},
		},
		Items: group.Items,
		Boot: views.GridBoot{
			Base: labelURL(at.Project.ID), User: int64(at.User.ID), Project: int64(at.Project.ID), Keys: keys,
			LeaseSeconds: at.Project.Settings.LeaseSeconds, Size: gridSize, Round: group.Round, Class: group.Class,
			Items: group.Items, Wait: group.Wait, Past: gridBatches(recent, maxClaim),
			AsOf: group.AsOf.Format(time.RFC3339Nano),
		},
	}
	if group.Class >= 0 {
		p.Class = &at.Project.Classes[group.Class]
	}
	if n := len(p.Boot.Past); n > 0 {
		p.Last = &p.Boot.Past[n-1]
	}
	for _, id := range picked {
		p.Picked = append(p.Picked, int64(id))
	}
	p.Page = h.projectPage(r, "Label together", views.TabLabel)
	p.Page.Theme, p.Page.Bare = labelTheme(r), true
	p.Page.Styles, p.Page.Scripts = []string{"css/label.css", "css/grid.css"}, []string{"js/grid.js"}
	p.Page.Refresh = group.Wait != nil
	return render(w, r, status, views.Grid(p))
}

// gridGroup is a group of images of one likely class, leased to whoever asked.
type gridGroup struct {
	Round *views.LabelRound `json:"round"`
	Class int               `json:"class"` // -1 without items
	Items []views.LabelItem `json:"items"`
	Wait  *views.LabelWait  `json:"wait,omitempty"`
	AsOf  time.Time         `json:"as_of"`
}

func (h *Grid) claim(ctx context.Context, at *Scope, n int) (*gridGroup, error) {
	round, class, items, err := h.Labels.ClaimAlike(ctx, at.Project.ID, at.User.ID, n)
	if err != nil {
		return nil, err
	}
	group := &gridGroup{Round: labelRound(round), Class: -1, Items: make([]views.LabelItem, len(items)), AsOf: h.Now()}
	for i, item := range items {
		group.Items[i] = labelItem(item)
	}
	if len(items) > 0 && class >= 0 && class < len(at.Project.Classes) {
		group.Class = class
		return group, nil
	}
	group.Wait = gridWait(at, round)
	return group, nil
}

// gridWait says why there is no group, and where labeling goes on.
func gridWait(at *Scope, round *winnow.Round) *views.LabelWait {
	if round == nil || round.State != winnow.RoundLabeling {
		return labelWait(at.Project, at.Role, round)
	}
	return &views.LabelWait{
		Title:  "No group of like images is left",
		Detail: "The model is not sure enough of the others to show them together.",
		Action: "Label one at a time", Href: labelURL(at.Project.ID),
	}
}

// gridBatches finds the pages of answers that stand among a person's last decisions,
// oldest first: decisions that were made at once have the same time. Those before
// a decision on a single image are left to the labeling page, which takes back one
// after the other. A page that the list of at most limit decisions cuts off is
// not whole, and left out.
func gridBatches(recent []winnow.Item, limit int) []views.GridBatch {
	batches := []views.GridBatch{}
	for len(recent) > 0 {
		n := 1
		for n < len(recent) && recent[n].DecidedAt.Equal(recent[0].DecidedAt) {
			n++
		}
		if n == 1 || n == len(recent) && len(recent) == limit-total(batches) {
			break
		}
		batches = append([]views.GridBatch{{Class: likely(recent[:n]), Items: labelRecent(recent[:n])}}, batches...)
		recent = recent[n:]
	}
	return batches
}

// total is how many decisions the batches hold.
func total(batches []views.GridBatch) int {
	n := 0
	for _, b := range batches {
		n += len(b.Items)
	}
	return n
}

// likely is the class that the model gives most of the items.
func likely(items []winnow.Item) int {
	votes, best := map[int]int{}, -1
	for _, item := range items {
		class := item.Scores.Predicted
		if votes[class]++; best < 0 || votes[class] > votes[best] {
			best = class
		}
	}
	return best
}

// leastGroup is how many like images make a group worth a page of its own.
const leastGroup = 6

// offer is the group that the labeling page offers, nil if there is none.
func offer(ctx context.Context, groups GroupStore, at *Scope) (*views.LabelGroup, error) {
	class, n, err := groups.Alike(ctx, at.Project.ID, at.User.ID, gridSize)
	if err != nil || n < leastGroup || class < 0 || class >= len(at.Project.Classes) {
		return nil, err
	}
	return views.NewLabelGroup(at.Project.Classes[class], n, gridSize), nil
}

// Offer tells the group that the labeling page offers.
func (h *Grid) Offer(w http.ResponseWriter, r *http.Request) error {
	group, err := offer(r.Context(), h.Groups, scopeOf(r.Context()))
	if err != nil {
		return err
	}
	return respondJSON(w, struct {
		Group *views.LabelGroup `json:"group"` // null for none
	}{group})
}

// Alike leases the next group to the user.
func (h *Grid) Alike(w http.ResponseWriter, r *http.Request) error {
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
	group, err := h.claim(r.Context(), at, in.N)
	if err != nil {
		return err
	}
	return respondJSON(w, group)
}

// DecideAll records a page of answers and says what became of each.
func (h *Grid) DecideAll(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		User      winnow.UserID `json:"user"`
		Decisions []struct {
			Item       winnow.ItemID  `json:"item"`
			Verdict    winnow.Verdict `json:"verdict"`
			Class      int            `json:"class"`
			ClientKey  string         `json:"client_key"`
			DurationMS int64          `json:"duration_ms"`
		} `json:"decisions"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if len(in.Decisions) < 1 || len(in.Decisions) > maxClaim {
		return winnow.Invalid("decisions", "Send 1 to %d answers.", maxClaim)
	}
	decisions := make([]winnow.Decision, len(in.Decisions))
	for i, d := range in.Decisions {
		decisions[i] = winnow.Decision{
			ItemID: d.Item, Verdict: d.Verdict, Class: d.Class, ClientKey: d.ClientKey, DurationMS: d.DurationMS,
		}
	}
	outcomes, round, err := h.Labels.DecideAll(r.Context(), at.Project.ID, at.User.ID, decisions)
	if err != nil {
		return err
	}
	type outcome struct {
		Item     winnow.ItemID  `json:"item"`
		Event    winnow.EventID `json:"event,omitempty"`
		Replayed bool           `json:"replayed,omitempty"`
		Error    string         `json:"error,omitempty"` // why it does not count
		Code     winnow.Code    `json:"code,omitempty"`
	}
	out := struct {
		Outcomes []outcome         `json:"outcomes"`
		Round    *views.LabelRound `json:"round"`
	}{make([]outcome, len(outcomes)), labelRound(round)}
	for i, o := range outcomes {
		out.Outcomes[i] = outcome{Item: decisions[i].ItemID, Event: o.Event, Replayed: o.Replayed}
		if o.Err != nil {
			out.Outcomes[i].Error, out.Outcomes[i].Code = winnow.ErrorMessage(o.Err), winnow.ErrorCode(o.Err)
		}
	}
	return respondJSON(w, out)
}

// UndoAll takes a page of answers back: all of them, or none.
func (h *Grid) UndoAll(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		User  winnow.UserID `json:"user"`
		Undos []struct {
			Item      winnow.ItemID `json:"item"`
			ClientKey string        `json:"client_key"`
		} `json:"undos"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if len(in.Undos) < 1 || len(in.Undos) > maxClaim {
		return winnow.Invalid("undos", "Take 1 to %d answers back.", maxClaim)
	}
	undos := make([]winnow.UndoRequest, len(in.Undos))
	for i, u := range in.Undos {
		undos[i] = winnow.UndoRequest{ItemID: u.Item, ClientKey: u.ClientKey}
	}
	items, err := h.Labels.UndoAll(r.Context(), at.Project.ID, at.User.ID, undos)
	if err != nil {
		return err
	}
	round, _, err := h.Labels.Claim(r.Context(), at.Project.ID, at.User.ID, 0)
	if err != nil {
		return err
	}
	out := struct {
		Items []views.LabelItem `json:"items"`
		Round *views.LabelRound `json:"round"`
	}{make([]views.LabelItem, len(items)), labelRound(round)}
	for i, item := range items {
		out.Items[i] = labelItem(item)
	}
	return respondJSON(w, out)
}

func gridURL(project winnow.ProjectID) string { return labelURL(project) + "/grid" }
