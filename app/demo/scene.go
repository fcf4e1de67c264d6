package demo

import (
	"image"
	"math"
	"math/rand/v2"
	"slices"
)

// kind is a class of objects: how to draw one, and how it is usually met.
type kind struct {
	name  string
	draw  func(*drawing)
	tilt  float64    // largest turn either way, radians
	homes []backdrop // where it is met more often than elsewhere
}

// kinds lists the classes, the project's known ones first.
func kinds() []kind {
	return []kind{
		{"fish", drawFish, 0.6, []backdrop{underWater, atSea}},
		{"boat", drawBoat, 0.25, []backdrop{atSea, atSea, atDusk}},
		{"mushroom", drawMushroom, 0.35, []backdrop{onLand, inWoods}},
		{"house", drawHouse, 0.12, []backdrop{onLand, atDusk}},

		{"tree", drawTree, 0.12, []backdrop{onLand, atDusk}},
		{"cactus", drawCactus, 0.15, []backdrop{onLand, atDusk, onTable}},
		{"umbrella", drawUmbrella, 0.7, []backdrop{onLand, patterned}},
		{"cup", drawCup, 0.2, []backdrop{onTable, patterned}},
		{"car", drawCar, 0.15, []backdrop{onLand, atDusk}},
		{"butterfly", drawButterfly, 0.9, []backdrop{inWoods, blurred}},
		{"flower", drawFlower, 0.3, []backdrop{inWoods, onLand}},
		{"key", drawKey, math.Pi, []backdrop{onTable, patterned}},
		{"balloon", drawBalloon, 0.2, []backdrop{onLand, atDusk, blurred}},
		{"bird", drawBird, 0.3, []backdrop{onLand, inWoods, blurred}},
	}
}

// backdrop paints what is behind an object.
type backdrop func(*canvas, *rand.Rand)

func backdrops() []backdrop {
	return []backdrop{onLand, atSea, underWater, atDusk, inWoods, onTable, patterned, blurred}
}

// homely is how often an object is met where it belongs. Elsewhere it may be
// anywhere: the place alone does not tell the class.
const homely = 0.45

// leastContrast is the mean difference between an object and what it covers below
// which people would not find it.
const leastContrast = 0.2

// render draws an object of the kind in a scene of its own.
func render(k kind, size int, rng *rand.Rand) *image.RGBA {
	c := newCanvas(size)
	if chance(rng, homely) {
		pick(rng, k.homes...)(c, rng)
	} else {
		pick(rng, backdrops()...)(c, rng)
	}
	clutter(c, rng, rng.IntN(5))

	s := float64(size)
	radius := s * between(rng, 0.27, 0.46)
	slack := max(0, s/2-radius*0.9)
	x := s/2 + between(rng, -slack, slack)
	y := s/2 + between(rng, -slack, slack)
	stretch := between(rng, 0.87, 1.15)
	flip := pick(rng, -1.0, 1.0)
	light := between(rng, -2.6, -0.5) // from above
	d := &drawing{
		canvas: c, rng: rng,
		m:      place(x, y, flip*radius*stretch, radius/stretch, between(rng, -k.tilt, k.tilt)),
		shade:  between(rng, 0.1, 0.45),
		lightX: math.Cos(light), lightY: math.Sin(light),
	}
	if chance(rng, 0.15) {
		d.shade = 0
	}
	if chance(rng, 0.55) {
		d.outline = between(rng, 0.05, 0.11)
	}
	if chance(rng, 0.5) { // a soft shadow on whatever is behind
		c.fill([]path{ellipse(x+radius*0.1, y+radius*0.92, radius*0.8, radius*0.16)}, 0.28, flat(rgb{0.05, 0.05, 0.1}))
	}
	behind := slices.Clone(c.pix)
	k.draw(d)
	for range 4 {
		if c.contrast(behind) >= leastContrast {
			break
		}
		copy(c.pix, behind) // lost in its surroundings: draw another
		d.outline, d.shade = 0.1, between(rng, 0.3, 0.45)
		k.draw(d)
	}
	if chance(rng, 0.35) {
		occlude(c, rng)
	}
	expose(c, rng)
	return c.image()
}

