package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"winnow"
	"winnow/db/dbtest"
)

// TestManyAnnotators lets annotators claim, decide, undo, renew and release at random
// while an admin closes and starts rounds, and then looks whether everything that was
// acknowledged is there, once.
func TestManyAnnotators(t *testing.T) {
	t.Parallel()
	const (
		annotators = 12
		steps      = 60
	)
	b := newBench(t, 300, func(s *winnow.Settings) { s.Budget = 60 })
	b.open()
	held := &holders{by: make(map[winnow.ItemID]winnow.UserID)}
	people := make([]*annotator, annotators)
	for i := range people {
		people[i] = &annotator{
			bench: b, id: b.annotator(fmt.Sprintf("annotator%d", i)), held: held,
			rand: rand.New(rand.NewPCG(1, uint64(i))), standing: make(map[winnow.ItemID]winnow.Verdict),
		}
	}
	var wg sync.WaitGroup
	for _, a := range people {
		wg.Go(func() {
			for step := range steps {
				a.step(step)
			}
		})
	}
	wg.Wait()

	b.checkInvariants()
	for _, a := range people {
		for item, verdict := range a.standing {
			var got winnow.Verdict
			err := b.Pool().QueryRow(t.Context(), `SELECT verdict FROM item_answers WHERE item_id = $1 AND user_id = $2`, item, a.id).Scan(&got)
			if err != nil || got != verdict {
				t.Errorf("annotator %d was told that item %d is %s; it is %q, %v", a.id, item, verdict, got, err)
			}
		}
	}
}

// holders knows who was given which item. The clock stands still, so that no lease
// runs out and an item that two people are given at once is an error.
type holders struct {
	mu sync.Mutex
	by map[winnow.ItemID]winnow.UserID
}

func (h *holders) take(item winnow.ItemID, user winnow.UserID) (other winnow.UserID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if other := h.by[item]; other != 0 && other != user {
		return other
	}
	h.by[item] = user
	return 0
}

// drop comes before the request that gives the item up, so that it is never late.
func (h *holders) drop(item winnow.ItemID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.by, item)
}

// annotator is a person who acts at random and remembers what they were told.
type annotator struct {
	*bench
	id       winnow.UserID
	rand     *rand.Rand
	held     *holders
	items    []winnow.Item
	standing map[winnow.ItemID]winnow.Verdict // decided, and acknowledged
}

func (a *annotator) step(n int) {
	key := fmt.Sprintf("%d-%d", a.id, n)
	switch p := a.rand.IntN(100); {
	case p < 5:
		a.release()
	case p < 15:
		a.undo(key)
	default:
		if len(a.items) == 0 {
			a.take()
		}
		if len(a.items) > 0 {
			a.decideFirst(key)
		}
	}
}

func (a *annotator) take() {
	_, items, err := a.Claim(a.t.Context(), a.project, a.id, 1+a.rand.IntN(4))
	if err != nil {
		a.t.Error(err)
	}
	for _, item := range items {
		if other := a.held.take(item.ID, a.id); other != 0 {
			a.t.Errorf("item %d was given to %d while %d held it", item.ID, a.id, other)
		}
	}
	a.items = items
}

func (a *annotator) release() {
	ids := make([]winnow.ItemID, len(a.items))
	for i, item := range a.items {
		ids[i] = item.ID
		a.held.drop(item.ID)
	}
	a.items = nil
	if err := a.Release(a.t.Context(), a.project, a.id, ids, a.clock.Now()); err != nil {
		a.t.Error(err)
	}
}

func (a *annotator) decideFirst(key string) {
	item := a.items[0]
	a.items = a.items[1:]
	verdict := []winnow.Verdict{
		winnow.VerdictKnown, winnow.VerdictUnknown, winnow.VerdictSkip, winnow.VerdictUnreadable,
	}[a.rand.IntN(4)]
	class := -1
	if verdict == winnow.VerdictKnown {
		class = a.rand.IntN(3)
	}
	a.held.drop(item.ID)
	for range 1 + a.rand.IntN(2) { // now and then a retry
		if _, err := a.Decide(a.t.Context(), a.project, a.id, decision(item.ID, verdict, class, key)); err != nil {
			a.t.Errorf("decide item %d: %v", item.ID, err)
			return
		}
	}
	a.standing[item.ID] = verdict
}

func (a *annotator) undo(key string) {
	item, err := a.Undo(a.t.Context(), a.project, a.id, 0, key)
	if winnow.ErrorCode(err) == winnow.CodeConflict {
		return // there is nothing to undo
	}
	if err != nil {
		a.t.Error(err)
		return
	}
	if _, ok := a.standing[item.ID]; !ok {
		a.t.Errorf("the undo of %d took back item %d, which they had not decided", a.id, item.ID)
	}
	delete(a.standing, item.ID)
	if other := a.held.take(item.ID, a.id); other != 0 {
		a.t.Errorf("item %d came back to %d while %d held it", item.ID, a.id, other)
	}
	a.items = append(a.items, *item)
}

// model is what the store is to do, said as simply as can be: who holds each item
// until when, and what they said.
type model struct {
	items  []modelItem // by rank
	events []int       // decisions that stand, as indices into items, oldest first
}

