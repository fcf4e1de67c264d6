package demo

import (
	"image"
	"image/color"
	"math"

	"golang.org/x/image/vector"
)

// rgb is a colour with components from 0 to 1.
type rgb struct{ r, g, b float64 }

// hsv makes a colour of hue (in turns), saturation and value.
func hsv(h, s, v float64) rgb {
	h -= math.Floor(h)
	f := func(n float64) float64 {
		k := math.Mod(n+6*h, 6)
		return v - v*s*max(0, min(k, 4-k, 1))
	}
	return rgb{f(5), f(3), f(1)}
}

func (c rgb) mix(d rgb, t float64) rgb {
	return rgb{c.r + (d.r-c.r)*t, c.g + (d.g-c.g)*t, c.b + (d.b-c.b)*t}
}

func (c rgb) scale(f float64) rgb { return rgb{c.r * f, c.g * f, c.b * f} }

// point is a place in the plane, y down.
type point struct{ x, y float64 }

// affine maps (x, y) to (a x + b y + c, d x + e y + f).
type affine struct{ a, b, c, d, e, f float64 }

func (m affine) apply(p point) point {
	return point{m.a*p.x + m.b*p.y + m.c, m.d*p.x + m.e*p.y + m.f}
}

// after returns the map that applies n first, then m.
func (m affine) after(n affine) affine {
	return affine{
		m.a*n.a + m.b*n.d, m.a*n.b + m.b*n.e, m.a*n.c + m.b*n.f + m.c,
		m.d*n.a + m.e*n.d, m.d*n.b + m.e*n.e, m.d*n.c + m.e*n.f + m.f,
	}
}

// place scales by sx and sy, turns by angle (radians, clockwise) and moves to x, y.
func place(x, y, sx, sy, angle float64) affine {
	sin, cos := math.Sincos(angle)
	return affine{sx * cos, -sy * sin, x, sx * sin, sy * cos, y}
}

// path is a closed outline of points; curves are flattened as they are drawn.
type path []point

func at(x, y float64) path { return path{{x, y}} }

func (p path) line(xy ...float64) path {
	for i := 0; i+1 < len(xy); i += 2 {
		p = append(p, point{xy[i], xy[i+1]})
	}
	return p
}

// curve continues to (x, y) by a cubic with the two control points.
func (p path) curve(x1, y1, x2, y2, x, y float64) path {
	const steps = 12
	from := p[len(p)-1]
	for i := 1; i <= steps; i++ {
		t := float64(i) / steps
		u := 1 - t
		a, b, c, d := u*u*u, 3*u*u*t, 3*u*t*t, t*t*t
		p = append(p, point{a*from.x + b*x1 + c*x2 + d*x, a*from.y + b*y1 + c*y2 + d*y})
	}
	return p
}

// arc is the part of an ellipse from one angle to another (radians, clockwise from
// the right).
func arc(cx, cy, rx, ry, from, to float64) path {
	const steps = 28
	p := make(path, 0, steps+1)
	for i := range steps + 1 {
		sin, cos := math.Sincos(from + (to-from)*float64(i)/steps)
		p = append(p, point{cx + rx*cos, cy + ry*sin})
	}
	return p
}

func ellipse(cx, cy, rx, ry float64) path { return arc(cx, cy, rx, ry, 0, 2*math.Pi) }

func rectangle(x0, y0, x1, y1 float64) path { return at(x0, y0).line(x1, y0, x1, y1, x0, y1) }

// canvas is a square picture in floating point.
type canvas struct {
	size   int
	pix    []rgb
	raster *vector.Rasterizer
	mask   *image.Alpha
}

func newCanvas(size int) *canvas {
	return &canvas{
		size:   size,
		pix:    make([]rgb, size*size),
		raster: vector.NewRasterizer(size, size),
		mask:   image.NewAlpha(image.Rect(0, 0, size, size)),
	}
}

