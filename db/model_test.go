package db_test

import (
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db/dbtest"
)

// The model is what the store is to do, said as simply as can be: who holds which slot
// of each item until when, what they said, and what follows from that. Nothing in it is
// counted or kept: all is worked out anew from the answers.
type model struct {
	lease   time.Duration
	overlap int
	every   int // answers between gold items, 0 for none
	open    bool
	items   []*modelItem // of the newest round, by rank
	gold    map[winnow.ItemID]*modelItem
	images  map[winnow.ImageID]*modelImage
	people  map[winnow.UserID]*modelPerson
	late    map[string]bool // client keys
	events  int             // answers so far
}

type modelImage struct {
	imported  *said // by an import, while nothing else had labeled it
	corrected *said
	item      *modelItem // the newest
}

type modelPerson struct {
	active time.Duration
	since  int // answers since a gold item was given out
	seen   map[winnow.ItemID]bool
}

type modelItem struct {
	id    winnow.ItemID
	image winnow.ImageID
	clear bool
	class int // predicted
	slots []*modelSlot
	final bool // an admin decided it
}

type modelSlot struct {
	user   winnow.UserID
	rank   int
	until  time.Time
	grid   bool
	answer *said
}

// said is an answer, or a label. Number is the answer's place in the history.
type said struct {
	verdict winnow.Verdict
	class   int
	number  int
	gold    string
}

func (a *said) same(b *said) bool { return a.verdict == b.verdict && a.class == b.class }

// resolved is what an item's answers come to: nil while some are missing, or without a winner.
func (m *modelItem) resolved() *said {
	if len(m.slots) == 0 || m.left() > 0 {
		return nil
	}
	votes := map[said]int{}
	for _, s := range m.slots {
		votes[said{verdict: s.answer.verdict, class: s.answer.class}]++
	}
	skip := said{verdict: winnow.VerdictSkip, class: -1}
	if len(votes) > 1 {
		delete(votes, skip)
	}
	most := slices.Max(slices.Collect(maps.Values(votes)))
	var winners []said
	for answer, n := range votes {
		if n == most {
			winners = append(winners, answer)
		}
	}
	if len(winners) > 1 {
		return nil
	}
	return &winners[0]
}

func (m *modelItem) left() (n int) {
	for _, s := range m.slots {
		if s.answer == nil {
			n++
		}
	}
	return n
}

func (m *modelItem) own(user winnow.UserID) *modelSlot {
	for _, s := range m.slots {
		if s.user == user {
			return s
		}
	}
	return nil
}

// label is what an image is labeled as, nil for nothing.
func (m *model) label(image winnow.ImageID) *said {
	i := m.images[image]
	if i.corrected != nil {
		return i.corrected
	}
	if i.item != nil {
		if r := i.item.resolved(); r != nil {
			return r
		}
	}
	return i.imported
}

// decided is what an item was decided to be, by its people or an admin.
func (m *model) decided(i *modelItem) *said {
	if i.final {
		return m.images[i.image].corrected
	}
	return i.resolved()
}

func (s *modelSlot) free(now time.Time) bool {
	return s.answer == nil && (s.user == 0 || !s.until.After(now))
}

func (m *model) all() []*modelItem {
	return append(slices.Clone(m.items), slices.Collect(maps.Values(m.gold))...)
}

// take leases a person's own slots of which ok is true, by rank, and then free ones.
func (m *model) take(user winnow.UserID, n int, now time.Time, grid bool, ownToo func(*modelItem, *modelSlot) bool, ok func(*modelItem) bool, due *bool) (own, fresh []winnow.ItemID) {
	type held struct {
		*modelItem
		*modelSlot
	}
	var mine []held
	for _, i := range m.all() {
		if s := i.own(user); s != nil && s.answer == nil && ownToo(i, s) {
			mine = append(mine, held{i, s})
		}
	}
	slices.SortFunc(mine, func(a, b held) int {
		return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.id, b.id))
	})
	for _, h := range mine[:min(n, len(mine))] {
		h.until, h.grid = now.Add(m.lease), grid
		own = append(own, h.id)
	}
	n -= len(own)
	if due != nil {
		p := m.people[user]
		*due = n > 0 && p != nil && m.every > 0 && len(m.gold) > 0 && p.since >= m.every
		if *due {
			n--
			p.since -= m.every
		}
	}
	for _, i := range m.items {
		if len(fresh) == n {
			break
		}
		if i.own(user) != nil || !ok(i) {
			continue
		}
		for _, s := range i.slots {
			if s.free(now) {
				s.user, s.until, s.grid = user, now.Add(m.lease), grid
				fresh = append(fresh, i.id)
				break
			}
		}
	}
	return own, fresh
}

