package jobs

import (
	"fmt"
	"sync"
	"time"
)

// watch tells a computation that hangs from one that is slow: by the longest time it
// took between two signs of life before.
type watch struct {
	mu      sync.Mutex
	least   time.Duration // that a silence must last
	last    time.Time
	longest time.Duration
}

// patience is how many times as long as ever before a silence must last.
const patience = 10

func newWatch(least time.Duration) *watch { return &watch{least: least, last: time.Now()} }

// touch is a sign of life.
func (w *watch) touch() {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	w.longest = max(w.longest, now.Sub(w.last))
	w.last = now
}

// err is errHung, with how long it has been silent, once that is too long.
func (w *watch) err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	silence := time.Since(w.last)
	if silence < max(w.least, patience*w.longest) {
		return nil
	}
	return fmt.Errorf("%w: no step has ended for %v", errHung, silence.Round(time.Second))
}