// paint gives the colour of a pixel.
type paint func(x, y float64) rgb

func flat(c rgb) paint { return func(float64, float64) rgb { return c } }

// fill covers the outlines, in pixels, with the paint. Outlines that run the same
// way round are united.
func (c *canvas) fill(outlines []path, alpha float64, p paint) {
	c.raster.Reset(c.size, c.size)
	for _, o := range outlines {
		c.raster.MoveTo(float32(o[0].x), float32(o[0].y))
		for _, q := range o[1:] {
			c.raster.LineTo(float32(q.x), float32(q.y))
		}
		c.raster.ClosePath()
	}
	clear(c.mask.Pix)
	c.raster.Draw(c.mask, c.mask.Rect, image.Opaque, image.Point{})
	for i, m := range c.mask.Pix {
		if m != 0 {
			x, y := float64(i%c.size), float64(i/c.size)
			c.pix[i] = c.pix[i].mix(p(x, y), alpha*float64(m)/255)
		}
	}
}

// thick returns outlines that together cover a line of the given width along p.
func thick(p path, width float64) []path {
	r := width / 2
	outlines := make([]path, 0, 2*len(p))
	for i, q := range p {
		outlines = append(outlines, disc(q, r))
		if i == 0 {
			continue
		}
		o := p[i-1]
		dx, dy := q.x-o.x, q.y-o.y
		if n := math.Hypot(dx, dy); n > 1e-9 {
			nx, ny := -dy/n*r, dx/n*r
			outlines = append(outlines, path{{o.x - nx, o.y - ny}, {q.x - nx, q.y - ny}, {q.x + nx, q.y + ny}, {o.x + nx, o.y + ny}})
		}
	}
	return outlines
}

// disc is a small circle, with few corners.
func disc(c point, r float64) path {
	const corners = 10
	p := make(path, corners)
	for i := range p {
		sin, cos := math.Sincos(2 * math.Pi * float64(i) / corners)
		p[i] = point{c.x + r*cos, c.y + r*sin}
	}
	return p
}

// contrast is the mean difference, over the pixels that changed, between the
// canvas and what it was before.
func (c *canvas) contrast(before []rgb) float64 {
	sum, n := 0.0, 0.0
	for i, p := range c.pix {
		if q := before[i]; p != q {
			sum += max(math.Abs(p.r-q.r), math.Abs(p.g-q.g), math.Abs(p.b-q.b))
			n++
		}
	}
	return sum / max(n, 1)
}

// blur averages each pixel with its neighbours by the weights of a Gaussian.
func (c *canvas) blur(sigma float64) {
	radius := int(math.Ceil(2 * sigma))
	weights := make([]float64, 2*radius+1)
	sum := 0.0
	for i := range weights {
		d := float64(i - radius)
		weights[i] = math.Exp(-d * d / (2 * sigma * sigma))
		sum += weights[i]
	}
	pass := func(index func(line, i int) int) {
		line := make([]rgb, c.size)
		for l := range c.size {
			for i := range line {
				var v rgb
				for k, w := range weights {
					p := c.pix[index(l, min(max(i+k-radius, 0), c.size-1))]
					v = rgb{v.r + w*p.r, v.g + w*p.g, v.b + w*p.b}
				}
				line[i] = v.scale(1 / sum)
			}
			for i, v := range line {
				c.pix[index(l, i)] = v
			}
		}
	}
	pass(func(l, i int) int { return l*c.size + i })
	pass(func(l, i int) int { return i*c.size + l })
}

// image returns the picture with 8 bits a component.
func (c *canvas) image() *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, c.size, c.size))
	to8 := func(v float64) uint8 { return uint8(min(max(v, 0), 1)*255 + 0.5) }
	for i, p := range c.pix {
		m.SetRGBA(i%c.size, i/c.size, color.RGBA{to8(p.r), to8(p.g), to8(p.b), 255})
	}
	return m
}