func (m *model) claim(user winnow.UserID, n int, now time.Time) (own, fresh []winnow.ItemID, due bool) {
	if !m.open {
		return nil, nil, false
	}
	own, fresh = m.take(user, n, now, false, func(_ *modelItem, s *modelSlot) bool { return !s.grid || !s.until.After(now) },
		func(*modelItem) bool { return true }, &due)
	return own, fresh, due
}

func (m *model) claimAlike(user winnow.UserID, n int, now time.Time) (class int, own, fresh []winnow.ItemID) {
	class = -1
	if !m.open {
		return class, nil, nil
	}
	trusted := func(class int) bool {
		decided, right := 0, 0
		for _, i := range m.items {
			d := m.decided(i)
			if d == nil || i.class != class || d.verdict != winnow.VerdictKnown && d.verdict != winnow.VerdictUnknown {
				continue
			}
			decided++
			if d.class == class {
				right++
			}
		}
		return decided >= 10 && 5*right >= 4*decided
	}
	rank, most := 0, 0
	for c := range 3 {
		n := 0
		for _, i := range m.items {
			s := i.own(user)
			if i.class == c && s != nil && s.answer == nil && s.grid && (rank == 0 || s.rank < rank) {
				class, rank = c, s.rank
			}
			if i.class == c && s == nil && (i.clear || trusted(c)) && slices.ContainsFunc(i.slots, func(s *modelSlot) bool { return s.free(now) }) {
				n++
			}
		}
		if rank == 0 && n > most {
			class, most = c, n
		}
	}
	if class < 0 {
		return class, nil, nil
	}
	own, fresh = m.take(user, n, now, true, func(i *modelItem, s *modelSlot) bool { return s.grid && i.class == class },
		func(i *modelItem) bool { return i.class == class && (i.clear || trusted(class)) }, nil)
	return class, own, fresh
}

func (m *model) find(id winnow.ItemID) *modelItem {
	if i := m.gold[id]; i != nil {
		return i
	}
	for _, i := range m.items {
		if i.id == id {
			return i
		}
	}
	return nil
}

// decide reports whether an answer counts.
func (m *model) decide(user winnow.UserID, d winnow.Decision, now time.Time) bool {
	i := m.find(d.ItemID)
	slot := i.own(user)
	gold := m.gold[d.ItemID] != nil
	if slot == nil && !gold {
		for _, s := range i.slots {
			if slot == nil && s.free(now) {
				slot = s
			}
		}
	}
	if slot == nil || slot.answer != nil || !m.open && !gold {
		m.late[d.ClientKey] = true
		return false
	}
	m.events++
	answer := &said{verdict: d.Verdict, class: d.Class, number: m.events}
	p := m.person(user)
	p.active += min(time.Duration(d.DurationMS)*time.Millisecond, winnow.IdleLimit)
	if gold {
		truth := m.label(i.image)
		switch {
		case d.Verdict != winnow.VerdictKnown && d.Verdict != winnow.VerdictUnknown,
			truth.verdict != winnow.VerdictKnown && truth.verdict != winnow.VerdictUnknown:
			answer.gold = "none"
		case answer.same(truth):
			answer.gold = "right"
		case d.Verdict == winnow.VerdictUnknown:
			answer.gold = "false-unknown"
		case truth.verdict == winnow.VerdictUnknown:
			answer.gold = "false-known"
		default:
			answer.gold = "wrong-class"
		}
	} else {
		p.since++
	}
	slot.user, slot.until, slot.grid, slot.answer = user, time.Time{}, false, answer
	m.closeIfDone()
	return true
}

