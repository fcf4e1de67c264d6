package web_test

import (
	"fmt"
	"strings"
	"testing"
)

// The charts show a project's whole history, though its table comes in pages.
func TestChartsShowTheWholeHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "viewer")
	page := fmt.Sprintf("/projects/%d", w.project.ID)
	add := func(from, to int) {
		t.Helper()
		if _, err := w.store.Pool().Exec(t.Context(), `
			INSERT INTO rounds (project_id, number, state, strategy, seed, k, settings, class_version, classes, metrics,
			                    item_count, known_count, unknown_count, created_at, closed_at)
			SELECT project_id, n, 'closed', strategy, 1, 5, settings, 1, 3, '{"test_accuracy": 0.5, "test_images": 100}', 10, 6, 4, now(), now()
			FROM rounds, generate_series($2::int, $3::int) AS n
			WHERE project_id = $1 AND number = 0`, w.project.ID, from, to); err != nil {
			t.Fatal(err)
		}
	}
	add(1, 149)
	got := c.get(page)
	if !strings.Contains(got.body, "Outcomes by round: round 1:") || !strings.Contains(got.body, "round 149: 6 known") {
		t.Error("the charts do not reach from the first labeled round to the last")
	}
	if strings.Contains(got.body, "The charts show") {
		t.Error("the page speaks of missing rounds though all are there")
	}
	if n := strings.Count(got.body, `<th scope="row"><a href="`+page+`/rounds/`); n != 100 {
		t.Errorf("the table has %d rounds, want a page of 100", n)
	}
	_, older, ok := strings.Cut(got.body, `href="`+page+`?after=`)
	older, _, _ = strings.Cut(older, `"`)
	if !ok {
		t.Fatal("no link to older rounds")
	}
	if got := c.get(page + "?after=" + older); !strings.Contains(got.body, "round 149: 6 known") || !strings.Contains(got.body, `<th scope="row"><a href="`+page+`/rounds/0"`) || !strings.Contains(got.body, "round 149</dd>") {
		t.Error("the page of older rounds does not show them, or its charts and figures are not the newest")
	}
	add(150, 449)
	got = c.get(page)
	if !strings.Contains(got.body, "The charts show the newest 400 of 450 rounds, from round 50 on.") {
		t.Error("the page does not say that the charts leave rounds out")
	}
	if len(got.body) > 600_000 {
		t.Errorf("the page has %d bytes", len(got.body))
	}
}
