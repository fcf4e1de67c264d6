package eaoa

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// The variants of the query.
const (
	PerClass = "per-class" // each predicted class has its share
	Global   = "global"    // one list, as in the paper
)

// query selects from the scored pool. Ties: posterior, then the raw score (for
// clean the sum of the scaled epistemic scores, the smaller first; for info AU,
// the larger first), then the index.
func (r *Result) query(classes int, o Options, use parts) []int {
	n := len(r.Predicted)
	pick := picker{
		clean: func(a, b int) int { return r.compareClean(a, b, use) },
		info:  func(a, b int) int { return r.compareInfo(a, b, use) },
		k:     math.Floor(o.K),
	}
	budget := min(o.Budget, n)
	var selected []int
	if o.Variant == Global {
		pick.k = o.K // the paper takes k*b candidates, whole only in the product
		selected = pick.from(indices(n), budget)
	} else {
		share := (budget + classes - 1) / classes
		byClass := make([][]int, classes)
		for i, c := range r.Predicted {
			byClass[c] = append(byClass[c], i)
		}
		for _, candidates := range byClass {
			selected = append(selected, pick.from(candidates, share)...)
		}
		if len(selected) > budget {
			drop(&selected, budget, o.Seed)
		}
	}
	if short := budget - len(selected); short > 0 {
		selected = append(selected, pick.from(without(indices(n), selected), short)...)
	}
	slices.SortFunc(selected, pick.info)
	return selected
}

// compareClean orders by likely known first. Where no epistemic score is used, it
// is the order of the information, so that the first step passes on what the
// second wants.
func (r *Result) compareClean(a, b int, use parts) int {
	if !use.euL && !use.euD {
		return r.compareAU(a, b)
	}
	if c := cmp.Compare(r.Clean(b), r.Clean(a)); c != 0 {
		return c
	}
	if c := cmp.Compare(r.epistemic(a), r.epistemic(b)); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// compareInfo orders by informative first; without AU it is the order of clean.
func (r *Result) compareInfo(a, b int, use parts) int {
	if !use.au {
		return r.compareClean(a, b, use)
	}
	return r.compareAU(a, b)
}

func (r *Result) compareAU(a, b int) int {
	if c := cmp.Compare(r.AU.Posterior[b], r.AU.Posterior[a]); c != 0 {
		return c
	}
	if c := cmp.Compare(r.AU.Scaled[b], r.AU.Scaled[a]); c != 0 {
		return c
	}
	return cmp.Compare(a, b)
}

// epistemic is the raw score behind Clean: the sum of the scaled scores in use.
func (r *Result) epistemic(i int) float64 {
	sum := 0.0
	if r.EUL != nil {
		sum += r.EUL.Scaled[i]
	}
	if r.EUD != nil {
		sum += r.EUD.Scaled[i]
	}
	return sum
}

// picker is the query's two steps.
type picker struct {
	clean, info func(a, b int) int
	k           float64
}

// from takes the k*n cleanest candidates and of them the n most informative, or
// all when there are fewer. It reorders candidates.
func (p picker) from(candidates []int, n int) []int {
	slices.SortFunc(candidates, p.clean)
	if wide := p.k * float64(n); wide < float64(len(candidates)) {
		candidates = candidates[:int(wide)]
	}
	slices.SortFunc(candidates, p.info)
	return candidates[:min(n, len(candidates))]
}

// drop keeps n of s, drawn with the seed.
func drop(s *[]int, n int, seed int64) {
	rng := rand.New(rand.NewPCG(uint64(seed), 0x64726f70))
	rng.Shuffle(len(*s), func(i, j int) { (*s)[i], (*s)[j] = (*s)[j], (*s)[i] })
	*s = (*s)[:n]
}

func indices(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// without returns those of all that are not in some.
func without(all, some []int) []int {
	taken := make(map[int]bool, len(some))
	for _, i := range some {
		taken[i] = true
	}
	return slices.DeleteFunc(all, func(i int) bool { return taken[i] })
}
