package demo

import "math"

// The objects, each in the square from -1 to 1, y down. Within a class, what people
// would still call by the same name varies: proportions, parts, colours, patterns.

// bright is any strong colour.
func (d *drawing) bright() rgb { return hsv(d.between(0, 1), d.between(0.55, 0.95), d.between(0.6, 1)) }

// wood is the brown of trunks, masts and handles.
func (d *drawing) wood() rgb {
	return hsv(d.between(0.04, 0.1), d.between(0.4, 0.7), d.between(0.3, 0.6))
}

// leaf is a green.
func (d *drawing) leaf() rgb {
	return hsv(d.between(0.22, 0.42), d.between(0.45, 0.85), d.between(0.35, 0.75))
}

// pale is a colour near white.
func (d *drawing) pale() rgb { return hsv(d.between(0, 1), d.between(0, 0.18), d.between(0.85, 1)) }

func drawFish(d *drawing) {
	body, fin := d.bright(), d.bright()
	long, tall := d.between(0.62, 0.78), d.between(0.3, 0.5)
	tail := d.between(0.25, 0.45)
	forked := d.between(0.55, 0.95)
	d.shape(at(0.45, 0).line(0.98, -tail).curve(0.98*forked, -tail/2, 0.98*forked, tail/2, 0.98, tail), fin)
	d.shape(at(-0.2, -tall*0.7).curve(0, -tall-0.45, 0.25, -tall-0.2, 0.35, -tall*0.4), fin)
	if d.chance(0.6) {
		d.shape(at(-0.1, tall*0.7).curve(0.05, tall+0.3, 0.2, tall+0.15, 0.25, tall*0.5), fin)
	}
	outline := at(-0.95, 0).curve(-0.95+long*0.3, -tall*1.3, long*0.5, -tall*1.1, 0.6, 0).
		curve(long*0.5, tall*1.1, -0.95+long*0.3, tall*1.3, -0.95, 0)
	d.shape(outline, body)
	switch d.rng.IntN(3) {
	case 0: // stripes
		c := d.pale()
		for x := -0.35; x < 0.4; x += 0.25 {
			h := tall * (0.85 - math.Abs(x)*0.6)
			d.line(at(x, -h).curve(x+0.08, -h/2, x+0.08, h/2, x, h), 0.09, c)
		}
	case 1: // a light belly
		d.mark(at(-0.7, tall*0.25).curve(-0.3, tall*1.0, 0.1, tall*0.8, 0.4, tall*0.2).curve(0, tall*0.4, -0.4, tall*0.4, -0.7, tall*0.25),
			body.mix(rgb{1, 1, 1}, 0.6))
	}
	d.line(at(-0.42, -tall*0.55).curve(-0.3, -tall*0.2, -0.3, tall*0.2, -0.42, tall*0.55), 0.05, body.scale(0.6))
	eye := d.between(0.09, 0.14)
	d.mark(ellipse(-0.64, -tall*0.25, eye, eye), rgb{1, 1, 1})
	d.mark(ellipse(-0.66, -tall*0.25, eye*0.55, eye*0.55), rgb{0.05, 0.05, 0.1})
}

func drawBoat(d *drawing) {
	hull := d.bright()
	keel, left := d.between(0.5, 0.7), d.between(0.8, 0.98)
	hullPath := at(-left, 0.25).line(0.98, 0.25).curve(0.9, 0.6, 0.75, 0.75, keel, 0.8).line(-keel, 0.8).curve(-0.75, 0.75, -0.85, 0.55, -left, 0.25)
	if d.chance(0.65) { // under sail
		mast := d.between(-0.15, 0.15)
		d.line(at(mast, 0.3).line(mast, -0.98), 0.07, d.wood())
		sail := d.pale()
		if d.chance(0.5) {
			sail = d.bright().mix(rgb{1, 1, 1}, 0.3)
		}
		belly := d.between(0.05, 0.3)
		d.shape(at(mast+0.07, -0.92).curve(mast+0.3+belly, -0.6, mast+0.6+belly, -0.2, mast+0.75, 0.12).line(mast+0.07, 0.12), sail)
		if d.chance(0.75) {
			d.shape(at(mast-0.07, -0.8).curve(mast-0.2, -0.5, mast-0.5, -0.1, mast-0.65, 0.12).line(mast-0.07, 0.12), d.pale())
		}
		if d.chance(0.4) {
			d.mark(at(mast, -0.98).line(mast+0.3, -0.9, mast, -0.8), d.bright())
		}
		d.shape(hullPath, hull)
	} else { // a steamer
		d.shape(rectangle(-0.55, -0.2, 0.45, 0.3), d.pale())
		for x := -0.4; x < 0.4; x += 0.28 {
			d.mark(ellipse(x, 0.02, 0.08, 0.08), rgb{0.15, 0.25, 0.4})
		}
		funnel := d.bright()
		d.shape(rectangle(-0.2, -0.75, 0.1, -0.2), funnel)
		d.mark(rectangle(-0.2, -0.75, 0.1, -0.62), funnel.scale(0.4))
		d.shape(hullPath, hull)
	}
	if d.chance(0.6) {
		d.line(at(-left+0.12, 0.42).line(0.85, 0.42), 0.07, d.pale())
	}
}

