// Package winnow holds the domain of an application that labels images when the
// pool also holds classes nobody asked for: projects and their classes, images,
// rounds, query items, label events, leases and people. It has types, their
// validation and error codes, imports only the standard library, and does no I/O.
package winnow

import "time"

// Identifiers are opaque positive numbers, given by the database.
type (
	ProjectID int64
	ImageID   int64
	RoundID   int64
	ItemID    int64
	EventID   int64
	UserID    int64
	ImportID  int64
	TokenID   int64
	InviteID  int64
)

// Page is a window of a list in keyset order: at most Limit rows after the
// opaque cursor After (empty for the first page).
type Page struct {
	After string
	Limit int
}

// Clock tells the time; tests replace it.
type Clock func() time.Time
