package eaoa

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Arrows is the reverse k-nearest-neighbour graph between labeled examples and
// the pool, counted: every labeled example sends an arrow to each of its K
// nearest pool images.
type Arrows struct {
	Into    [][]int32 // [c][x]: arrows into pool image x from labeled examples of class c; c = C is unknown
	Labeled []int     // [c]: labeled examples of class c
}

// blockRows is how many labeled examples a worker takes at a time. A block of
// them stays in the second-level cache while the whole pool streams by.
const blockRows = 120

// CountArrows finds the k nearest pool images of every labeled example by cosine
// similarity and counts them by class. labeled is M x d, labels M (0..classes, the
// last for unknown), pool N x d; k above N is clipped. Of equal similarities the
// lower pool index is nearer; a zero vector is at similarity 0 from everything.
//
// Products in float32 sieve the pool; whatever they cannot tell apart around the
// k-th place is ranked in float64. So the answer does not depend on the order of
// the pool, on the processor or on their number, and scaling features by a power
// of two changes nothing. Memory: one normalised copy of the pool, N x (classes+1)
// counts, and a constant.
func CountArrows(ctx context.Context, labeled Matrix, labels []int, pool Matrix, classes, k int) (*Arrows, error) {
	a := &Arrows{Into: make([][]int32, classes+1), Labeled: make([]int, classes+1)}
	counts := make([]int32, (classes+1)*pool.Rows)
	for c := range a.Into {
		a.Into[c] = counts[c*pool.Rows : (c+1)*pool.Rows]
	}
	for _, l := range labels {
		a.Labeled[l]++
	}
	k = min(k, pool.Rows)
	workers := runtime.GOMAXPROCS(0)
	panels := pack(pool, tileCols, workers)

	block := blockRows
	if per := (labeled.Rows + workers - 1) / workers; per < block {
		block = max((per+tileRows-1)/tileRows*tileRows, tileRows)
	}
	var (
		next atomic.Int64
		mu   sync.Mutex
		wg   sync.WaitGroup
	)
	for range min(workers, (labeled.Rows+block-1)/block) {
		wg.Go(func() {
			s := newSearch(pool, panels, block, k)
			for {
				hi := int(next.Add(int64(block)))
				lo := hi - block
				if lo >= labeled.Rows || ctx.Err() != nil {
					return
				}
				hi = min(hi, labeled.Rows)
				s.nearest(ctx, Matrix{hi - lo, labeled.Cols, labeled.Data[lo*labeled.Cols : hi*labeled.Cols]})
				mu.Lock()
				for r := range hi - lo {
					into := a.Into[labels[lo+r]]
					for _, key := range s.found[r] {
						into[key.index()]++
					}
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("reverse nearest neighbours: %w", err)
	}
	return a, nil
}

// pack returns m's rows, L2-normalised, in panels of width rows, each panel
// transposed (features x width), the last filled up with zeros: the order in which
// the tile kernel reads them.
func pack(m Matrix, width, workers int) []float32 {
	panels := (m.Rows + width - 1) / width
	out := make([]float32, panels*width*m.Cols)
	var wg sync.WaitGroup
	share := (panels + workers - 1) / max(workers, 1)
	for lo := 0; lo < panels; lo += share {
		wg.Go(func() {
			for p := lo; p < min(lo+share, panels); p++ {
				packPanel(out[p*width*m.Cols:(p+1)*width*m.Cols], m, p*width, width)
			}
		})
	}
	wg.Wait()
	return out
}

func packPanel(panel []float32, m Matrix, first, width int) {
	for j := range min(width, m.Rows-first) {
		row := m.Row(first + j)
		sum := 0.0
		for _, v := range row {
			sum += float64(v) * float64(v)
		}
		if sum == 0 {
			continue
		}
		norm := math.Sqrt(sum)
		for f, v := range row {
			panel[f*width+j] = float32(float64(v) / norm)
		}
	}
}

// search finds the nearest pool images of one block of labeled examples. Its
// buffers are used again for every block.
type search struct {
	pool   Matrix
	panels []float32 // the pool, packed
	k      int
	margin float32   // similarities this close may be in the wrong order
	limit  int       // length at which a row's candidates are cut back
	floor  []float32 // per row: similarity that a candidate must exceed
	found  [][]key   // per row
	tile   [tileRows * tileCols]float32
}

func newSearch(pool Matrix, panels []float32, rows, k int) *search {
	s := &search{
		pool: pool, panels: panels, k: k, limit: 4*k + tileCols,
		// A float32 product of unit vectors is off by at most d+2 half-units of 1;
		// two of them, compared, by twice that.
		margin: float32(pool.Cols+4) * 0x1p-23,
		floor:  make([]float32, rows), found: make([][]key, rows),
	}
	for r := range s.found {
		s.found[r] = make([]key, 0, s.limit+tileCols)
	}
	return s
}

// nearest leaves the k nearest pool images of labeled example r, in no order, in
// s.found[r].
func (s *search) nearest(ctx context.Context, labeled Matrix) {
	rows := pack(labeled, tileRows, 1)
	for r := range labeled.Rows {
		s.floor[r] = float32(math.Inf(-1))
		s.found[r] = s.found[r][:0]
	}
	d := labeled.Cols
	for first := 0; first < s.pool.Rows; first += tileCols {
		if first%(1024*tileCols) == 0 && ctx.Err() != nil {
			return
		}
		panel := s.panels[first*d : (first+tileCols)*d]
		for r0 := 0; r0 < labeled.Rows; r0 += tileRows {
			products(d, rows[r0*d:(r0+tileRows)*d], panel, &s.tile)
			for r := r0; r < min(r0+tileRows, labeled.Rows); r++ {
				s.admit(r, (*[tileCols]float32)(s.tile[(r-r0)*tileCols:]), first)
			}
		}
	}
	for r := range labeled.Rows {
		s.found[r] = s.settle(s.found[r], labeled.Row(r))
	}
}

// admit adds to row r's candidates those of the similarities, of pool images
// first, first+1, ..., that exceed its floor.
func (s *search) admit(r int, sims *[tileCols]float32, first int) {
	if !anyAbove(sims, s.floor[r]) {
		return
	}
	found := s.found[r]
	for j, v := range sims[:min(s.pool.Rows-first, tileCols)] {
		if v > s.floor[r] {
			found = append(found, newKey(v, first+j))
		}
	}
	if len(found) >= s.limit {
		found, s.floor[r] = s.cut(found)
	}
	s.found[r] = found
}

// cut leaves those of found that may be among the k nearest, and returns the floor
// below which none is. A pool of near-equal images may leave too many: of those the
// first half of the limit stays, which is exact where they are truly equal.
func (s *search) cut(found []key) (kept []key, floor float32) {
	floor = least(largest(found, s.k)).similarity() - s.margin
	n := s.k
	for _, key := range found[n:] {
		if key.similarity() > floor {
			found[n] = key
			n++
		}
	}
	found = found[:n]
	if n > s.limit/2 {
		found = largest(found, s.limit/2)
		floor = least(found).similarity()
	}
	return found, floor
}

// settle returns the k nearest of the candidates of one labeled example. Those
// within the margin of the k-th are ranked by their cosines in float64.
func (s *search) settle(found []key, labeled []float32) []key {
	if len(found) <= s.k {
		return found
	}
	kth := least(largest(found, s.k)).similarity()
	sure := 0
	var doubtful []contender
	for i, key := range found {
		switch v := key.similarity(); {
		case v > kth+s.margin:
			found[i], found[sure] = found[sure], found[i]
			sure++
		case v >= kth-s.margin:
			doubtful = append(doubtful, contender{key, 0})
		}
	}
	if sure+len(doubtful) > s.k {
		for i := range doubtful {
			doubtful[i].cosine = cosine(s.pool.Row(doubtful[i].index()), labeled)
		}
		slices.SortFunc(doubtful, func(a, b contender) int {
			return cmp.Or(cmp.Compare(b.cosine, a.cosine), cmp.Compare(a.index(), b.index()))
		})
	}
	for i, c := range doubtful[:s.k-sure] {
		found[sure+i] = c.key
	}
	return found[:s.k]
}

// contender is a candidate for the last places among the nearest.
type contender struct {
	key
	cosine float64
}

// cosine is the cosine of a and b, times the length of b.
func cosine(a, b []float32) float64 {
	var ab, aa float64
	for i, v := range a {
		ab += float64(v) * float64(b[i])
		aa += float64(v) * float64(v)
	}
	if aa == 0 {
		return 0
	}
	return ab / math.Sqrt(aa)
}

// key is a similarity and a pool index in one number: the larger is the nearer,
// and of equal similarities the one with the lower index. Pools have fewer than
// 2^32 images.
type key uint64

func newKey(similarity float32, index int) key {
	bits := math.Float32bits(similarity + 0) // -0 becomes 0: they are equal
	if bits>>31 == 1 {
		bits = ^bits
	} else {
		bits |= 1 << 31
	}
	return key(bits)<<32 | key(^uint32(index))
}

func (k key) index() int { return int(^uint32(k)) }

func (k key) similarity() float32 {
	bits := uint32(k >> 32)
	if bits>>31 == 1 {
		bits &^= 1 << 31
	} else {
		bits = ^bits
	}
	return math.Float32frombits(bits)
}

// least is the smallest of keys.
func least(keys []key) key {
	k := keys[0]
	for _, other := range keys {
		k = min(k, other)
	}
	return k
}

// largest moves the n largest of the distinct keys to the front and returns them,
// in no order: quickselect with the median of three as pivot.
func largest(keys []key, n int) []key {
	if len(keys) <= n {
		return keys
	}
	lo, hi := 0, len(keys)-1
	for lo < hi {
		a, b, c := keys[lo], keys[(lo+hi)/2], keys[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for keys[i] > pivot {
				i++
			}
			for keys[j] < pivot {
				j--
			}
			if i <= j {
				keys[i], keys[j] = keys[j], keys[i]
				i++
				j--
			}
		}
		switch {
		case n-1 <= j:
			hi = j
		case n-1 >= i:
			lo = i
		default:
			return keys[:n]
		}
	}
	return keys[:n]
}
