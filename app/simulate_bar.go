package app

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// stageBar shows how far an experiment is, when it ends and what it is at. Unlike
// bar it is told the time left: rounds grow, and a resumed experiment begins part
// way, so the rate so far would mislead. It shows nothing but on a terminal.
type stageBar struct {
	w     io.Writer
	shown time.Time
}

// barInterval keeps the bar from flickering.
const barInterval = 100 * time.Millisecond

func newStageBar(w io.Writer) *stageBar {
	if !isTerminal(w) {
		w = nil
	}
	return &stageBar{w: w}
}

// show draws the bar, with the seconds left when they are known.
func (b *stageBar) show(fraction, secondsLeft float64, what string) {
	if b.w == nil || time.Since(b.shown) < barInterval {
		return
	}
	b.shown = time.Now()
	const width = 24
	full := int(fraction * width)
	left := ""
	if secondsLeft > 0 {
		left = "  " + timeLeft(secondsLeft)
	}
	fmt.Fprintf(b.w, "\r\x1b[K%s%s %3.0f%%%s  %s", strings.Repeat("█", full), strings.Repeat("░", width-full), 100*fraction, left, what)
}

// clear takes the bar away.
func (b *stageBar) clear() {
	if b.w != nil && !b.shown.IsZero() {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.shown = time.Time{}
	}
}

// timeLeft words a time as people do: "40 s left", "3 min left", "2 h 10 min left".
func timeLeft(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s left", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%d min left", int(d.Minutes()+0.5))
	default:
		return fmt.Sprintf("%d h %02d min left", int(d.Hours()), int(d.Minutes())%60)
	}
}
