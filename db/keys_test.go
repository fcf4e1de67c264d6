package db_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db/dbtest"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	ann, bob := dbtest.User(t, b.Store, "ann"), dbtest.User(t, b.Store, "bob")
	keys := func(of winnow.User, want winnow.Keys) {
		t.Helper()
		got, err := b.Keys(ctx, of.ID)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("keys of %s: %v %s", of.Name, err, diff)
		}
	}
	keys(ann, winnow.Keys{})
	// What is a default is not kept: it may change.
	if err := b.SetKeys(ctx, ann.ID, winnow.Keys{"skip": "KeyQ", "undo": "Backspace"}); err != nil {
		t.Fatal(err)
	}
	keys(ann, winnow.Keys{"skip": "KeyQ"})
	keys(bob, winnow.Keys{})

	wantCode(t, b.SetKeys(ctx, ann.ID, winnow.Keys{"skip": "KeyU"}), winnow.CodeInvalid)
	wantCode(t, b.SetKeys(ctx, ann.ID, winnow.Keys{"skip": "Tab"}), winnow.CodeInvalid)
	keys(ann, winnow.Keys{"skip": "KeyQ"})
	if err := b.SetKeys(ctx, ann.ID, nil); err != nil {
		t.Fatal(err)
	}
	keys(ann, winnow.Keys{})
	_, err := b.Keys(ctx, 1e9)
	wantCode(t, err, winnow.CodeNotFound)
}
