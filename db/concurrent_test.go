package db_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"winnow"
	"winnow/db/dbtest"
)

// TestManyAnnotators lets annotators claim, decide, undo, renew and release at random
// while an admin closes and starts rounds, and then looks whether everything that was
// acknowledged is there, once.
func TestManyAnnotators(t *testing.T) {
	t.Parallel()
	for _, overlap := range []int{1, 3} {
		t.Run(fmt.Sprint("overlap ", overlap), func(t *testing.T) {
			t.Parallel()
			testManyAnnotators(t, overlap)
		})
	}
}

func testManyAnnotators(t *testing.T, overlap int) {
	const (
		annotators = 12
		steps      = 60
	)
	b := newBench(t, 300, func(s *winnow.Settings) { s.Budget, s.Overlap = 60, overlap })
	b.open()
	held := &holders{most: overlap, by: make(map[winnow.ItemID]map[winnow.UserID]bool)}
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
// runs out and an item that more people are given at once than it has slots is an error.
type holders struct {
	mu   sync.Mutex
	most int
	by   map[winnow.ItemID]map[winnow.UserID]bool
}

func (h *holders) take(item winnow.ItemID, user winnow.UserID) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.by[item] == nil {
		h.by[item] = make(map[winnow.UserID]bool)
	}
	h.by[item][user] = true
	if len(h.by[item]) > h.most {
		return fmt.Errorf("item %d was given to %d while others held it: %v", item, user, h.by[item])
	}
	return nil
}

// drop comes before the request that gives the item up, so that it is never late.
func (h *holders) drop(item winnow.ItemID, user winnow.UserID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.by[item], user)
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
		if err := a.held.take(item.ID, a.id); err != nil {
			a.t.Error(err)
		}
	}
	a.items = items
}

func (a *annotator) release() {
	ids := make([]winnow.ItemID, len(a.items))
	for i, item := range a.items {
		ids[i] = item.ID
		a.held.drop(item.ID, a.id)
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
	a.held.drop(item.ID, a.id)
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
	if err := a.held.take(item.ID, a.id); err != nil {
		a.t.Error(err)
	}
	a.items = append(a.items, *item)
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