// gradient paints from top to bottom.
func gradient(c *canvas, from, to float64, top, bottom rgb) {
	first, last := int(from*float64(c.size)), int(to*float64(c.size))
	for y := max(first, 0); y < min(last, c.size); y++ {
		col := top.mix(bottom, float64(y-first)/float64(max(last-first, 1)))
		for x := range c.size {
			c.pix[y*c.size+x] = col
		}
	}
}

func onLand(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	horizon := between(rng, 0.4, 0.8)
	sky := hsv(between(rng, 0.52, 0.62), between(rng, 0.15, 0.6), between(rng, 0.75, 1))
	gradient(c, 0, 1, sky, sky.mix(rgb{1, 1, 1}, 0.6))
	if chance(rng, 0.5) {
		for range 1 + rng.IntN(3) {
			cloud(c, between(rng, 0, s), between(rng, 0, horizon*s*0.7), between(rng, 0.06, 0.13)*s)
		}
	}
	ground := hsv(between(rng, 0.1, 0.36), between(rng, 0.25, 0.65), between(rng, 0.4, 0.8))
	hills(c, rng, horizon-0.08, ground.mix(sky, 0.45))
	hills(c, rng, horizon, ground)
	for range rng.IntN(25) {
		x, y := between(rng, 0, s), between(rng, horizon*s+2, s)
		c.fill(thick(path{{x, y}, {x + between(rng, -1, 1), y - between(rng, 1.5, 3.5)}}, 0.7), 0.6, flat(ground.scale(0.7)))
	}
}

func hills(c *canvas, rng *rand.Rand, horizon float64, col rgb) {
	s := float64(c.size)
	a, b := between(rng, 0, 0.07), between(rng, 0, 6)
	p := path{{0, s}}
	for x := 0.0; x <= s; x += 4 {
		p = append(p, point{x, s * (horizon + a*math.Sin(b+x/s*5))})
	}
	p = append(p, point{s, s})
	c.fill([]path{p}, 1, func(_, y float64) rgb { return col.scale(1.1 - 0.3*(y/s-horizon)) })
}

func cloud(c *canvas, x, y, r float64) {
	c.fill([]path{ellipse(x, y, r*1.2, r*0.7), ellipse(x-r, y+r*0.25, r, r*0.5), ellipse(x+r, y+r*0.2, r*1.1, r*0.55)}, 0.8, flat(rgb{1, 1, 1}))
}

func atSea(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	horizon := between(rng, 0.35, 0.7)
	sky := hsv(between(rng, 0.5, 0.62), between(rng, 0.1, 0.5), between(rng, 0.8, 1))
	water := hsv(between(rng, 0.47, 0.64), between(rng, 0.4, 0.8), between(rng, 0.4, 0.75))
	gradient(c, 0, horizon, sky, sky.mix(rgb{1, 1, 0.95}, 0.6))
	gradient(c, horizon, 1, water.mix(rgb{1, 1, 1}, 0.25), water)
	waves(c, rng, horizon*s+2, water.mix(rgb{1, 1, 1}, 0.5))
}

func waves(c *canvas, rng *rand.Rand, from float64, col rgb) {
	s := float64(c.size)
	for range 6 + rng.IntN(10) {
		x, y, w := between(rng, -4, s), between(rng, from, s), between(rng, 3, 9)
		c.fill(thick(at(x, y).curve(x+w/3, y-1.5, x+2*w/3, y-1.5, x+w, y), 0.8), 0.55, flat(col))
	}
}

func underWater(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	water := hsv(between(rng, 0.46, 0.62), between(rng, 0.5, 0.85), between(rng, 0.45, 0.85))
	gradient(c, 0, 1, water.mix(rgb{0.9, 1, 1}, 0.35), water.scale(0.55))
	for range rng.IntN(4) { // light from above
		x, w := between(rng, 0, s), between(rng, 2, 6)
		c.fill([]path{{{x, 0}, {x + w, 0}, {x + 2*w - 8, s}, {x - 8, s}}}, 0.12, flat(rgb{1, 1, 1}))
	}
	for range rng.IntN(4) { // weed
		x := between(rng, 0, s)
		h, bend := between(rng, 8, 22), between(rng, -5, 5)
		c.fill(thick(at(x, s).curve(x+bend, s-h/3, x-bend, s-2*h/3, x+bend/2, s-h), 2), 0.8, flat(hsv(between(rng, 0.25, 0.4), 0.7, between(rng, 0.25, 0.5))))
	}
	for range rng.IntN(9) {
		p := point{between(rng, 0, s), between(rng, 0, s)}
		r := between(rng, 0.6, 2)
		c.fill([]path{disc(p, r)}, 0.35, flat(rgb{0.9, 1, 1}))
	}
}