func drawMushroom(d *drawing) {
	stem := hsv(d.between(0.08, 0.16), d.between(0.05, 0.3), d.between(0.8, 1))
	width, flare := d.between(0.18, 0.3), d.between(1, 1.7)
	d.shape(at(-width, -0.1).curve(-width*0.8, 0.4, -width*flare, 0.7, -width*flare, 0.92).
		line(width*flare, 0.92).curve(width*flare, 0.7, width*0.8, 0.4, width, -0.1), stem)
	if d.chance(0.4) {
		d.line(at(-width*0.95, 0.25).curve(-width/2, 0.36, width/2, 0.36, width*0.95, 0.25), 0.08, stem.scale(0.8))
	}
	cap := hsv(d.between(0.95, 1.11), d.between(0.6, 0.95), d.between(0.55, 0.95)) // red to brown and orange
	if d.chance(0.2) {
		cap = d.bright()
	}
	top, wide, rim := d.between(0.65, 1.1), d.between(0.7, 0.98), d.between(0.02, 0.2)
	d.shape(at(-wide, 0).curve(-wide, -top, wide, -top, wide, 0).curve(wide*0.6, rim, -wide*0.6, rim, -wide, 0), cap)
	if d.chance(0.7) {
		dots := cap.mix(rgb{1, 1, 0.95}, 0.85)
		for range 4 + d.rng.IntN(4) {
			x := d.between(-0.7, 0.7) * wide
			y := -d.between(0.1, 0.62) * top * (1 - x*x/(wide*wide))
			r := d.between(0.06, 0.13)
			d.mark(ellipse(x, y, r*1.1, r), dots)
		}
	}
}

func drawHouse(d *drawing) {
	wall := hsv(d.between(0, 1), d.between(0.05, 0.5), d.between(0.65, 1))
	roof := hsv(d.between(0.94, 1.1), d.between(0.4, 0.85), d.between(0.35, 0.75))
	if d.chance(0.3) {
		roof = d.bright().scale(0.7)
	}
	wide, eaves, top := d.between(0.6, 0.85), d.between(-0.3, 0), d.between(-0.98, -0.75)
	if d.chance(0.55) {
		x := pick(d.rng, -1.0, 1.0) * wide * 0.55
		d.shape(rectangle(x-0.11, top+0.05, x+0.11, eaves), roof.scale(0.75))
	}
	d.shape(rectangle(-wide, eaves, wide, 0.9), wall)
	over := wide + 0.15
	if d.chance(0.75) {
		d.shape(at(-over, eaves+0.05).line(0, top, over, eaves+0.05), roof)
	} else {
		d.shape(at(-over, eaves+0.05).line(-wide*0.6, top+0.2, wide*0.6, top+0.2, over, eaves+0.05), roof)
	}
	door := d.between(-0.35, 0.35) * wide
	d.shape(rectangle(door-0.14, 0.35, door+0.14, 0.9), d.wood())
	glass := pick(d.rng, rgb{0.55, 0.75, 0.9}, rgb{1, 0.9, 0.5}, rgb{0.2, 0.25, 0.35})
	for _, x := range []float64{-0.62 * wide, 0.62 * wide} {
		if math.Abs(x-door) > 0.28 {
			d.shape(rectangle(x-0.14, eaves+0.25, x+0.14, eaves+0.55), glass)
			d.line(at(x, eaves+0.25).line(x, eaves+0.55), 0.04, wall.scale(0.8))
		}
	}
}

