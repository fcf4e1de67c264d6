package jobs

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

func auditRound(share float64, budget int, seed int64) *winnow.Round {
	return &winnow.Round{ID: 7, ProjectID: 3, Seed: seed, Settings: winnow.Settings{AuditShare: share, Budget: budget}}
}

// numbered makes a pool of n images, of which the first b are queried.
func numbered(n, b int) (pool []winnow.ImageID, query []winnow.Item) {
	for i := range n {
		pool = append(pool, winnow.ImageID(i+1))
	}
	for i := range b {
		query = append(query, winnow.Item{ImageID: pool[i], Rank: i + 1, Slice: winnow.SliceQuery})
	}
	return pool, query
}

func TestAuditIsAShareOfTheBudget(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		share        float64
		budget, pool int
		want         int
	}{
		{0, 100, 1000, 0},
		{0.05, 100, 1000, 5},
		{0.05, 10, 1000, 1}, // rounded, .5 away from zero
		{0.05, 5, 1000, 1},  // at least one
		{0.5, 100, 1000, 50},
		{0.5, 100, 120, 20}, // what is left
		{0.5, 100, 100, 0},
		{0.05, 100, 60, 0},
	} {
		pool, query := numbered(tc.pool, min(tc.budget, tc.pool))
		got := withAudit(auditRound(tc.share, tc.budget, 1), query, pool)
		if len(got)-len(query) != tc.want {
			t.Errorf("share %v of %d from %d: %d images, want %d", tc.share, tc.budget, tc.pool, len(got)-len(query), tc.want)
		}
	}
}

func TestAuditIsMixedIn(t *testing.T) {
	t.Parallel()
	pool, query := numbered(1000, 100)
	items := withAudit(auditRound(0.2, 100, 1), query, pool)
	seen := map[winnow.ImageID]bool{}
	var order []winnow.ImageID
	audit, last := 0, 0
	for i, item := range items {
		if item.Rank != i+1 || seen[item.ImageID] {
			t.Fatalf("item %d has rank %d and image %d", i, item.Rank, item.ImageID)
		}
		seen[item.ImageID] = true
		if item.Slice == winnow.SliceQuery {
			order = append(order, item.ImageID)
			continue
		}
		audit, last = audit+1, i
		if item.ImageID <= 100 || item.Slice != winnow.SliceAudit || item.RoundID != 7 || item.ProjectID != 3 || item.Scores.Predicted != -1 || item.Class != -1 {
			t.Errorf("an audit item: %+v", item)
		}
	}
	if diff := cmp.Diff(pool[:100], order); diff != "" {
		t.Error("the query has lost its order:", diff)
	}
	if audit != 20 || last < 60 {
		t.Errorf("%d audit items, the last at %d", audit, last)
	}
	if diff := cmp.Diff(items, withAudit(auditRound(0.2, 100, 1), query, pool)); diff != "" {
		t.Error("the same round draws something else:", diff)
	}
	if cmp.Equal(items, withAudit(auditRound(0.2, 100, 2), query, pool)) {
		t.Error("another round draws the same")
	}
}

// Each image outside the query is as likely as any other: over many seeds the counts
// stay within five standard deviations of their mean.
func TestAuditIsUnbiased(t *testing.T) {
	t.Parallel()
	const seeds = 4000
	pool, query := numbered(30, 10)
	counts := map[winnow.ImageID]int{}
	for seed := range int64(seeds) {
		for _, item := range withAudit(auditRound(0.4, 10, seed), query, pool) {
			if item.Slice == winnow.SliceAudit {
				counts[item.ImageID]++
			}
		}
	}
	mean := seeds * 4.0 / 20
	for _, id := range pool[10:] {
		if d := math.Abs(float64(counts[id]) - mean); d > 5*math.Sqrt(mean) {
			t.Errorf("image %d was drawn %d times, want about %v", id, counts[id], mean)
		}
	}
}
