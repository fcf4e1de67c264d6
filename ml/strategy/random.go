package strategy

import (
	"context"
	"math/rand/v2"

	"winnow"
)

// Random draws from the pool with the seed.
type Random struct{}

// Name returns "random".
func (Random) Name() string { return "random" }

// Needs returns nothing.
func (Random) Needs() Needs { return Needs{} }

// Query selects min(b, N) images, all of them equally likely.
func (Random) Query(_ context.Context, in Input) (Query, error) {
	if in.Pool < 1 {
		return Query{}, winnow.Invalid("pool", "The pool is empty: there is nothing to query.")
	}
	rng := newRand(in)
	return Query{Selected: rng.Perm(in.Pool)[:in.budget()]}, nil
}

// newRand is the generator of one round's query.
func newRand(in Input) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(in.Seed), uint64(in.Round)))
}
