package db

import (
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// slot is one of the answers that an item asks for: free, leased, or given.
type slot struct {
	item    winnow.ItemID
	number  int
	user    winnow.UserID // who holds or has answered it, 0 while it is free
	until   time.Time     // of the lease, zero without one
	event   winnow.EventID
	verdict winnow.Verdict // "" until it is answered
	class   int            // -1 unless known
	gold    string         // how the answer to a gold item compares
}

const slotColumns = `s.item_id, s.slot, s.user_id, s.lease_until, s.event_id, s.verdict, coalesce(s.class, -1), s.gold_result`

func scanSlot(row pgx.CollectableRow) (s slot, err error) {
	return s, row.Scan(&s.item, &s.number, (*zeronull.Int8)(&s.user), (*zeronull.Timestamptz)(&s.until),
		(*zeronull.Int8)(&s.event), (*zeronull.Text)(&s.verdict), &s.class, (*zeronull.Text)(&s.gold))
}

// free reports whether anybody may have the slot.
func (s *slot) free(now time.Time) bool {
	return s.event == 0 && (s.user == 0 || !s.until.After(now))
}

// says reports whether the slot's answer is the one given.
func (s *slot) says(v winnow.Verdict, class int) bool {
	return s.event != 0 && s.verdict == v && (v != winnow.VerdictKnown || s.class == class)
}

// resolve finds the answer that has more votes than any other, and returns the first
// slot that gave it. A skip abstains, unless all skipped. It returns nil when two
// answers have the most votes.
func resolve(slots []slot) *slot {
	var best *slot
	most, tie := 0, false
	for i := range slots {
		first := &slots[i]
		votes := 0
		for j := range slots {
			if slots[j].says(first.verdict, first.class) {
				votes++
				if slots[j].event < first.event {
					votes = 0
					break // counted with the first who said so
				}
			}
		}
		if first.verdict == winnow.VerdictSkip && votes < len(slots) || votes == 0 {
			continue
		}
		switch {
		case votes > most:
			best, most, tie = first, votes, false
		case votes == most:
			tie = true
		}
	}
	if tie {
		return nil
	}
	return best
}

// resolvedBy is the event that completed an item's answers.
func resolvedBy(slots []slot) (last winnow.EventID) {
	for i := range slots {
		last = max(last, slots[i].event)
	}
	return last
}
