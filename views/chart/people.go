package chart

import (
	"fmt"
	"html"
	"strconv"
	"strings"
)

// Standing is one person's share with its interval, and in words with its base.
type Standing struct {
	Name      string
	Value     float64
	Low, High float64
	Words     string
}

// Rows of Standings and the room for names, in the SVG's units.
const (
	rowHeight = 28.0
	nameRoom  = 132.0
	maxName   = 15 // letters
)

// Standings draws a share a person, one below the other on one scale, each with its
// interval: who overlaps cannot be told apart.
func Standings(what string, rows []Standing) string {
	var said []string
	for _, r := range rows {
		said = append(said, r.Name+" "+r.Words)
	}
	h := rowHeight*float64(len(rows)) + 28
	c := &canvas{}
	c.add(`<svg viewBox="0 0 %s %s" role="img" aria-label="%s">`, f(width), f(h), html.EscapeString(what+": "+orNone(strings.Join(said, ", "))))
	x := func(v float64) float64 { return nameRoom + v*(width-nameRoom-right) }
	bottom := rowHeight*float64(len(rows)) + 4
	for _, v := range []float64{0, .5, 1} {
		c.add(`<line class="gridline" x1="%s" x2="%s" y1="0" y2="%s"/>`, f(x(v)), f(x(v)), f(bottom))
		c.text("", x(v), bottom+18, "middle", f(100*v)+"%")
	}
	for i, r := range rows {
		y := rowHeight*float64(i) + rowHeight/2
		c.text("", nameRoom-10, y+4, "end", clip(r.Name, maxName))
		c.add(`<line class="whisker" x1="%s" x2="%s" y1="%s" y2="%s"/>`, f(x(r.Low)), f(x(r.High)), f(y), f(y))
		c.add(`<circle class="dot" cx="%s" cy="%s" r="4.5"/>`, f(x(r.Value)), f(y))
		c.text("", width-right+12, y+4, "start", r.Words)
	}
	return c.done()
}

// Day is what one day has of something. Name is as short as the axis needs it.
type Day struct {
	Name string
	N    int
}

// Days draws a bar a day, the newest on the right.
func Days(what string, days []Day) string {
	most := 1
	var said []string
	for i, d := range days {
		most = max(most, d.N)
		if i > 0 && i < len(days)-1 && len(days) > manyPlaces {
			continue
		}
		said = append(said, fmt.Sprintf("%s %d", d.Name, d.N))
	}
	ticks := niceTicks(float64(most))
	c := newCanvas(what+" by day: "+orNone(strings.Join(said, ", ")), 0, ticks[len(ticks)-1], len(days))
	c.grid(ticks, f)
	slot := (width - left - right) / float64(max(len(days), 1))
	bar := min(slot*0.7, 48)
	step := (len(days) + 6) / 7
	for i, d := range days {
		at := left + slot*(float64(i)+.5)
		if d.N > 0 {
			c.add(`<rect class="bar-known" x="%s" y="%s" width="%s" height="%s"><title>%s: %d</title></rect>`,
				f(at-bar/2), f(c.y(float64(d.N))), f(bar), f(c.y(0)-c.y(float64(d.N))), html.EscapeString(d.Name), d.N)
		}
		// Counted from the newest, which always has its name.
		if (len(days)-1-i)%step == 0 {
			c.text("", at, height-bottom+16, "middle", d.Name)
		}
	}
	if len(days) > 0 {
		last := days[len(days)-1]
		c.labels(width-right+10, []label{{c.y(float64(last.N)), []string{strconv.Itoa(last.N), "on " + last.Name}, "strong"}})
	}
	return c.done()
}

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

func orNone(s string) string {
	if s == "" {
		return "none yet"
	}
	return s
}