type modelItem struct {
	id      winnow.ItemID
	holder  winnow.UserID
	until   time.Time
	verdict winnow.Verdict
	by      winnow.UserID
}

func (m *model) claim(user winnow.UserID, n int, now, until time.Time) (claimed []winnow.ItemID) {
	for _, own := range []bool{true, false} {
		for i := range m.items {
			item := &m.items[i]
			free := item.holder == 0 || !item.until.After(now)
			if len(claimed) == n || item.verdict != "" || (item.holder == user) != own || (!own && !free) {
				continue
			}
			item.holder, item.until = user, until
			claimed = append(claimed, item.id)
		}
	}
	return claimed
}

func (m *model) decide(i int, user winnow.UserID, v winnow.Verdict, now time.Time) bool {
	item := &m.items[i]
	if item.verdict != "" || (item.holder != 0 && item.holder != user && item.until.After(now)) {
		return false
	}
	*item = modelItem{id: item.id, verdict: v, by: user}
	m.events = append(m.events, i)
	return true
}

func (m *model) undo(user winnow.UserID, until time.Time) winnow.ItemID {
	for e := len(m.events) - 1; e >= 0; e-- {
		item := &m.items[m.events[e]]
		if item.by == user {
			m.events = append(m.events[:e:e], m.events[e+1:]...)
			*item = modelItem{id: item.id, holder: user, until: until}
			return item.id
		}
	}
	return 0
}

// TestStoreAgreesWithTheModel runs random operations, one at a time and with time
// passing, on the store and on the model.
func TestStoreAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			const lease = 60 * time.Second
			b := newBench(t, 40, func(s *winnow.Settings) { s.Budget, s.LeaseSeconds = 30, 60 })
			users := []winnow.UserID{b.admin.ID, b.annotator("bob"), b.annotator("eve")}
			round := b.open()
			all, _, err := b.Items(t.Context(), round.ID, winnow.ItemFilter{}, winnow.Page{})
			if err != nil {
				t.Fatal(err)
			}
			m := new(model)
			for _, item := range all {
				m.items = append(m.items, modelItem{id: item.ID})
			}
			r := rand.New(rand.NewPCG(seed, 0))
			for step := range 150 {
				b.clock.Advance(time.Duration(r.IntN(20)) * time.Second)
				now, until := b.clock.Now(), b.clock.Now().Add(lease)
				user := users[r.IntN(len(users))]
				key := fmt.Sprint("key ", step)
				switch p := r.IntN(10); {
				case p < 4:
					n := r.IntN(5)
					want, got := m.claim(user, n, now, until), b.claim(user, n)
					if fmt.Sprint(want) != fmt.Sprint(idsOf(got)) {
						t.Fatalf("step %d: %d claims %d and gets %v, want %v", step, user, n, idsOf(got), want)
					}
				case p < 9:
					if len(m.events) == len(m.items)-1 {
						continue // the last decision would end the round
					}
					i := r.IntN(len(m.items))
					ok := m.decide(i, user, winnow.VerdictUnknown, now)
					_, err := b.Decide(t.Context(), b.project, user, decision(m.items[i].id, winnow.VerdictUnknown, -1, key))
					if (err == nil) != ok || (err != nil && winnow.ErrorCode(err) != winnow.CodeConflict) {
						t.Fatalf("step %d: %d decides item %d: %v, want it taken: %v", step, user, m.items[i].id, err, ok)
					}
				default:
					want := m.undo(user, until)
					item, err := b.Undo(t.Context(), b.project, user, 0, key)
					if (want == 0) != (err != nil) || (err == nil && item.ID != want) {
						t.Fatalf("step %d: %d undoes %v, %v, want item %d", step, user, item, err, want)
					}
				}
			}
			b.checkInvariants()
		})
	}
}

func idsOf(items []winnow.Item) (ids []winnow.ItemID) {
	for _, item := range items {
		ids = append(ids, item.ID)
	}
	return ids
}

// TestImportWaitsForADecision has an import give a label to an image that somebody
// labels at the same moment: it must not keep them from the counts that they write next.
func TestImportWaitsForADecision(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 1, nil)
	// The decision, as far as it has come: it holds the image, and not yet the project.
	tx, err := b.Pool().Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	if _, err := tx.Exec(ctx, `SELECT FROM images FOR NO KEY UPDATE`); err != nil {
		t.Fatal(err)
	}
	imported := make(chan error, 1)
	go func() {
		_, err := b.AddImages(ctx, b.project, 0, 0, dbtest.Labeled(dbtest.Images(1, 1, 8), 2))
		imported <- err
	}()
	awaitLockWait(t, b.Store)
	if _, err := tx.Exec(ctx, `UPDATE projects SET skipped_count = skipped_count`); err != nil {
		t.Errorf("the decision: %v", err)
	}
	if err := tx.Commit(ctx); err != nil {
		t.Errorf("the decision: %v", err)
	}
	if err := <-imported; err != nil {
		t.Errorf("the import: %v", err)
	}
	b.checkInvariants()
}