func (m *model) person(user winnow.UserID) *modelPerson {
	if m.people[user] == nil {
		m.people[user] = &modelPerson{seen: map[winnow.ItemID]bool{}}
	}
	return m.people[user]
}

func (m *model) closeIfDone() {
	if !slices.ContainsFunc(m.items, func(i *modelItem) bool { return m.decided(i) == nil }) {
		m.open = false
	}
}

// undo takes an answer back, or the last when id is 0, and returns its item, 0 if there is none.
func (m *model) undo(user winnow.UserID, id winnow.ItemID, now time.Time) winnow.ItemID {
	var last *modelItem
	for _, i := range m.all() {
		s := i.own(user)
		if s == nil || s.answer == nil || i.final || id != 0 && i.id != id {
			continue
		}
		if last == nil || s.answer.number > last.own(user).answer.number {
			last = i
		}
	}
	if last == nil {
		return 0
	}
	s := last.own(user)
	s.answer, s.until = nil, now.Add(m.lease)
	if m.gold[last.id] == nil {
		m.open = true
		m.people[user].since--
	}
	return last.id
}

func (m *model) renew(user winnow.UserID, ids []winnow.ItemID, now time.Time) (kept []winnow.ItemID) {
	for _, id := range slices.Sorted(slices.Values(ids)) {
		if s := m.find(id).own(user); m.open && s != nil && s.answer == nil {
			s.until = now.Add(m.lease)
			kept = append(kept, id)
		}
	}
	return kept
}

func (m *model) release(user winnow.UserID, ids []winnow.ItemID, asOf, now time.Time) {
	for _, id := range ids {
		s := m.find(id).own(user)
		switch {
		case s == nil || s.answer != nil || s.until.After(asOf.Add(m.lease)):
		case m.gold[id] != nil:
			s.until = now
		default:
			s.user, s.until, s.grid = 0, time.Time{}, false
		}
	}
}

// correct reports whether an admin may say what the image is.
func (m *model) correct(image winnow.ImageID, v winnow.Verdict, class int) bool {
	i := m.images[image]
	review := i.item != nil && i.item.left() == 0 && m.decided(i.item) == nil
	if m.label(image) == nil && !review {
		return false
	}
	i.corrected = &said{verdict: v, class: class}
	if i.item != nil && (m.open && slices.Contains(m.items, i.item) || i.item.left() == 0) {
		i.item.final = true
		i.item.slots = slices.DeleteFunc(i.item.slots, func(s *modelSlot) bool { return s.answer == nil })
		m.closeIfDone()
	}
	return true
}

// world runs the store beside the model.
type world struct {
	*bench
	m     *model
	rand  *rand.Rand
	users []winnow.UserID
	step  int
	// Training sets, by the newest event there was: each must stay what it was.
	seen map[winnow.EventID][2]string
	sent map[winnow.UserID][]winnow.Decision // that counted, to be sent again
}

func (w *world) failf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("step %d: %s", w.step, fmt.Sprintf(format, args...))
}

func (w *world) now() time.Time { return w.clock.Now() }

func (w *world) want(what string, want, got any) {
	w.t.Helper()
	if diff := gocmp.Diff(fmt.Sprint(want), fmt.Sprint(got)); diff != "" {
		w.failf("%s: %s", what, diff)
	}
}

