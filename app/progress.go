package app

import (
	"io"
	"os"
	"strconv"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// bar is a progress bar with the time left. It shows nothing where nobody watches.
type bar struct {
	w     io.Writer // nil where nobody watches
	title string
	bar   *progressbar.ProgressBar
}

// newBar returns a bar on w, silent unless w is a terminal.
func newBar(w io.Writer, title string) *bar {
	if f, ok := w.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		w = nil
	}
	return &bar{w: w, title: title}
}

func (b *bar) show(done, total int64) {
	if b.w == nil || total == 0 {
		return
	}
	if b.bar == nil {
		b.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(b.w),
			progressbar.OptionSetDescription(b.title),
			progressbar.OptionSetWidth(30),
			progressbar.OptionShowCount(),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = b.bar.Set64(done)
}

// clear takes the bar off the terminal, so that the next line stands alone.
func (b *bar) clear() {
	if b.bar != nil {
		_ = b.bar.Clear()
	}
}

// count writes n with its noun, as in "1,234 images".
func count(n int64, one, many string) string {
	noun := many
	if n == 1 {
		noun = one
	}
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits + " " + noun
}
