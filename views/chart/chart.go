// Package chart draws Winnow's charts as SVG. Each says one thing: lines and bars
// are labeled directly, targets are lines, intervals are bands. Colours come from
// the style sheet by class, so that a chart follows light and dark, and prints.
package chart

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Size and margins of every chart, in the SVG's own units. The right margin holds
// the direct labels.
const (
	width  = 480.0
	height = 248.0
	left   = 40.0
	right  = 112.0
	top    = 12.0
	bottom = 36.0
)

// manyPlaces is how many rounds stop being told apart one by one: beyond it there
// are no dots, and the text beside the chart tells its ends only.
const manyPlaces = 60

// Point is a figure of one round. Low and High bound its interval when Band is set.
type Point struct {
	Round     int
	Value     float64
	Band      bool
	Low, High float64
}

// canvas collects the SVG of one chart, with its vertical scale.
type canvas struct {
	strings.Builder
	low, high float64 // of the values
	n         int     // places along the horizontal axis
}

func newCanvas(label string, low, high float64, n int) *canvas {
	c := &canvas{low: low, high: high, n: n}
	c.add(`<svg viewBox="0 0 %s %s" role="img" aria-label="%s">`, f(width), f(height), html.EscapeString(label))
	return c
}

func (c *canvas) add(format string, args ...any) { fmt.Fprintf(c, format, args...) }

func (c *canvas) done() string {
	c.add(`</svg>`)
	return c.String()
}

// x is the position of the i-th place; a single place stands in the middle.
func (c *canvas) x(i int) float64 {
	span := width - left - right
	if c.n <= 1 {
		return left + span/2
	}
	return left + span*float64(i)/float64(c.n-1)
}

func (c *canvas) y(v float64) float64 {
	return height - bottom - (v-c.low)/(c.high-c.low)*(height-top-bottom)
}

func (c *canvas) text(class string, x, y float64, anchor, s string) {
	c.add(`<text class="%s" x="%s" y="%s" text-anchor="%s">%s</text>`, class, f(x), f(y), anchor, html.EscapeString(s))
}

// grid draws the horizontal lines with their values.
func (c *canvas) grid(ticks []float64, format func(float64) string) {
	for i, v := range ticks {
		class := "gridline"
		if i == 0 {
			class = "axis"
		}
		c.add(`<line class="%s" x1="%s" x2="%s" y1="%s" y2="%s"/>`, class, f(left), f(width-right), f(c.y(v)), f(c.y(v)))
		c.text("", left-6, c.y(v)+4, "end", format(v))
	}
}

// places writes the numbers under the horizontal axis, as many as there is room
// for, and what they are.
func (c *canvas) places(name string, at func(i int) float64, number func(i int) int) {
	step := (c.n + 11) / 12
	for i := 0; i < c.n; i += step {
		c.text("", at(i), height-bottom+16, "middle", strconv.Itoa(number(i)))
	}
	c.text("", width-right+10, height-bottom+16, "start", name)
}

// line joins the points, and marks them where there are few.
func (c *canvas) line(class string, values []float64) {
	var path strings.Builder
	for i, v := range values {
		op := "L"
		if i == 0 {
			op = "M"
		}
		fmt.Fprintf(&path, "%s%s %s", op, f(c.x(i)), f(c.y(v)))
	}
	c.add(`<path class="line %s" d="%s"/>`, class, path.String())
}

func (c *canvas) dots(values []float64) {
	if len(values) > manyPlaces {
		return
	}
	for i, v := range values {
		c.add(`<circle class="dot" cx="%s" cy="%s" r="4.5"/>`, f(c.x(i)), f(c.y(v)))
	}
}

// label is a direct label in the right margin.
type label struct {
	y     float64
	lines []string
	class string
}