// begin starts a round on what is left of the pool.
func (w *world) begin() {
	ctx := w.t.Context()
	round, err := w.StartRound(ctx, w.admin.ID, w.project)
	if err != nil {
		w.failf("start: %v", err)
	}
	if round, err = w.BeginRound(ctx, round.ID, 1, "test"); err != nil {
		w.failf("begin: %v", err)
	}
	pool, err := w.PoolSet(ctx, w.project, round.LabelVersion, round.ImageVersion)
	if err != nil {
		w.failf("pool: %v", err)
	}
	pool = pool[:min(len(pool), round.Settings.Budget)]
	var items []winnow.Item
	for i, image := range pool {
		item := winnow.Item{ImageID: image, Rank: i + 1, Slice: winnow.SliceQuery, Scores: winnow.Scores{
			HasScores: true, Clean: w.rand.Float64(), Info: w.rand.Float64(), Predicted: w.rand.IntN(3),
		}}
		if w.rand.IntN(5) == 0 {
			item.Slice, item.Scores = winnow.SliceAudit, winnow.Scores{Predicted: -1}
		}
		items = append(items, item)
	}
	if err := w.OpenLabeling(ctx, round.ID, 1, items, winnow.Metrics{}, false); err != nil {
		w.failf("open: %v", err)
	}
	w.m.open, w.m.items, w.m.gold = true, nil, map[winnow.ItemID]*modelItem{}
	stored, _, err := w.Items(ctx, round.ID, winnow.ItemFilter{}, winnow.Page{})
	if err != nil || len(stored) != len(items) {
		w.failf("%d items of %d, %v", len(stored), len(items), err)
	}
	for _, item := range stored {
		i := &modelItem{id: item.ID, image: item.ImageID, class: item.Scores.Predicted, clear: item.Scores.Clear()}
		for range w.m.overlap {
			i.slots = append(i.slots, &modelSlot{rank: item.Rank})
		}
		w.m.items = append(w.m.items, i)
		w.imageOf(item.ImageID).item = i
	}
	rows, err := w.Pool().Query(ctx, `SELECT id, image_id FROM query_items WHERE slice = 'gold' AND round_id = $1`, round.ID)
	if err != nil {
		w.failf("gold: %v", err)
	}
	i := modelItem{}
	if _, err := pgx.ForEachRow(rows, []any{&i.id, &i.image}, func() error {
		w.m.gold[i.id] = &modelItem{id: i.id, image: i.image, class: -1}
		return nil
	}); err != nil {
		w.failf("gold: %v", err)
	}
	for _, p := range w.m.people {
		p.seen = map[winnow.ItemID]bool{}
	}
}

func (w *world) imageOf(id winnow.ImageID) *modelImage {
	if w.m.images[id] == nil {
		w.m.images[id] = &modelImage{}
	}
	return w.m.images[id]
}

func (w *world) user() winnow.UserID { return w.users[w.rand.IntN(len(w.users))] }

func (w *world) verdict() (winnow.Verdict, int) {
	switch p := w.rand.IntN(10); {
	case p < 5:
		return winnow.VerdictKnown, w.rand.IntN(2)
	case p < 8:
		return winnow.VerdictUnknown, -1
	case p < 9:
		return winnow.VerdictSkip, -1
	default:
		return winnow.VerdictUnreadable, -1
	}
}

// some are items that a person may ask about: mostly theirs.
func (w *world) some(user winnow.UserID, n int) (ids []winnow.ItemID) {
	all := w.m.all()
	slices.SortFunc(all, func(a, b *modelItem) int { return cmp.Compare(a.id, b.id) })
	w.rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for _, own := range []bool{true, false} {
		for _, i := range all {
			s := i.own(user)
			if mine := s != nil && s.answer == nil; mine == own && len(ids) < n && (own || w.rand.IntN(4) == 0) {
				ids = append(ids, i.id)
			}
		}
	}
	return ids
}