func drawTree(d *drawing) {
	trunk := d.between(0.08, 0.15)
	d.shape(at(-trunk, 0.2).line(trunk, 0.2, trunk*1.5, 0.95, -trunk*1.5, 0.95), d.wood())
	green := d.leaf()
	if d.chance(0.25) { // autumn
		green = hsv(d.between(0.02, 0.14), d.between(0.6, 0.9), d.between(0.6, 0.9))
	}
	if d.chance(0.45) { // a fir
		wide := d.between(0.5, 0.7)
		for i := range 3 {
			y := 0.45 - 0.42*float64(i)
			w := wide * (1 - 0.22*float64(i))
			d.shape(at(-w, y).line(0, y-0.65, w, y), green.scale(1-0.07*float64(i)))
		}
		return
	}
	for range 7 {
		a, r := d.between(0, 2*math.Pi), d.between(0.1, 0.38)
		s := d.between(0.28, 0.42)
		d.shape(ellipse(r*math.Cos(a)*1.2, -0.35+r*math.Sin(a), s, s), green.scale(d.between(0.9, 1.1)))
	}
	if d.chance(0.3) {
		for range 6 {
			d.mark(ellipse(d.between(-0.5, 0.5), d.between(-0.75, 0.05), 0.07, 0.07), rgb{0.85, 0.15, 0.1})
		}
	}
}

func drawCactus(d *drawing) {
	green := hsv(d.between(0.27, 0.42), d.between(0.45, 0.8), d.between(0.4, 0.65))
	w := d.between(0.3, 0.42)
	arm := func(side, y, reach, height float64) {
		d.stroke(at(0, y).line(side*reach*0.7, y).curve(side*reach, y, side*reach, y, side*reach, y-0.2).line(side*reach, y-height), w*0.62, green)
	}
	if d.chance(0.9) {
		arm(-1, d.between(0.05, 0.35), d.between(0.5, 0.65), d.between(0.4, 0.6))
	}
	if d.chance(0.85) {
		arm(1, d.between(-0.1, 0.3), d.between(0.5, 0.65), d.between(0.35, 0.55))
	}
	base := 0.95
	if d.chance(0.45) {
		base = 0.6
	}
	d.stroke(at(0, base).line(0, -0.75), w, green)
	for _, x := range []float64{-w * 0.22, w * 0.22} {
		d.line(at(x, base-0.1).line(x, -0.7), 0.03, green.scale(0.65))
	}
	if base < 0.9 {
		d.shape(at(-0.45, 0.5).line(0.45, 0.5, 0.32, 0.97, -0.32, 0.97), hsv(d.between(0.02, 0.08), 0.7, d.between(0.6, 0.8)))
	}
	if d.chance(0.4) {
		d.mark(ellipse(0, -0.93, 0.13, 0.1), hsv(0.92, 0.7, 0.95))
	}
}

func drawUmbrella(d *drawing) {
	c, other := d.bright(), d.pale()
	handle := d.wood()
	d.stroke(at(0, -0.7).line(0, 0.7).curve(0, 1.0, 0.32, 1.0, 0.32, 0.72), 0.08, handle)
	top, wide := d.between(-0.95, -0.8), d.between(0.85, 0.98)
	n := 4 + d.rng.IntN(2)
	striped := d.chance(0.5)
	dome := func(from, to float64) path {
		p := at(from*wide, 0.05)
		p = p.curve(from*wide, -0.45, from*wide*0.55, top, 0, top)
		p = p.curve(to*wide*0.55, top, to*wide, -0.45, to*wide, 0.05)
		mid := (from + to) / 2 * wide
		return p.curve(mid, -0.18, mid, -0.18, from*wide, 0.05)
	}
	for i := range n {
		from, to := 2*float64(i)/float64(n)-1, 2*float64(i+1)/float64(n)-1
		panel := c
		if striped && i%2 == 1 {
			panel = other
		} else if !striped {
			panel = c.scale(1 - 0.1*float64(i%2))
		}
		d.shape(dome(from, to), panel)
	}
	d.line(at(0, top).line(0, top-0.1), 0.06, handle)
}