// labels writes the labels at their heights, pushed apart where they would overlap.
func (c *canvas) labels(x float64, labels []label) {
	slices.SortStableFunc(labels, func(a, b label) int { return int(math.Copysign(1, a.y-b.y)) })
	const lineHeight = 15.0
	free := top
	for _, l := range labels {
		need := lineHeight * float64(len(l.lines))
		y := max(l.y-need/2, free)
		free = y + need
		for i, s := range l.lines {
			c.text(l.class, x, y+lineHeight*float64(i)+11, "start", s)
		}
	}
}

// Precision draws query precision by round, its interval as a band, against the
// target, and beside it what the random audit slice gives in the rounds that have one.
func Precision(points, audit []Point, target float64) string {
	said := "Query precision by round against the target " + share(target) + ": " + list(points, share)
	if len(audit) > 0 {
		said += ". Random audit slice: " + list(audit, share)
	}
	c := newCanvas(said, 0, 1, len(points))
	c.grid([]float64{0, .25, .5, .75, 1}, share)
	c.band(points)
	c.add(`<line class="target" x1="%s" x2="%s" y1="%s" y2="%s"/>`, f(left), f(width-right), f(c.y(target)), f(c.y(target)))
	labels := []label{{c.y(target), []string{"target " + share(target)}, ""}}
	if len(points) > 0 {
		c.line("", values(points))
		c.dots(values(points))
		last := points[len(points)-1]
		labels = append(labels, label{c.y(last.Value), []string{"now " + share(last.Value)}, "strong"})
	}
	if c.audit(points, audit) {
		last := audit[len(audit)-1]
		labels = append(labels, label{c.y(last.Value), []string{"audit " + share(last.Value)}, ""})
	}
	c.labels(width-right+10, labels)
	c.places("round", c.x, func(i int) int { return points[i].Round })
	return c.done()
}

// audit draws the shares of the audit slices over the rounds of points: hollow, each
// with its own interval, for these bases are small and no trend is to be read into them.
func (c *canvas) audit(points, audit []Point) bool {
	drawn := false
	for _, a := range audit {
		i := slices.IndexFunc(points, func(p Point) bool { return p.Round == a.Round })
		if i < 0 {
			continue
		}
		drawn = true
		if len(points) > manyPlaces {
			c.add(`<circle class="speck" cx="%s" cy="%s" r="1.5"/>`, f(c.x(i)), f(c.y(a.Value)))
			continue
		}
		if a.Band {
			c.add(`<line class="whisker second" x1="%s" x2="%s" y1="%s" y2="%s"/>`, f(c.x(i)), f(c.x(i)), f(c.y(a.Low)), f(c.y(a.High)))
		}
		c.add(`<circle class="hollow" cx="%s" cy="%s" r="4"/>`, f(c.x(i)), f(c.y(a.Value)))
	}
	return drawn
}

// Accuracy draws the classifier's test accuracy by round.
func Accuracy(points []Point) string {
	low, high, ticks := percentScale(points)
	c := newCanvas("Test accuracy by round: "+list(points, percent), low, high, len(points))
	c.grid(ticks, func(v float64) string { return f(100*v) + "%" })
	c.band(points)
	if len(points) > 0 {
		c.line("", values(points))
		c.dots(values(points))
		last := points[len(points)-1]
		c.labels(width-right+10, []label{{c.y(last.Value), []string{"now", percent(last.Value)}, "strong"}})
	}
	c.places("round", c.x, func(i int) int { return points[i].Round })
	return c.done()
}

// band draws the intervals: a band between rounds, a whisker where there is one
// round only.
func (c *canvas) band(points []Point) {
	clip := func(v float64) float64 { return min(max(v, c.low), c.high) }
	if len(points) == 1 && points[0].Band {
		p := points[0]
		c.add(`<line class="whisker" x1="%s" x2="%s" y1="%s" y2="%s"/>`, f(c.x(0)), f(c.x(0)), f(c.y(clip(p.Low))), f(c.y(clip(p.High))))
		return
	}
	var up, down []string
	for i, p := range points {
		if !p.Band {
			continue
		}
		up = append(up, f(c.x(i))+","+f(c.y(clip(p.High))))
		down = append(down, f(c.x(i))+","+f(c.y(clip(p.Low))))
	}
	if len(up) > 1 {
		slices.Reverse(down)
		c.add(`<polygon class="band" points="%s %s"/>`, strings.Join(up, " "), strings.Join(down, " "))
	}
}