func (w *world) doClaim() {
	user, n := w.user(), w.rand.IntN(6)
	own, fresh, due := w.m.claim(user, n, w.now())
	_, got, err := w.Claim(w.t.Context(), w.project, user, n)
	if err != nil {
		w.failf("claim: %v", err)
	}
	var gold *winnow.Item
	var ids []winnow.ItemID
	for i, item := range got {
		if w.m.gold[item.ID] != nil && !slices.Contains(own, item.ID) {
			if gold != nil || i < len(own) {
				w.failf("%d is given gold items %d and %d", user, gold.ID, item.ID)
			}
			gold = &got[i]
			continue
		}
		ids = append(ids, item.ID)
	}
	w.want(fmt.Sprintf("%d claims %d", user, n), append(own, fresh...), ids)
	unseen := len(w.m.gold) - len(w.m.person(user).seen)
	if (gold != nil) != (due && unseen > 0) {
		w.failf("%d is given gold: %t, due: %t, unseen: %d", user, gold != nil, due, unseen)
	}
	if gold != nil {
		if w.m.person(user).seen[gold.ID] {
			w.failf("%d is given gold item %d twice", user, gold.ID)
		}
		w.m.person(user).seen[gold.ID] = true
		w.m.gold[gold.ID].slots = append(w.m.gold[gold.ID].slots, &modelSlot{user: user, rank: gold.Rank, until: w.now().Add(w.m.lease)})
	}
}

func (w *world) doClaimAlike() {
	user, n := w.user(), w.rand.IntN(5)
	class, own, fresh := w.m.claimAlike(user, n, w.now())
	_, gotClass, got, err := w.ClaimAlike(w.t.Context(), w.project, user, n)
	if err != nil {
		w.failf("claim alike: %v", err)
	}
	w.want(fmt.Sprintf("%d claims %d alike", user, n), fmt.Sprint(class, append(own, fresh...)), fmt.Sprint(gotClass, idsOf(got)))
}

func (w *world) doDecide() {
	user := w.user()
	if sent := w.sent[user]; len(sent) > 0 && w.rand.IntN(5) == 0 {
		d := sent[w.rand.IntN(len(sent))]
		if res, err := w.Decide(w.t.Context(), w.project, user, d); err != nil || !res.Replayed {
			w.failf("%d sends %+v again: %+v, %v", user, d, res, err)
		}
		return
	}
	var ds []winnow.Decision
	var want []bool
	for i, id := range w.some(user, 1+w.rand.IntN(3)) {
		v, class := w.verdict()
		d := decision(id, v, class, fmt.Sprintf("%d.%d", w.step, i))
		d.DurationMS = w.rand.Int64N(100_000)
		ds = append(ds, d)
	}
	// In one batch, a round is closed by the last of its answers only when all are in.
	wasOpen := w.m.open
	for _, d := range ds {
		w.m.open = wasOpen
		ok := w.m.decide(user, d, w.now())
		want = append(want, ok)
		if ok {
			w.sent[user] = append(w.sent[user], d)
		}
	}
	if len(ds) > 0 {
		w.m.open = wasOpen
		w.m.closeIfDone()
	}
	var got []bool
	if len(ds) == 1 {
		_, err := w.Decide(w.t.Context(), w.project, user, ds[0])
		got = append(got, err == nil)
		if err != nil && winnow.ErrorCode(err) != winnow.CodeConflict {
			w.failf("decide: %v", err)
		}
	} else {
		outcomes, round, err := w.DecideAll(w.t.Context(), w.project, user, ds)
		if err != nil {
			w.failf("decide all: %v", err)
		}
		for _, o := range outcomes {
			got = append(got, o.Err == nil && o.Event != 0)
		}
		if slices.Contains(want, true) && round == nil {
			w.failf("no round after %v", outcomes)
		}
	}
	w.want(fmt.Sprintf("%d decides %+v", user, ds), want, got)
}

func (w *world) doUndo() {
	user := w.user()
	var id winnow.ItemID
	if w.rand.IntN(2) == 0 {
		if ids := w.some(user, 1); len(ids) > 0 {
			id = ids[0]
		}
	}
	want := w.m.undo(user, id, w.now())
	key := fmt.Sprint(w.step)
	for range 1 + w.rand.IntN(2) { // now and then a retry
		item, err := w.Undo(w.t.Context(), w.project, user, id, key)
		if (want == 0) != (err != nil) || err == nil && item.ID != want {
			w.failf("%d undoes %d: %v, %v, want item %d", user, id, item, err, want)
		}
		if err != nil && winnow.ErrorCode(err) != winnow.CodeConflict {
			w.failf("undo: %v", err)
		}
		if err != nil {
			break
		}
	}
}

