package demo_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/app/demo"
	"winnow/db"
	"winnow/db/dbtest"
)

func TestSeedIsIdempotent(t *testing.T) {
	t.Parallel()
	store := dbtest.New(t, db.Options{})
	admin := dbtest.User(t, store, "admin")
	want := winnow.PoolCounts{Pool: 2000, Test: 400, Known: 40}
	for range 2 {
		p, err := demo.Seed(t.Context(), store, admin.ID, nil)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = store.Project(t.Context(), p.ID); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, p.Counts); diff != "" {
			t.Errorf("counts (-want +got):\n%s", diff)
		}
		imports, _, err := store.Imports(t.Context(), p.ID, winnow.Page{Limit: 10})
		if err != nil || len(imports) != 3 {
			t.Errorf("%d imports, %v", len(imports), err)
		}
		rounds, _, err := store.Rounds(t.Context(), p.ID, winnow.Page{Limit: 10})
		if err != nil || len(rounds) != 1 {
			t.Errorf("%d rounds, %v", len(rounds), err)
		}
	}
}