// Outcome is what became of one round's images.
type Outcome struct {
	Round, Known, Unknown, Skipped, Unreadable int
}

func (o Outcome) total() int { return o.Known + o.Unknown + o.Skipped + o.Unreadable }

// Outcomes draws a bar a round: knowns filled, unknowns hatched, skipped and
// unreadable outlined, so that they stay apart without colour.
func Outcomes(rounds []Outcome) string {
	most := 1
	var said []string
	for i, o := range rounds {
		most = max(most, o.total())
		if i > 0 && i < len(rounds)-1 && len(rounds) > manyPlaces {
			continue
		}
		said = append(said, fmt.Sprintf("round %d: %d known, %d unknown, %d skipped, %d unreadable", o.Round, o.Known, o.Unknown, o.Skipped, o.Unreadable))
	}
	ticks := niceTicks(float64(most))
	c := newCanvas("Outcomes by round: "+strings.Join(said, "; "), 0, ticks[len(ticks)-1], len(rounds))
	c.add(`<defs><pattern id="unknown-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="bar-unknown" width="6" height="6"/><line class="hatch" x1="0" x2="0" y1="0" y2="6"/></pattern></defs>`)
	c.grid(ticks, f)
	slot := (width - left - right) / float64(max(len(rounds), 1))
	bar := min(slot*0.7, 48)
	at := func(i int) float64 { return left + slot*(float64(i)+.5) }
	var labels []label
	for i, o := range rounds {
		base := 0
		for _, part := range []struct {
			n           int
			name, paint string
		}{
			{o.Known, "known", `class="bar-known"`},
			{o.Unknown, "unknown", `fill="url(#unknown-hatch)"`},
			{o.Skipped, "skipped", `class="bar-skipped"`},
			{o.Unreadable, "unreadable", `class="bar-skipped"`},
		} {
			if part.n == 0 {
				continue
			}
			y1, y0 := c.y(float64(base+part.n)), c.y(float64(base))
			c.add(`<rect %s x="%s" y="%s" width="%s" height="%s"><title>Round %d: %d %s</title></rect>`,
				part.paint, f(at(i)-bar/2), f(y1), f(bar), f(y0-y1), o.Round, part.n, part.name)
			base += part.n
			if i == len(rounds)-1 {
				labels = append(labels, label{(y0 + y1) / 2, []string{strconv.Itoa(part.n) + " " + part.name}, ""})
			}
		}
	}
	c.labels(width-right+8, labels)
	c.places("round", at, func(i int) int { return rounds[i].Round })
	return c.done()
}

// Curve is a named series by epoch, from the first.
type Curve struct {
	Name   string
	Values []float64
}

// Loss draws training losses by epoch. Values that are not finite are left out.
func Loss(curves []Curve) string {
	longest, most := 0, 0.0
	for _, k := range curves {
		longest = max(longest, len(k.Values))
		for _, v := range k.Values {
			if finite(v) {
				most = max(most, v)
			}
		}
	}
	if most == 0 {
		most = 1
	}
	ticks := niceTicks(most)
	c := newCanvas("Training loss by epoch", 0, ticks[len(ticks)-1], max(longest, 2))
	c.grid(ticks, f)
	var labels []label
	for i, k := range curves {
		finites := make([]float64, 0, len(k.Values))
		for _, v := range k.Values {
			if finite(v) {
				finites = append(finites, v)
			}
		}
		if len(finites) == 0 {
			continue
		}
		class := ""
		if i%2 == 1 {
			class = "second"
		}
		c.line(class, finites)
		last := finites[len(finites)-1]
		labels = append(labels, label{c.y(last), []string{k.Name, strconv.FormatFloat(last, 'f', 2, 64)}, ""})
	}
	c.labels(width-right+10, labels)
	c.text("", left, height-bottom+16, "start", "epoch 1")
	c.text("", width-right, height-bottom+16, "end", strconv.Itoa(max(longest, 2)))
	return c.done()
}

