package jobs

import (
	"math"
	"math/rand/v2"
	"slices"

	"winnow"
)

// auditSeed keeps the audit's draw apart from other draws by the same seed.
const auditSeed = 0x6175646974

// withAudit adds an audit slice to a query: a share of the budget, at least one image,
// drawn at random from the pool outside the query, as the unbiased view of the pool. It
// goes in at random places, so that those who label cannot tell; the query keeps its
// order. The same round draws the same.
func withAudit(round *winnow.Round, query []winnow.Item, pool []winnow.ImageID) []winnow.Item {
	share := round.Settings.AuditShare
	if share <= 0 {
		return query
	}
	n := max(1, int(math.Round(share*float64(round.Settings.Budget))))
	queried := make(map[winnow.ImageID]bool, len(query))
	for _, item := range query {
		queried[item.ImageID] = true
	}
	r := rand.New(rand.NewPCG(uint64(round.Seed), auditSeed))
	drawn := draw(r, n, len(pool), func(i int) bool { return !queried[pool[i]] })

	items := make([]winnow.Item, 0, len(query)+len(drawn))
	for len(query)+len(drawn) > 0 {
		if r.IntN(len(query)+len(drawn)) < len(query) {
			items, query = append(items, query[0]), query[1:]
		} else {
			items = append(items, winnow.Item{
				RoundID: round.ID, ProjectID: round.ProjectID, ImageID: pool[drawn[0]],
				Slice: winnow.SliceAudit, Scores: winnow.Scores{Predicted: -1}, Class: -1,
			})
			drawn = drawn[1:]
		}
	}
	for i := range items {
		items[i].Rank = i + 1
	}
	return items
}

// draw picks up to n of the numbers below size that are allowed, each as likely as any
// other. It looks at few of them where most are allowed.
func draw(r *rand.Rand, n, size int, allowed func(int) bool) []int {
	var drawn []int
	moved := make(map[int]int) // of a shuffle, only what was touched
	at := func(i int) int {
		if v, ok := moved[i]; ok {
			return v
		}
		return i
	}
	for i := 0; i < size && len(drawn) < n; i++ {
		j := i + r.IntN(size-i)
		v := at(j)
		moved[j] = at(i)
		if allowed(v) {
			drawn = append(drawn, v)
		}
	}
	return slices.Clip(drawn)
}