func atDusk(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	horizon := between(rng, 0.5, 0.8)
	high := hsv(between(rng, 0.6, 0.85), between(rng, 0.4, 0.75), between(rng, 0.2, 0.5))
	low := hsv(between(rng, 0.95, 1.12), between(rng, 0.4, 0.8), between(rng, 0.7, 1))
	gradient(c, 0, 1, high, low)
	if chance(rng, 0.6) {
		r := between(rng, 2.5, 6)
		c.fill([]path{ellipse(between(rng, 0, s), between(rng, 4, horizon*s), r, r)}, 0.9, flat(rgb{1, 0.95, 0.75}))
	}
	for range rng.IntN(12) {
		c.fill([]path{disc(point{between(rng, 0, s), between(rng, 0, s*0.5)}, 0.6)}, 0.8, flat(rgb{1, 1, 1}))
	}
	hills(c, rng, horizon, high.scale(0.5))
}

func inWoods(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	green := hsv(between(rng, 0.2, 0.42), between(rng, 0.35, 0.7), between(rng, 0.25, 0.6))
	gradient(c, 0, 1, green, green.scale(0.6))
	for range 25 + rng.IntN(30) {
		p := point{between(rng, 0, s), between(rng, 0, s)}
		r := between(rng, 1.5, 6)
		leaf := hsv(between(rng, 0.12, 0.45), between(rng, 0.3, 0.8), between(rng, 0.2, 0.75))
		c.fill([]path{ellipse(p.x, p.y, r, r*between(rng, 0.3, 1))}, between(rng, 0.2, 0.6), flat(leaf))
	}
}

func onTable(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	wall := hsv(between(rng, 0, 1), between(rng, 0.05, 0.4), between(rng, 0.5, 0.95))
	gradient(c, 0, 1, wall, wall.scale(0.85))
	edge := between(rng, 0.45, 0.85)
	table := hsv(between(rng, 0.04, 0.12), between(rng, 0.2, 0.7), between(rng, 0.3, 0.85))
	gradient(c, edge, 1, table, table.scale(0.75))
	for range rng.IntN(8) { // grain
		y := between(rng, edge*s, s)
		c.fill(thick(path{{0, y}, {s, y + between(rng, -2, 2)}}, 0.6), 0.3, flat(table.scale(0.6)))
	}
}

func patterned(c *canvas, rng *rand.Rand) {
	a := hsv(between(rng, 0, 1), between(rng, 0.1, 0.7), between(rng, 0.3, 0.95))
	b := a.mix(hsv(between(rng, 0, 1), between(rng, 0.1, 0.6), between(rng, 0.3, 1)), between(rng, 0.25, 0.6))
	period, angle := between(rng, 4, 14), between(rng, 0, math.Pi)
	sin, cos := math.Sincos(angle)
	style := rng.IntN(3)
	for i := range c.pix {
		x, y := float64(i%c.size), float64(i/c.size)
		u, v := (x*cos+y*sin)/period, (y*cos-x*sin)/period
		var on bool
		switch style {
		case 0: // stripes
			on = u-math.Floor(u) < 0.5
		case 1: // checks
			on = (int(math.Floor(u))+int(math.Floor(v)))%2 == 0
		default: // dots
			on = math.Hypot(u-math.Floor(u)-0.5, v-math.Floor(v)-0.5) < 0.3
		}
		c.pix[i] = a
		if on {
			c.pix[i] = b
		}
	}
	c.blur(0.5)
}