func (w *world) doUndoAll() {
	user := w.user()
	ctx := w.t.Context()
	recent, err := w.Recent(ctx, w.project, user, 3)
	if err != nil {
		w.failf("recent: %v", err)
	}
	var undos []winnow.UndoRequest
	for i, item := range recent {
		if !w.m.find(item.ID).final {
			undos = append(undos, winnow.UndoRequest{ItemID: item.ID, ClientKey: fmt.Sprintf("%d.%d", w.step, i)})
		}
	}
	for _, u := range undos {
		if got := w.m.undo(user, u.ItemID, w.now()); got != u.ItemID {
			w.failf("%d cannot undo item %d, which is among the recent", user, u.ItemID)
		}
	}
	items, err := w.UndoAll(ctx, w.project, user, undos)
	if err != nil || len(items) != len(undos) {
		w.failf("%d undoes %v: %v, %v", user, undos, items, err)
	}
}

func (w *world) doRenew() {
	user := w.user()
	ids := w.some(user, 4)
	want := w.m.renew(user, ids, w.now())
	kept, err := w.Renew(w.t.Context(), w.project, user, ids)
	if err != nil {
		w.failf("renew: %v", err)
	}
	slices.Sort(kept)
	w.want("renewed", want, kept)
}

func (w *world) doRelease() {
	user := w.user()
	ids := w.some(user, 4)
	asOf := w.now().Add(-time.Duration(w.rand.IntN(2)*w.rand.IntN(30)) * time.Second)
	w.m.release(user, ids, asOf, w.now())
	if err := w.Release(w.t.Context(), w.project, user, ids, asOf); err != nil {
		w.failf("release: %v", err)
	}
}

func (w *world) doCorrect() {
	ids := slices.Sorted(maps.Keys(w.m.images))
	image := ids[w.rand.IntN(len(ids))]
	v, class := w.verdict()
	before := w.m.images[image].item
	want := w.m.correct(image, v, class)
	for range 1 + w.rand.IntN(2) {
		_, err := w.Correct(w.t.Context(), w.project, w.admin.ID, image, v, class, fmt.Sprint(w.step))
		if (err == nil) != want || err != nil && winnow.ErrorCode(err) != winnow.CodeConflict {
			w.failf("correct image %d with item %+v: %v, want it taken: %v", image, before, err, want)
		}
	}
}

// doImport gives labels to images that are in the pool.
func (w *world) doImport(pool map[[32]byte]winnow.NewImage) {
	ids := slices.Sorted(maps.Keys(w.m.images))
	id := ids[w.rand.IntN(len(ids))]
	image, err := w.Image(w.t.Context(), w.project, id)
	if err != nil {
		w.failf("read image: %v", err)
	}
	labeled, class := pool[image.SHA256], w.rand.IntN(3)
	dbtest.AddImages(w.t, w.Store, w.project, dbtest.Labeled([]winnow.NewImage{labeled}, class))
	if w.m.label(id) == nil {
		w.m.images[id].imported = &said{verdict: winnow.VerdictKnown, class: class}
	}
}

// doGold marks an image as gold for the rounds to come.
func (w *world) doGold() {
	for _, id := range slices.Sorted(maps.Keys(w.m.images)) {
		if l := w.m.label(id); w.rand.IntN(4) == 0 {
			err := w.SetGold(w.t.Context(), w.project, w.admin.ID, id, true)
			if can := l != nil && (l.verdict == winnow.VerdictKnown || l.verdict == winnow.VerdictUnknown); (err == nil) != can {
				w.failf("gold %+v: %v", l, err)
			}
			return
		}
	}
}

