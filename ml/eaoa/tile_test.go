package eaoa

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestProductsAgreeWithThePortableOnes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, d := range []int{1, 2, 128, 513} {
		a, b := make([]float32, d*tileRows), make([]float32, d*tileCols)
		for i := range a {
			a[i] = float32(rng.NormFloat64())
		}
		for i := range b {
			b[i] = float32(rng.NormFloat64())
		}
		var got, want [tileRows * tileCols]float32
		products(d, a, b, &got)
		productsPortable(d, a, b, &want)
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-4*math.Sqrt(float64(d)) {
				t.Errorf("d = %d: product %d is %v, want %v", d, i, got[i], want[i])
			}
		}
		floor := slices.Sorted(slices.Values(want[:tileCols]))[tileCols-1]
		row := (*[tileCols]float32)(want[:])
		for _, f := range []float32{float32(math.Inf(-1)), 0, floor, math.Nextafter32(floor, -100)} {
			if anyAbove(row, f) != anyAbovePortable(row, f) {
				t.Errorf("above %v: %v", f, anyAbove(row, f))
			}
		}
	}
}

func TestKeysOrderLikeSimilaritiesAndThenIndices(t *testing.T) {
	t.Parallel()
	inf := float32(math.Inf(1))
	sims := []float32{-inf, -1, -0.5, -1e-40, 0, 1e-40, 0.5, 1, inf}
	for i, s := range sims {
		if k := newKey(s, 12345); k.similarity() != s || k.index() != 12345 {
			t.Errorf("%v comes back as %v of %d", s, k.similarity(), k.index())
		}
		if i > 0 && newKey(sims[i-1], 0) >= newKey(s, 1<<31) {
			t.Errorf("%v is not below %v", sims[i-1], s)
		}
	}
	if newKey(0.5, 3) <= newKey(0.5, 4) {
		t.Error("the higher index is nearer")
	}
	if minus := float32(math.Copysign(0, -1)); newKey(minus, 3) != newKey(0, 3) {
		t.Error("-0 is not 0")
	}
}

func TestLargest(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for range 300 {
		keys := make([]key, 1+rng.IntN(200))
		for i, v := range rng.Perm(len(keys)) {
			keys[i] = key(v)
		}
		if rng.IntN(3) == 0 {
			slices.Sort(keys)
		}
		n := 1 + rng.IntN(len(keys))
		got := largest(slices.Clone(keys), n)
		slices.Sort(got)
		slices.Sort(keys)
		if !slices.Equal(got, keys[len(keys)-n:]) {
			t.Fatalf("%d of %d: %v", n, len(keys), got)
		}
	}
}

func TestTwoMeansIsExact(t *testing.T) {
	t.Parallel()
	cost := func(v []float64) float64 {
		mean, sum := 0.0, 0.0
		for _, x := range v {
			mean += x / float64(len(v))
		}
		for _, x := range v {
			sum += (x - mean) * (x - mean)
		}
		return sum
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for range 200 {
		v := make([]float64, 2+rng.IntN(30))
		for i := range v {
			v[i] = math.Round(10*rng.Float64()) / 10
		}
		slices.Sort(v)
		if v[0] == v[len(v)-1] {
			continue
		}
		got := twoMeans(v)
		for i := 1; i < len(v); i++ {
			if cost(v[:i])+cost(v[i:]) < cost(v[:got])+cost(v[got:])-1e-12 {
				t.Fatalf("%v: a split at %d is better than at %d", v, i, got)
			}
		}
		if v[got] == v[got-1] {
			t.Fatalf("%v: the split at %d parts equals", v, got)
		}
	}
}

func TestIsotonic(t *testing.T) {
	t.Parallel()
	v := []float64{1, 3, 2, 2, 5, 4}
	isotonic(v, true)
	if want := []float64{1, 7. / 3, 7. / 3, 7. / 3, 4.5, 4.5}; !slices.Equal(v, want) {
		t.Errorf("rising: %v", v)
	}
	v = []float64{5, 1, 3}
	isotonic(v, false)
	if want := []float64{5, 2, 2}; !slices.Equal(v, want) {
		t.Errorf("falling: %v", v)
	}
}
