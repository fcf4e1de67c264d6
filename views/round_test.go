package views

import (
	"strings"
	"testing"
	"time"

	"winnow"
)

func TestKStory(t *testing.T) {
	t.Parallel()
	f := func(v float64) *float64 { return &v }
	for _, tc := range []struct {
		precision, next *float64
		k               float64
		want            string
	}{
		{f(.71), f(6), 5, "Precision .71, above .60 + .05, so k went 5 → 6."},
		{f(.41), f(4), 5, "Precision .41, below .60 − .05, so k went 5 → 4."},
		{f(.62), f(5), 5, "Precision .62, within .05 of .60, so k stays 5."},
		{f(.41), f(1), 1, "Precision .41, below .60 − .05, but k goes no lower: k stays 1."},
		{f(.90), f(5), 5, "Precision .90, above .60 + .05, but the pool allows no larger k: k stays 5."},
		{f(.90), f(2), 5, "Precision .90, above .60 + .05, but the pool is too small for k = 5: k went 5 → 2."},
		{nil, f(5), 5, "No image was labeled known or unknown, so k stays 5."},
		{nil, nil, 5, ""},
	} {
		r := &winnow.Round{K: tc.k, Settings: winnow.DefaultSettings(), Metrics: winnow.Metrics{Precision: tc.precision, NextK: tc.next}}
		if got := KStory(r); got != tc.want {
			t.Errorf("got  %s\nwant %s", got, tc.want)
		}
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		round winnow.Round
		want  string
	}{
		{winnow.Round{State: winnow.RoundQueued}, "queued:now training: scoring: labeling: closed:"},
		{winnow.Round{State: winnow.RoundScoring}, "queued:done training:done scoring:now labeling: closed:"},
		{winnow.Round{State: winnow.RoundClosed}, "queued:done training:done scoring:done labeling:done closed:done"},
		{winnow.Round{State: winnow.RoundFailed, StartedAt: time.Now()}, "queued:done failed:bad scoring: labeling: closed:"},
		{winnow.Round{State: winnow.RoundCancelled}, "cancelled:bad training: scoring: labeling: closed:"},
	} {
		var got []string
		for _, s := range stages(&tc.round) {
			got = append(got, s.Name+":"+s.Class)
		}
		if s := strings.Join(got, " "); s != tc.want {
			t.Errorf("%s: %s, want %s", tc.round.State, s, tc.want)
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	for got, want := range map[string]string{
		Count(1234567): "1,234,567", Count(-1200): "-1,200", Count(12): "12", Share(.714): ".71", Share(1): "1.00",
		Plural(1, "image", "images"): "1 image", Plural(2000, "image", "images"): "2,000 images", Percent(.6249): "62.5%",
		Left(170): "3 min left", Left(0): "", Left(3): "a few seconds left", Seconds(7500): "2 h 5 min", Bytes(8 << 30): "8.6 GB", Bytes(12): "12 bytes",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