// check compares all that the store keeps with the model.
func (w *world) check() {
	ctx := w.t.Context()
	// Slots: who holds or has answered what.
	rows, err := w.Pool().Query(ctx, `
		SELECT s.item_id, coalesce(s.user_id, 0), coalesce(extract(epoch FROM s.lease_until - $2), 0)::int, s.grid,
		       coalesce(s.verdict, ''), coalesce(s.class, -1), coalesce(s.gold_result, '')
		FROM item_answers s
		WHERE s.round_id = (SELECT max(round_id) FROM item_answers WHERE project_id = $1)
		ORDER BY s.item_id, s.slot`, w.project, w.now())
	if err != nil {
		w.failf("slots: %v", err)
	}
	type row struct {
		Item    winnow.ItemID
		User    winnow.UserID
		Until   int
		Grid    bool
		Verdict winnow.Verdict
		Class   int
		Gold    string
	}
	got, err := pgx.CollectRows(rows, pgx.RowToStructByPos[row])
	if err != nil {
		w.failf("slots: %v", err)
	}
	var want []row
	all := w.m.all()
	slices.SortFunc(all, func(a, b *modelItem) int { return cmp.Compare(a.id, b.id) })
	for _, i := range all {
		if w.m.gold[i.id] != nil {
			slices.SortFunc(i.slots, func(a, b *modelSlot) int { return cmp.Compare(a.user, b.user) })
		}
		people := map[winnow.UserID]bool{}
		for _, s := range i.slots {
			r := row{Item: i.id, User: s.user, Class: -1, Grid: s.grid}
			if !s.until.IsZero() {
				r.Until = int(s.until.Sub(w.now()).Seconds())
			}
			if s.answer != nil {
				r.Verdict, r.Class, r.Gold = s.answer.verdict, s.answer.class, s.answer.gold
			}
			if s.user != 0 && people[s.user] {
				w.failf("%d has two slots of item %d", s.user, i.id)
			}
			people[s.user] = true
			want = append(want, r)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		w.failf("slots (-want +got): %s", diff)
	}
	// Labels, of images and items.
	for id := range w.m.images {
		image, err := w.Image(ctx, w.project, id)
		if err != nil {
			w.failf("image: %v", err)
		}
		label := &said{class: -1}
		if l := w.m.label(id); l != nil {
			label = l
		}
		if image.Verdict != label.verdict || image.Class != label.class {
			w.failf("image %d is %s %d, want %s %d", id, image.Verdict, image.Class, label.verdict, label.class)
		}
	}
	// Counts of the round.
	rounds, _, err := w.Rounds(ctx, w.project, winnow.Page{Limit: 1})
	if err != nil {
		w.failf("round: %v", err)
	}
	if open := rounds[0].State == winnow.RoundLabeling; open != w.m.open {
		w.failf("the round is %s, want it open: %v", rounds[0].State, w.m.open)
	}
	if p, ok := rounds[0].Counts.Precision(); !w.m.open && ok && *rounds[0].Metrics.Precision != p {
		w.failf("precision %v of %+v", *rounds[0].Metrics.Precision, rounds[0].Counts)
	}
	w.checkFigures()
}

func (w *world) checkFigures() {
	figures, _, err := w.AnnotatorFigures(w.t.Context(), w.project, 0, winnow.Page{})
	if err != nil {
		w.failf("figures: %v", err)
	}
	for _, f := range figures {
		// Of the newest round's people only what can be told from it.
		p := w.m.people[f.UserID]
		if f.Active != p.active {
			w.failf("%d was active for %v, want %v", f.UserID, f.Active, p.active)
		}
		here := false
		for _, i := range w.m.all() {
			s := i.own(f.UserID)
			here = here || w.m.open && s != nil && s.answer == nil && s.until.After(w.now())
		}
		if f.Here != here {
			w.failf("%d is here: %v, want %v", f.UserID, f.Here, here)
		}
	}
}

// remember keeps what a round that began now would see.
func (w *world) remember() {
	var last winnow.EventID
	if err := w.Pool().QueryRow(w.t.Context(), `SELECT coalesce(max(id), 0) FROM label_events`).Scan(&last); err != nil {
		w.failf("last event: %v", err)
	}
	w.seen[last] = w.sets(last)
}

func (w *world) sets(upTo winnow.EventID) [2]string {
	ctx := w.t.Context()
	ids, labels, err := w.TrainingSet(ctx, w.project, upTo, 3)
	if err != nil {
		w.failf("training set: %v", err)
	}
	pool, err := w.PoolSet(ctx, w.project, upTo, 1e9)
	if err != nil {
		w.failf("pool: %v", err)
	}
	return [2]string{fmt.Sprint(ids, labels), fmt.Sprint(pool)}
}

// TestStoreAgreesWithTheModel has people claim, decide, undo, renew and release, an
// admin correct, close and begin rounds, imports come and the clock jump, one at a time
// and at random, on the store and on the model, and compares the two after each step.
func TestStoreAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	for _, seed := range []uint64{0, 1, 2, 3, 4, 5, 107, 109} {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			runModel(t, seed, 150)
		})
	}
}

