package chaos

import (
	"slices"
	"sync"
)

// outbox holds what a person's browser has not got settled yet. It is what the
// browser keeps on disk: tabs come and go, it stays.
type outbox struct {
	mu      sync.Mutex
	entries []kept
}

// kept is an entry with the tab that sends it.
type kept struct {
	*entry
	tab int
}

func (o *outbox) add(e *entry, tab int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries = append(o.entries, kept{e, tab})
}

// first is what the tab sends next, nil if nothing is left.
func (o *outbox) first(tab int) *entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.entries {
		if k.tab == tab {
			return k.entry
		}
	}
	return nil
}

func (o *outbox) remove(e *entry) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.entries = slices.DeleteFunc(o.entries, func(k kept) bool { return k.entry == e })
}

// adopt gives a tab the entries of one that is no more, and returns the items that
// are answered by them.
func (o *outbox) adopt(from, to int) map[int64]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	answered := make(map[int64]bool)
	for i, k := range o.entries {
		if k.tab != from {
			continue
		}
		o.entries[i].tab = to
		if answered[k.item] = true; k.undo {
			delete(answered, k.item) // it comes back with a claim
		}
	}
	return answered
}

// items lists the items of the tab's entries.
func (o *outbox) items(tab int) (items []int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.entries {
		if k.tab == tab {
			items = append(items, k.item)
		}
	}
	return items
}

// undoOf is the undo that waits to take a decision back, nil if there is none.
func (o *outbox) undoOf(key string) *entry {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, k := range o.entries {
		if k.undo && k.of == key {
			return k.entry
		}
	}
	return nil
}