func blurred(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	base := hsv(between(rng, 0, 1), between(rng, 0.1, 0.6), between(rng, 0.3, 0.9))
	gradient(c, 0, 1, base, base.scale(between(rng, 0.6, 1)))
	for range 6 + rng.IntN(8) {
		r := between(rng, 4, 13)
		col := base.mix(hsv(between(rng, 0, 1), between(rng, 0.1, 0.7), between(rng, 0.4, 1)), 0.6)
		c.fill([]path{ellipse(between(rng, 0, s), between(rng, 0, s), r, r)}, between(rng, 0.2, 0.6), flat(col))
	}
	c.blur(2)
}

// clutter strews n small things about: stones, leaves, sticks, scraps.
func clutter(c *canvas, rng *rand.Rand, n int) {
	s := float64(c.size)
	for range n {
		x, y, r := between(rng, 0, s), between(rng, 0, s), between(rng, 1.5, 5.5)
		col := hsv(between(rng, 0, 1), between(rng, 0.1, 0.8), between(rng, 0.25, 0.95))
		m := place(x, y, r, r, between(rng, 0, 2*math.Pi))
		var shape path
		switch rng.IntN(4) {
		case 0:
			shape = ellipse(0, 0, 1, between(rng, 0.5, 1))
		case 1:
			shape = at(-1, 0.8).line(1, 0.6, 0.1, -1)
		case 2:
			shape = rectangle(-1, -between(rng, 0.15, 0.8), 1, 0.6)
		default:
			shape = at(-1, 0).curve(-0.5, -0.7, 0.5, -0.7, 1, 0).curve(0.5, 0.7, -0.5, 0.7, -1, 0)
		}
		for i := range shape {
			shape[i] = m.apply(shape[i])
		}
		c.fill([]path{shape}, between(rng, 0.6, 1), flat(col))
	}
}

// occlude puts something before the object: blades of grass, a bar, a leaf.
func occlude(c *canvas, rng *rand.Rand) {
	s := float64(c.size)
	switch rng.IntN(3) {
	case 0:
		col := hsv(between(rng, 0.18, 0.4), between(rng, 0.4, 0.8), between(rng, 0.25, 0.7))
		for range 5 + rng.IntN(12) {
			x, h := between(rng, 0, s), between(rng, 6, 17)
			c.fill(thick(at(x, s).curve(x, s-h/2, x+between(rng, -3, 3), s-h*0.8, x+between(rng, -5, 5), s-h), 1.2), 0.9, flat(col.scale(between(rng, 0.8, 1.2))))
		}
	case 1:
		x, lean, w := between(rng, 0, s), between(rng, -18, 18), between(rng, 1.5, 4)
		col := hsv(between(rng, 0, 1), between(rng, 0, 0.5), between(rng, 0.15, 0.9))
		c.fill(thick(path{{x, 0}, {x + lean, s}}, w), 0.95, flat(col))
	default:
		corner := pick(rng, point{0, 0}, point{s, 0}, point{0, s}, point{s, s})
		r := between(rng, 9, 20)
		col := hsv(between(rng, 0, 1), between(rng, 0.2, 0.7), between(rng, 0.2, 0.8))
		c.fill([]path{ellipse(corner.x, corner.y, r, r*between(rng, 0.6, 1.2))}, 0.92, flat(col))
	}
}

// expose does what a camera does: light, contrast, tint, blur, noise.
func expose(c *canvas, rng *rand.Rand) {
	if chance(rng, 0.4) {
		c.blur(between(rng, 0.35, 0.95))
	}
	gain, lift := between(rng, 0.75, 1.12), between(rng, -0.06, 0.08)
	tint := rgb{between(rng, 0.92, 1.06), between(rng, 0.94, 1.04), between(rng, 0.9, 1.06)}
	grain := 0.04 * rng.Float64() * rng.Float64()
	vignette := between(rng, 0, 0.35)
	half := float64(c.size) / 2
	for i, p := range c.pix {
		x, y := float64(i%c.size)/half-1, float64(i/c.size)/half-1
		f := gain * (1 - vignette*(x*x+y*y)/2)
		n := rng.NormFloat64() * grain
		c.pix[i] = rgb{p.r*f*tint.r + lift + n, p.g*f*tint.g + lift + n, p.b*f*tint.b + lift + n}
	}
}