func runModel(t *testing.T, seed uint64, steps int) {
	const images = 40
	overlap := []int{1, 3, 2, 1, 4, 3}[seed%6]
	b := newBench(t, images, func(s *winnow.Settings) {
		s.Budget, s.LeaseSeconds, s.Overlap, s.GoldEvery = 8, 60, overlap, int(seed%3)
	})
	w := &world{
		bench: b, rand: rand.New(rand.NewPCG(seed, 0)),
		users: []winnow.UserID{b.admin.ID, b.annotator("bob"), b.annotator("eve"), b.annotator("joe"), b.annotator("kim")},
		m: &model{
			lease: time.Minute, overlap: overlap, every: int(seed % 3), images: map[winnow.ImageID]*modelImage{},
			people: map[winnow.UserID]*modelPerson{}, late: map[string]bool{},
		},
		seen: map[winnow.EventID][2]string{}, sent: map[winnow.UserID][]winnow.Decision{},
	}
	pool := map[[32]byte]winnow.NewImage{}
	for _, image := range dbtest.Images(1, images, dbtest.Settings().InputSize) {
		pool[image.SHA256] = image
	}
	w.begin()
	for w.step = range steps {
		b.clock.Advance(time.Duration(w.rand.IntN(20)) * time.Second)
		if w.rand.IntN(20) == 0 { // it jumps, back as well
			b.clock.Advance(time.Duration(w.rand.IntN(600)-300) * time.Second)
		}
		switch p := w.rand.IntN(100); {
		case p < 20:
			w.doClaim()
		case p < 26:
			w.doClaimAlike()
		case p < 68:
			w.doDecide()
		case p < 75:
			w.doUndo()
		case p < 78:
			w.doUndoAll()
		case p < 83:
			w.doRenew()
		case p < 88:
			w.doRelease()
		case p < 92:
			w.doCorrect()
		case p < 94:
			w.doImport(pool)
		case p < 97:
			w.doGold()
		case w.m.open:
			if _, err := b.CloseRound(t.Context(), b.admin.ID, b.project, w.rounds()-1); err != nil {
				w.failf("close: %v", err)
			}
			w.m.open = false
		}
		if !w.m.open && w.rand.IntN(4) == 0 && len(w.m.images) < images {
			w.begin()
		}
		w.check()
		if w.step%10 == 0 {
			b.checkInvariants()
			w.remember()
		}
	}
	b.checkInvariants()
	for upTo, want := range w.seen {
		if diff := gocmp.Diff(want, w.sets(upTo)); diff != "" {
			t.Errorf("what a round sees that began after event %d has changed: %s", upTo, diff)
		}
	}
	rows, err := b.Pool().Query(t.Context(), `SELECT client_key FROM late_decisions`)
	if err != nil {
		t.Fatal(err)
	}
	late, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(w.m.late)), slices.Sorted(slices.Values(late))); diff != "" {
		t.Errorf("late answers on record (-want +got): %s", diff)
	}
}

// rounds is how many rounds there are.
func (w *world) rounds() int {
	rounds, _, err := w.Rounds(w.t.Context(), w.project, winnow.Page{Limit: 1})
	if err != nil {
		w.failf("rounds: %v", err)
	}
	return rounds[0].Number + 1
}
