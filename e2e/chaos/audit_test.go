package chaos

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"winnow/db"
	"winnow/db/dbtest"
)

// event is a row of label_events.
type event struct {
	ID         int64
	User       int64
	Key        string
	Item       int64
	Kind       string
	Verdict    string
	Class      int
	Supersedes int64
}

// audit holds the database against what the team's annotators saw, once nothing moves
// any more, and against itself, and lists what does not agree.
func (m *team) audit(t *testing.T) (problems []string) {
	t.Helper()
	ctx, l := t.Context(), m.ledger
	events, err := readEvents(ctx, m.site.store, int64(m.project.ID))
	if err != nil {
		t.Fatal(err)
	}
	late, err := lateKeys(ctx, m.site.store)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Concat(
		l.lostOrInvented(events, late), standsTwice(events, m.overlap), l.standsOtherwise(events),
		l.shownTwice(m.overlap), dbtest.Broken(t, m.site.store),
	)
}

func readEvents(ctx context.Context, store *db.Store, project int64) ([]event, error) {
	rows, err := store.Pool().Query(ctx, `
		SELECT id, user_id, client_key, item_id, kind, coalesce(verdict, ''), coalesce(class, -1), coalesce(supersedes, 0)
		FROM label_events WHERE project_id = $1 AND kind IN ('label', 'undo') ORDER BY id`, project)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[event])
}

func lateKeys(ctx context.Context, store *db.Store) (map[string]bool, error) {
	rows, err := store.Pool().Query(ctx, `SELECT client_key FROM late_decisions`)
	if err != nil {
		return nil, err
	}
	keys, err := pgx.CollectRows(rows, pgx.RowTo[string])
	late := make(map[string]bool, len(keys))
	for _, k := range keys {
		late[k] = true
	}
	return late, err
}

// lostOrInvented compares the answers that clients got with the events, one by one.
func (l *ledger) lostOrInvented(events []event, late map[string]bool) (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := make(map[string]event, len(events))
	for _, ev := range events {
		e := l.byKey[ev.Key]
		switch _, twice := found[ev.Key]; {
		case twice:
			problems = append(problems, fmt.Sprintf("key %s is there twice", ev.Key))
		case e == nil || e.user != ev.User:
			problems = append(problems, fmt.Sprintf("event %d of user %d was sent by nobody", ev.ID, ev.User))
		}
		found[ev.Key] = ev
	}
	for _, e := range l.entries {
		ev, there := found[e.key]
		switch e.outcome {
		case pending:
			problems = append(problems, fmt.Sprintf("key %s was never settled", e.key))
		case acknowledged:
			switch {
			case !there:
				problems = append(problems, fmt.Sprintf("key %s was acknowledged, and is lost", e.key))
			case !e.matches(ev):
				problems = append(problems, fmt.Sprintf("key %s was acknowledged as %+v, and is %+v", e.key, *e, ev))
			}
		case refusedEntry:
			switch {
			case there:
				problems = append(problems, fmt.Sprintf("key %s was refused (%s), and counts", e.key, e.message))
			case !e.undo && !late[e.key]:
				problems = append(problems, fmt.Sprintf("key %s was refused (%s), and is not on record", e.key, e.message))
			}
		case withdrawn:
			if there {
				problems = append(problems, fmt.Sprintf("key %s was never sent, and is there", e.key))
			}
		}
	}
	return problems
}

func (e *entry) matches(ev event) bool {
	if e.undo {
		return ev.Kind == "undo" && ev.Item == e.item
	}
	return ev.Kind == "label" && ev.ID == e.event && ev.Item == e.item && ev.Verdict == e.verdict && ev.Class == e.class
}

// standing are the decisions that nothing has taken back.
func standing(events []event) map[place]event {
	byID := make(map[int64]event, len(events))
	stand := make(map[place]event)
	for _, ev := range events {
		byID[ev.ID] = ev
		if at := (place{ev.Item, ev.User}); ev.Kind == "label" {
			stand[at] = ev
		} else if stand[at].ID == ev.Supersedes {
			delete(stand, at)
		}
	}
	return stand
}

// standsTwice looks for items with more answers than there should be, and for
// people who answered one twice, at any moment.
func standsTwice(events []event, overlap int) (problems []string) {
	answers := make(map[int64][]event) // by item, as time goes on
	for _, ev := range events {
		switch ev.Kind {
		case "undo":
			answers[ev.Item] = slices.DeleteFunc(answers[ev.Item], func(a event) bool { return a.ID == ev.Supersedes })
		case "label":
			if slices.ContainsFunc(answers[ev.Item], func(a event) bool { return a.User == ev.User }) {
				problems = append(problems, fmt.Sprintf("item %d was answered twice by user %d", ev.Item, ev.User))
			}
			if answers[ev.Item] = append(answers[ev.Item], ev); len(answers[ev.Item]) > overlap {
				problems = append(problems, fmt.Sprintf("item %d has %d answers, for an overlap of %d", ev.Item, len(answers[ev.Item]), overlap))
			}
		}
	}
	return problems
}

// standsOtherwise compares what each person believes to have said with what stands.
func (l *ledger) standsOtherwise(events []event) (problems []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	believed := make(map[place]*entry)
	for _, e := range l.entries {
		switch at := (place{e.item, e.user}); {
		case e.outcome != acknowledged:
		case e.undo:
			delete(believed, at)
		default:
			believed[at] = e
		}
	}
	stand := standing(events)
	for at, e := range believed {
		if ev, ok := stand[at]; !ok || ev.Key != e.key {
			problems = append(problems, fmt.Sprintf("user %d was told that %s on item %d stands under key %s; it does not", at.user, e.verdict, at.item, e.key))
		}
	}
	for at := range stand {
		if believed[at] == nil {
			problems = append(problems, fmt.Sprintf("user %d has a decision on item %d that they took back or were refused", at.user, at.item))
		}
	}
	return problems
}
