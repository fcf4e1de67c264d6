package db

import (
	"math"
	"strconv"

	"winnow"
)

// Lists give at most maxPage rows at a time, defaultPage if not told.
const (
	defaultPage = 50
	maxPage     = 1000
	lastKey     = math.MaxInt64 // where a list that runs backwards starts
	lastNumber  = math.MaxInt32 // the same, for 32-bit columns
)

// window is a page in the terms of a query: the key after which it starts, and
// how many rows to fetch, which is one more than the page holds so that the last
// page is known as such.
type window struct {
	after int64
	limit int
}

// newWindow reads a page whose list is ordered by a number; start is the key of
// the first page.
func newWindow(p winnow.Page, start int64) (window, error) {
	w := window{after: start, limit: p.Limit}
	if w.limit <= 0 {
		w.limit = defaultPage
	}
	w.limit = min(w.limit, maxPage)
	if p.After != "" {
		n, err := strconv.ParseInt(p.After, 10, 64)
		if err != nil {
			return w, winnow.Invalid("after", "This page does not exist; start again from the first one.")
		}
		w.after = n
	}
	return w, nil
}

// cut drops the extra row and returns the cursor of the next page, empty on the
// last one.
func cut[T any](w window, rows []T, key func(T) int64) ([]T, string) {
	if len(rows) <= w.limit {
		return rows, ""
	}
	rows = rows[:w.limit]
	return rows, cursor(key(rows[w.limit-1]))
}

// cursor is the page behind a key.
func cursor(key int64) string { return strconv.FormatInt(key, 10) }
