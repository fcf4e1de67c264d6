package db

import (
	"fmt"
	"strings"
	"testing"

	"winnow"
)

// TestResolve says answers as k0 (known, class 0), u, s (skip), x (unreadable), and
// wants the number of the first answer that wins.
func TestResolve(t *testing.T) {
	t.Parallel()
	for answers, want := range map[string]int{
		"k0":                         1,
		"u":                          1,
		"s":                          1,
		"k0 k0":                      1,
		"k0 k1":                      0,
		"k0 u":                       0,
		"u x":                        0,
		"k1 k0 k0":                   2,
		"k0 k1 k0":                   1,
		"k0 k1 u":                    0,
		"u k0 u":                     1,
		"x x k2":                     1,
		"s k0":                       2,
		"s s k1":                     3,
		"s s s":                      1,
		"s s":                        1,
		"s k0 k1":                    0,
		"s s k0 k1 k1":               4,
		"k0 k0 k1 k1 u":              0,
		"k0 k0 k1 k1 k1":             3,
		"u k0 k0 u x x u":            1,
		"k0 k1 k2 k0 u u x x s":      0,
		"k0 k1 k2 k0 u u k0 x s":     1,
		"s s s s s s s s s":          1,
		"s s s s s s s s x":          9,
		"k12 k1 k12":                 1,
		"k0 k1 k2 k3 k4 k5 k6 k7 k7": 8,
	} {
		var slots []slot
		for i, a := range strings.Fields(answers) {
			s := slot{number: i + 1, user: winnow.UserID(i + 1), event: winnow.EventID(100 + i), class: -1}
			s.verdict = map[byte]winnow.Verdict{
				'k': winnow.VerdictKnown, 'u': winnow.VerdictUnknown, 's': winnow.VerdictSkip, 'x': winnow.VerdictUnreadable,
			}[a[0]]
			if s.verdict == winnow.VerdictKnown {
				if _, err := fmt.Sscan(a[1:], &s.class); err != nil {
					t.Fatal(err)
				}
			}
			slots = append(slots, s)
		}
		got := 0
		if winner := resolve(slots); winner != nil {
			got = winner.number
		}
		if got != want {
			t.Errorf("%s: answer %d wins, want %d", answers, got, want)
		}
	}
}