// Part is a share of a bar.
type Part struct {
	N     int64
	Class string // of the style sheet; empty for the hatch of unknown
	Name  string
}

// Bar draws parts of a whole as one bar.
func Bar(parts []Part) string {
	var total int64
	var said []string
	for _, p := range parts {
		total += p.N
		said = append(said, fmt.Sprintf("%d %s", p.N, p.Name))
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="poolbar" viewBox="0 0 1000 16" preserveAspectRatio="none" role="img" aria-label="%s">`, html.EscapeString(strings.Join(said, ", ")))
	x := 0.0
	for _, p := range parts {
		if p.N == 0 || total == 0 {
			continue
		}
		w := 1000 * float64(p.N) / float64(total)
		fmt.Fprintf(&b, `<rect class="%s" x="%s" width="%s" height="16"/>`, p.Class, f(x), f(w))
		x += w
	}
	b.WriteString(`</svg>`)
	return b.String()
}

// Meter draws a value between 0 and 1 as a thin bar.
func Meter(v float64) string {
	v = min(max(v, 0), 1)
	return fmt.Sprintf(`<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true"><rect class="track" width="100" height="6"/><rect class="fill" width="%s" height="6"/></svg>`, f(100*v))
}

// Wilson returns the 95% interval of a share of k in n.
func Wilson(k, n int) (low, high float64) {
	if n == 0 {
		return 0, 1
	}
	const z = 1.959963984540054
	p, m := float64(k)/float64(n), float64(n)
	centre := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return max(0, centre-half), min(1, centre+half)
}

func values(points []Point) []float64 {
	out := make([]float64, len(points))
	for i, p := range points {
		out[i] = p.Value
	}
	return out
}

func list(points []Point, format func(float64) string) string {
	if len(points) > manyPlaces {
		points = []Point{points[0], points[len(points)-1]}
	}
	parts := make([]string, len(points))
	for i, p := range points {
		parts[i] = fmt.Sprintf("round %d %s", p.Round, format(p.Value))
	}
	return orNone(strings.Join(parts, ", "))
}

// percentScale chooses a range of whole tens around the points.
func percentScale(points []Point) (low, high float64, ticks []float64) {
	lowest, highest := 1.0, 0.0
	for _, p := range points {
		lowest, highest = min(lowest, p.Value), max(highest, p.Value)
	}
	if len(points) == 0 {
		lowest, highest = 0, 1
	}
	from := max(0, int(math.Floor(lowest*10-.5)))
	to := min(10, int(math.Ceil(highest*10+.5)))
	if to-from < 2 {
		from = max(0, to-2)
	}
	step := 1
	if to-from > 5 {
		step = 2
		from -= from % 2
		to = min(10, to+to%2)
	}
	for t := from; t <= to; t += step {
		ticks = append(ticks, float64(t)/10)
	}
	return ticks[0], ticks[len(ticks)-1], ticks
}

// niceTicks returns round values from 0 to at least most.
func niceTicks(most float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(most)))
	for _, m := range []float64{.2, .25, .5, 1} {
		if most/(step*m) <= 5 {
			step *= m
			break
		}
	}
	ticks := []float64{0}
	for i := 1; ticks[len(ticks)-1] < most; i++ {
		ticks = append(ticks, float64(i)*step)
	}
	return ticks
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// f writes a coordinate as short as two decimals allow.
func f(v float64) string {
	s := strconv.FormatFloat(v, 'f', 2, 64)
	s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	if s == "-0" {
		return "0"
	}
	return s
}

// share writes a share of one as the field does: .71.
func share(v float64) string { return strings.TrimPrefix(strconv.FormatFloat(v, 'f', 2, 64), "0") }

func percent(v float64) string { return strconv.FormatFloat(100*v, 'f', 1, 64) + "%" }