func drawCup(d *drawing) {
	c := d.bright()
	if d.chance(0.4) {
		c = d.pale()
	}
	top, bottom, lip := d.between(0.5, 0.65), d.between(0.36, 0.55), -0.45
	side := 1.0
	d.stroke(at(side*top*0.9, -0.2).curve(side*(top+0.5), -0.35, side*(top+0.4), 0.5, side*bottom*0.9, 0.45), 0.13, c)
	d.shape(at(-top, lip).line(top, lip).curve(top, 0.4, bottom, 0.6, bottom, 0.75).
		curve(bottom/2, 0.9, -bottom/2, 0.9, -bottom, 0.75).curve(-bottom, 0.6, -top, 0.4, -top, lip), c)
	switch d.rng.IntN(4) {
	case 0:
		d.mark(rectangle(-top*0.93, 0, top*0.93, 0.2), d.bright())
	case 1:
		for _, x := range []float64{-0.3, 0, 0.3} {
			d.mark(ellipse(x, 0.15, 0.1, 0.1), d.bright())
		}
	case 2:
		heart := d.bright()
		d.mark(at(0, 0.4).curve(-0.45, 0.05, -0.2, -0.2, 0, 0).curve(0.2, -0.2, 0.45, 0.05, 0, 0.4), heart)
	}
	d.shape(ellipse(0, lip, top, 0.15), c.mix(rgb{1, 1, 1}, 0.3))
	d.mark(ellipse(0, lip+0.02, top*0.84, 0.1), pick(d.rng, rgb{0.25, 0.13, 0.06}, rgb{0.5, 0.3, 0.12}, rgb{0.9, 0.85, 0.75}))
	if d.chance(0.5) {
		for _, x := range []float64{-0.2, 0.15} {
			d.line(at(x, -0.62).curve(x-0.12, -0.75, x+0.12, -0.85, x, -0.98), 0.05, rgb{0.92, 0.92, 0.92})
		}
	}
}

func drawCar(d *drawing) {
	c := d.bright()
	roof, front := d.between(-0.55, -0.35), d.between(-0.45, -0.25)
	rear := d.between(0.45, 0.75)
	d.shape(at(front-0.15, 0.05).line(front+0.08, roof).line(rear-0.15, roof).line(rear+0.08, 0.05), c.mix(rgb{1, 1, 1}, 0.15))
	glass := rgb{0.65, 0.82, 0.92}
	mid := (front + rear) / 2
	d.mark(at(front-0.02, 0.0).line(front+0.13, roof+0.1, mid-0.04, roof+0.1, mid-0.04, 0.0), glass)
	d.mark(at(mid+0.04, 0.0).line(mid+0.04, roof+0.1, rear-0.2, roof+0.1, rear-0.06, 0.0), glass)
	d.shape(at(-0.97, 0.42).curve(-0.98, 0.15, -0.9, 0.05, -0.6, 0).line(0.85, 0).curve(0.97, 0.02, 0.97, 0.2, 0.97, 0.42), c)
	d.mark(ellipse(-0.88, 0.2, 0.07, 0.07), rgb{1, 0.95, 0.6})
	d.mark(rectangle(0.88, 0.12, 0.96, 0.24), rgb{0.9, 0.1, 0.1})
	r := d.between(0.19, 0.26)
	for _, x := range []float64{-0.52, 0.52} {
		d.shape(ellipse(x, 0.42, r, r), rgb{0.12, 0.12, 0.14})
		d.mark(ellipse(x, 0.42, r*0.5, r*0.5), rgb{0.75, 0.75, 0.78})
	}
}

func drawButterfly(d *drawing) {
	c, spots := d.bright(), d.bright()
	upper, lower := d.between(0.7, 1), d.between(0.5, 0.8)
	for _, s := range []float64{-1, 1} {
		d.shape(at(s*0.05, 0.05).curve(s*0.6*lower, 0, s*1.1*lower, 0.5, s*0.6*lower, 0.85).curve(s*0.3, 0.95, s*0.1, 0.6, s*0.05, 0.05), c.scale(0.85))
		d.shape(at(s*0.05, 0).curve(s*0.2, -0.6, s*0.7*upper, -1.1*upper, s*0.95, -0.75*upper).curve(s*1.1, -0.3, s*0.7, 0.2, s*0.05, 0.1), c)
		d.mark(ellipse(s*0.62, -0.42*upper, 0.16, 0.14), spots)
		d.mark(ellipse(s*0.42, 0.48*lower+0.1, 0.11, 0.12), spots)
		if d.chance(0.5) {
			d.mark(ellipse(s*0.62, -0.42*upper, 0.08, 0.07), rgb{0.1, 0.1, 0.1})
		}
		d.line(at(0, -0.3).curve(s*0.05, -0.6, s*0.15, -0.75, s*0.25, -0.82), 0.05, rgb{0.15, 0.12, 0.1})
	}
	d.shape(ellipse(0, 0.1, 0.09, 0.48), hsv(0.08, 0.5, d.between(0.15, 0.35)))
}

