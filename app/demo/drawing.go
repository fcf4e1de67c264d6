package demo

import (
	"math"
	"math/rand/v2"
)

// drawing draws one object: its shapes are given in a square from -1 to 1 around
// the object's middle, y down, and land turned, scaled and lit on the canvas.
type drawing struct {
	*canvas
	rng     *rand.Rand
	m       affine  // from the object's square to pixels
	outline float64 // width of outlines in the object's units, 0 for none
	shade   float64 // strength of the light, 0 for flat colours
	lightX  float64 // where the light comes from, a unit vector
	lightY  float64
}

// between is a number drawn evenly between low and high.
func between(rng *rand.Rand, low, high float64) float64 { return low + (high-low)*rng.Float64() }

// chance is true with probability p.
func chance(rng *rand.Rand, p float64) bool { return rng.Float64() < p }

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

func (d *drawing) between(low, high float64) float64 { return between(d.rng, low, high) }
func (d *drawing) chance(p float64) bool             { return chance(d.rng, p) }

// within returns a drawing of a part of the object.
func (d *drawing) within(m affine) *drawing {
	part := *d
	part.m = d.m.after(m)
	return &part
}

// units converts a length of the object to pixels.
func (d *drawing) units(w float64) float64 {
	return w * math.Sqrt(math.Abs(d.m.a*d.m.e-d.m.b*d.m.d))
}

func (d *drawing) toPixels(p path) path {
	out := make(path, len(p))
	for i, q := range p {
		out[i] = d.m.apply(q)
	}
	return out
}

// shape fills a part of the object, lit and outlined.
func (d *drawing) shape(p path, c rgb) {
	q := d.toPixels(p)
	d.fill([]path{q}, 1, d.lit(q, c))
	if d.outline > 0 {
		closed := append(append(path{}, q...), q[0])
		d.fill(thick(closed, d.units(d.outline)), 0.85, flat(c.scale(0.35)))
	}
}

// mark fills a small detail, flat and without an outline.
func (d *drawing) mark(p path, c rgb) { d.fill([]path{d.toPixels(p)}, 1, flat(c)) }

// stroke draws a line of the given width.
func (d *drawing) stroke(p path, width float64, c rgb) {
	q := d.toPixels(p)
	if d.outline > 0 {
		d.fill(thick(q, d.units(width+d.outline)), 0.85, flat(c.scale(0.35)))
	}
	d.fill(thick(q, d.units(width)), 1, d.lit(q, c))
}

// line draws a thin detail, flat and without an outline.
func (d *drawing) line(p path, width float64, c rgb) {
	d.fill(thick(d.toPixels(p), d.units(width)), 1, flat(c))
}

// lit is the paint of a body of colour c that fills the outline q: lighter towards
// the light, darker away from it.
func (d *drawing) lit(q path, c rgb) paint {
	if d.shade == 0 {
		return flat(c)
	}
	low, high := q[0], q[0]
	for _, p := range q {
		low = point{min(low.x, p.x), min(low.y, p.y)}
		high = point{max(high.x, p.x), max(high.y, p.y)}
	}
	cx, cy := (low.x+high.x)/2, (low.y+high.y)/2
	r := max(high.x-low.x, high.y-low.y)/2 + 1
	return func(x, y float64) rgb {
		t := d.shade * ((x-cx)*d.lightX + (y-cy)*d.lightY) / r
		if t > 0 {
			return c.mix(rgb{1, 1, 0.95}, min(t, 0.6))
		}
		return c.scale(max(0.35, 1+t))
	}
}
