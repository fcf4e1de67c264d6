// Package dbtest gives each test a migrated Postgres database of its own, and things
// to put into it. The server is private to the test run, started at the first use and
// gone when the process is, however it ends; the databases are copies of one template.
//
// WINNOW_TEST_DATABASE_URL, or else DATABASE_URL, names a server to use instead; its
// user must be allowed to create databases. Nothing but databases named winnow_test_*
// is touched there.
package dbtest

import (
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"testing"
	"time"

	"winnow"
	"winnow/db"
)

// New returns a store on a fresh, migrated database that lives as long as the test.
func New(t testing.TB, o db.Options) *db.Store {
	t.Helper()
	s, err := db.Open(t.Context(), URL(t), o)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(s.Close)
	return s
}

// URL returns the address of a fresh, migrated database that lives as long as the
// test.
func URL(t testing.TB) string {
	t.Helper()
	return create(t, template)
}

// EmptyURL is URL without the migrations.
func EmptyURL(t testing.TB) string {
	t.Helper()
	return create(t, func(context.Context, *server) (string, error) { return "template0", nil })
}

func create(t testing.TB, from func(context.Context, *server) (string, error)) string {
	t.Helper()
	ctx := t.Context()
	srv, err := theServer()
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	source, err := from(ctx, srv)
	if err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	// The time in the name tells a later run that a crashed one left it behind.
	name := fmt.Sprintf("%s%d_%s", databasePrefix, time.Now().Unix(), strings.ToLower(rand.Text()[:12]))
	if err := srv.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+source); err != nil {
		t.Fatalf("dbtest: %v", err)
	}
	t.Cleanup(func() {
		if err := srv.exec(context.WithoutCancel(ctx), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Errorf("dbtest: %v", err)
		}
	})
	return srv.database(name)
}

// Clock is a clock that stands still until it is moved. The zero value is not ready;
// see NewClock.
type Clock struct{ now chan time.Time }

// NewClock returns a clock that shows a fixed moment. It is safe for concurrent use.
func NewClock() *Clock {
	c := &Clock{now: make(chan time.Time, 1)}
	c.now <- time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	return c
}

// Now is a winnow.Clock.
func (c *Clock) Now() time.Time {
	now := <-c.now
	c.now <- now
	return now
}

// Advance moves the clock.
func (c *Clock) Advance(d time.Duration) { c.now <- (<-c.now).Add(d) }

var _ winnow.Clock = (*Clock)(nil).Now