func drawFlower(d *drawing) {
	green := d.leaf()
	bend := d.between(-0.25, 0.25)
	d.stroke(at(0, -0.25).curve(bend, 0.2, bend, 0.5, 0, 0.97), 0.09, green)
	for _, s := range []float64{-1, 1} {
		if d.chance(0.75) {
			y := d.between(0.45, 0.7)
			d.shape(at(bend*0.6, y).curve(s*0.2, y-0.3, s*0.5, y-0.3, s*0.6, y-0.12).curve(s*0.4, y+0.1, s*0.2, y+0.1, bend*0.6, y), green)
		}
	}
	petal, n := d.bright(), 5+d.rng.IntN(4)
	if d.chance(0.25) {
		petal = d.pale()
	}
	long, wide := d.between(0.26, 0.34), d.between(0.14, 0.22)
	turn := d.between(0, 1)
	for i := range n {
		a := 2 * math.Pi * (float64(i) + turn) / float64(n)
		d.within(place(0, -0.38, 1, 1, a)).shape(ellipse(long, 0, long, wide), petal)
	}
	heart := pick(d.rng, rgb{1, 0.82, 0.15}, rgb{0.35, 0.2, 0.1}, rgb{1, 0.6, 0.1})
	d.shape(ellipse(0, -0.38, 0.18, 0.18), heart)
}

func drawKey(d *drawing) {
	c := pick(d.rng, hsv(0.13, 0.65, 0.85), hsv(0.6, 0.06, 0.75), hsv(0.08, 0.55, 0.6), d.bright())
	r, w := d.between(0.26, 0.34), d.between(0.12, 0.16)
	d.stroke(arc(-0.62, 0, r, r, 0, 2*math.Pi), w, c)
	if d.chance(0.3) {
		d.stroke(arc(-0.62, 0, r*0.4, r*0.4, 0, 2*math.Pi), w*0.7, c)
	}
	d.stroke(at(-0.62+r, 0).line(0.92, 0), w, c)
	teeth := 2 + d.rng.IntN(2)
	for i := range teeth {
		x := 0.88 - 0.22*float64(i)
		d.stroke(at(x, 0).line(x, d.between(0.22, 0.4)), w*0.9, c)
	}
}

func drawBalloon(d *drawing) {
	c, other := d.bright(), d.bright()
	if d.chance(0.4) {
		other = d.pale()
	}
	wide := d.between(0.6, 0.72)
	for _, s := range []float64{-1, 1} {
		d.line(at(s*wide*0.45, 0.3).line(s*0.16, 0.68), 0.035, rgb{0.3, 0.22, 0.15})
	}
	d.shape(rectangle(-0.17, 0.66, 0.17, 0.95), d.wood())
	gores := []float64{1, 0.62, 0.24}
	for i, g := range gores {
		w, col := wide*g, c
		if i%2 == 1 {
			col = other
		}
		d.shape(at(-w*0.5, 0.32).curve(-w*0.9, 0, -w*1.33, -0.95, 0, -0.97).curve(w*1.33, -0.95, w*0.9, 0, w*0.5, 0.32), col)
	}
}

func drawBird(d *drawing) {
	c := d.bright()
	wing := c.scale(d.between(0.6, 0.85))
	leg := rgb{0.85, 0.5, 0.1}
	for _, x := range []float64{-0.12, 0.1} {
		d.line(at(x, 0.5).line(x, 0.9).line(x-0.12, 0.95), 0.05, leg)
	}
	lift := d.between(-0.25, 0.2)
	d.shape(at(0.3, 0.1).line(0.95, lift-0.12, 0.98, lift+0.15, 0.4, 0.42), wing)
	d.shape(at(-0.45, -0.35).line(-0.82, -0.3, -0.45, -0.18), rgb{0.95, 0.6, 0.1})
	d.shape(at(-0.5, -0.1).curve(-0.55, 0.4, -0.3, 0.68, 0.05, 0.62).curve(0.4, 0.55, 0.55, 0.3, 0.5, 0.12).
		curve(0.2, 0.05, 0.05, -0.15, -0.1, -0.3), c)
	head := d.between(0.24, 0.31)
	d.shape(ellipse(-0.32, -0.32, head, head), c)
	if d.chance(0.6) {
		d.mark(at(-0.42, 0.25).curve(-0.35, 0.65, 0.0, 0.65, 0.1, 0.5).curve(-0.1, 0.45, -0.25, 0.3, -0.42, 0.25), c.mix(rgb{1, 1, 0.9}, 0.7))
	}
	d.shape(at(-0.15, 0.0).curve(0.05, -0.1, 0.45, 0.1, 0.55, 0.38).curve(0.2, 0.48, -0.1, 0.4, -0.15, 0.0), wing)
	d.mark(ellipse(-0.4, -0.37, 0.075, 0.075), rgb{1, 1, 1})
	d.mark(ellipse(-0.41, -0.37, 0.045, 0.045), rgb{0.05, 0.05, 0.05})
}
