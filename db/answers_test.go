package db_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

// disputed is a bench whose round two people have answered: on two of five images they
// disagree, one is unknown to both, and one has one answer only.
func disputed(t *testing.T) (b *bench, ann, bob winnow.UserID, items []winnow.Item) {
	t.Helper()
	b = newBench(t, 5, func(s *winnow.Settings) { s.Overlap = 3 })
	b.open()
	ann, bob = b.annotator("ann"), b.annotator("bob")
	cat := b.annotator("cat")
	items = b.claim(ann, 5)
	b.claim(bob, 5)
	b.claim(cat, 5)
	for i, classes := range [][]int{{0, 0, 1}, {2, 2, 2}, {-1, -1, 0}, {1, 1, 1}, {0}} {
		for who, class := range classes {
			d := decision(items[i].ID, winnow.VerdictKnown, class, fmt.Sprintf("%d-%d", i, who))
			if class < 0 {
				d.Verdict = winnow.VerdictUnknown
			}
			b.decide([]winnow.UserID{ann, bob, cat}[who], d)
		}
	}
	return b, ann, cat, items
}

func TestAnsweredImages(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, ann, cat, items := disputed(t)
	class, round := 0, 0
	tests := map[string]struct {
		filter winnow.ImageFilter
		want   []string // "item: who said what, of what is what"
	}{
		"of one person": {winnow.ImageFilter{By: ann}, []string{
			"4: ann known 0, is  -1", "3: ann known 1, is known 1", "2: ann unknown -1, is unknown -1", "1: ann known 2, is known 2", "0: ann known 0, is known 0",
		}},
		"where one person differs":   {winnow.ImageFilter{By: cat, Answers: winnow.AnswersDiffer}, []string{"2: cat known 0, is unknown -1", "0: cat known 1, is known 0"}},
		"where one does not":         {winnow.ImageFilter{By: ann, Answers: winnow.AnswersDiffer}, nil},
		"where anybody differs":      {winnow.ImageFilter{Answers: winnow.AnswersDiffer}, []string{"2: cat known 0, is unknown -1", "0: cat known 1, is known 0"}},
		"by the label":               {winnow.ImageFilter{By: cat, Verdict: "unknown"}, []string{"2: cat known 0, is unknown -1"}},
		"by class":                   {winnow.ImageFilter{By: cat, Class: &class}, []string{"0: cat known 1, is known 0"}},
		"by round":                   {winnow.ImageFilter{By: cat, Round: &round, Answers: winnow.AnswersDiffer, Split: winnow.SplitPool}, []string{"2: cat known 0, is unknown -1", "0: cat known 1, is known 0"}},
		"of a round that is not":     {winnow.ImageFilter{By: cat, Round: new(7)}, nil},
		"test images":                {winnow.ImageFilter{By: cat, Split: winnow.SplitTest}, nil},
		"gold, of which there is no": {winnow.ImageFilter{By: cat, Answers: winnow.AnswersGoldWrong}, nil},
		"of nobody":                  {winnow.ImageFilter{By: 1 << 40}, nil},
	}
	number := map[winnow.ItemID]int{}
	for i, item := range items {
		number[item.ID] = i
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var got []string
			// A page at a time, so that the cursors are walked too.
			for page := (winnow.Page{Limit: 1}); ; {
				answered, next, err := b.AnsweredImages(ctx, b.project, tt.filter, page)
				if err != nil {
					t.Fatal(err)
				}
				for _, a := range answered {
					got = append(got, fmt.Sprintf("%d: %s %s %d, is %s %d", number[a.Said.ItemID], a.Said.User, a.Said.Verdict, a.Said.Class, a.Verdict, a.Class))
				}
				if next == "" {
					break
				}
				page.After = next
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answers (-want +got):\n%s", diff)
			}
		})
	}
	_, _, err := b.AnsweredImages(ctx, b.project, winnow.ImageFilter{Answers: "odd"}, winnow.Page{})
	wantCode(t, err, winnow.CodeInvalid)
}

func TestExportAnswers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, _, _, _ := disputed(t)
	export := func(f winnow.LabelFilter) (got []string) {
		t.Helper()
		if err := b.ExportAnswers(ctx, b.project, f, func(r winnow.AnswerRecord) error {
			got = append(got, fmt.Sprintf("%d %s %s%s>%s%s", r.Rank, strings.TrimSuffix(r.Annotator, "@example.org"), r.Status, r.Class, r.Decided, r.DecidedClass))
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if all := export(winnow.LabelFilter{}); len(all) != 13 {
		t.Errorf("%d answers, want 13: %q", len(all), all)
	}
	zero, one := 0, 1
	if diff := cmp.Diff([]string{"3 ann unknown>unknown", "3 bob unknown>unknown"}, export(winnow.LabelFilter{Round: &zero, Statuses: []string{"unknown"}})); diff != "" {
		t.Errorf("unknowns (-want +got):\n%s", diff)
	}
	if got := export(winnow.LabelFilter{Round: &one}); got != nil {
		t.Errorf("of a round that is not there: %q", got)
	}
	if got := export(winnow.LabelFilter{Split: winnow.SplitTest}); got != nil {
		t.Errorf("of test images: %q", got)
	}
	err := b.ExportAnswers(ctx, b.project, winnow.LabelFilter{Statuses: []string{"unlabeled"}}, nil)
	wantCode(t, err, winnow.CodeInvalid)
}

func TestReviewCounts(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 5, func(s *winnow.Settings) { s.Overlap = 2 })
	b.open()
	ann, bob := b.annotator("ann"), b.annotator("bob")
	for i, item := range b.claim(ann, 5) {
		b.decide(ann, decision(item.ID, winnow.VerdictKnown, 0, fmt.Sprint(i)))
	}
	for i, item := range b.claim(bob, 5) {
		b.decide(bob, decision(item.ID, winnow.VerdictKnown, i%2, fmt.Sprint(i)))
	}
	got, err := b.ReviewCounts(ctx, b.project)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(winnow.ReviewCounts{Total: 2, Disputed: 2}, got); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestAnnotatorDays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b, _, cat, _ := disputed(t)
	days, err := b.AnnotatorDays(ctx, b.project, cat)
	if err != nil {
		t.Fatal(err)
	}
	for i := range days {
		if days[i].Day.Format("2006-01-02") != b.clock.Now().Format("2006-01-02") {
			t.Errorf("day %v", days[i].Day)
		}
		days[i].Day = b.clock.Now()
	}
	want := []winnow.AnnotatorDay{{Day: b.clock.Now(), Labels: 4, Active: 2800e6, Shared: 4, Agreed: 2}}
	if diff := cmp.Diff(want, days); diff != "" {
		t.Errorf("days (-want +got):\n%s", diff)
	}
	b.clock.Advance(60 * 24 * 3600e9)
	if days, err = b.AnnotatorDays(ctx, b.project, cat); err != nil || len(days) != 0 {
		t.Errorf("two months later: %v, %v", days, err)
	}
}
