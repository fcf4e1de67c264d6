package simulate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/ml"
	"winnow/ml/backend"
	"winnow/ml/nn"
)

// experiment is 5 classes of 40 one-pixel images, 2 of them known, whose rounds query
// every other image of the pool, without networks.
func experiment(t *testing.T) *Experiment {
	t.Helper()
	data := &Data{Train: nn.Images{N: 200, Size: 1}, Test: nn.Images{N: 2, Size: 1, RGB: make([]byte, 6)}, TestLabels: []int{3, 1}}
	for i := range 200 {
		data.Train.RGB = append(data.Train.RGB, byte(i), 0, 0)
		data.TrainLabels = append(data.TrainLabels, i%5)
	}
	s := winnow.DefaultSettings()
	s.Budget, s.KTolerance = 20, 0.01
	return &Experiment{
		Data: data, Classes: []string{"a", "b", "c", "d", "e"}, Known: []int{3, 1}, InitPercent: 10, Rounds: 3,
		Strategies: []string{"eaoa", "random"}, Seeds: []int64{1, 2}, Settings: s, Out: filepath.Join(t.TempDir(), "out"),
		runRound: everyOther,
	}
}

func everyOther(_ context.Context, _ *backend.Backend, in ml.RoundInput, progress func(winnow.Progress)) (*ml.RoundOutput, error) {
	accuracy := float64(in.Labeled.N) / 100
	out := &ml.RoundOutput{Metrics: winnow.Metrics{TestAccuracy: &accuracy, TrainSeconds: 1}}
	offset := int(in.Seed) % 2 // seeds differ
	for i := range in.Settings.Budget {
		out.Query = append(out.Query, ml.Choice{Index: (2*i + offset) % in.Pool.Len()})
	}
	progress(winnow.Progress{Stage: "training", Fraction: 0.5})
	return out, nil
}

func read(t *testing.T, e *Experiment, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(e.Out, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestRunWritesWhatAnotherProgramReads(t *testing.T) {
	t.Parallel()
	e := experiment(t)
	last, finished := 0.0, 0
	err := e.Run(t.Context(), nil, func(p Progress) {
		if p.Fraction < last {
			t.Errorf("progress falls from %v to %v", last, p.Fraction)
		}
		if last = p.Fraction; p.Line != nil {
			finished++
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if last != 1 || finished != 12 {
		t.Errorf("progress ends at %v after %d rounds", last, finished)
	}
	lines, err := ParseLines[Line]([]byte(read(t, e, roundsFile)), roundsFile)
	if err != nil || len(lines) != 12 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	queries, err := ParseLines[labels]([]byte(read(t, e, queriesFile)), queriesFile)
	if err != nil || len(queries) != 12 {
		t.Fatalf("%d queries, %v", len(queries), err)
	}
	k := 0.0
	var known, unknown int
	for i, l := range lines {
		if l.Round == 0 {
			k, known, unknown = 5, 8, 0 // 10% of 80 knowns
		}
		if l.LabeledKnown != known || l.LabeledUnknown != unknown || l.TestAcc != float64(known+unknown) {
			t.Errorf("line %d: %+v; want %d known, %d unknown labeled", i, l, known, unknown)
		}
		right := 0
		for j, image := range queries[i].Images {
			class := map[int]int{3: 0, 1: 1}
			want, ok := class[e.Data.TrainLabels[image]]
			if !ok {
				want = 2
			} else {
				right++
			}
			if queries[i].Labels[j] != want {
				t.Errorf("line %d: image %d is labeled %d, want %d", i, image, queries[i].Labels[j], want)
			}
		}
		if p := float64(right) / 20; l.Precision != p {
			t.Errorf("line %d: precision %v, want %v", i, l.Precision, p)
		}
		if l.Strategy == "eaoa" && l.Precision < 0.59 {
			k--
		}
		if l.K != k {
			t.Errorf("line %d: k %v, want %v", i, l.K, k)
		}
		known, unknown = known+right, unknown+20-right
	}
	for _, svg := range []string{"accuracy.svg", "precision.svg"} {
		text := read(t, e, svg)
		for _, want := range []string{"<svg", ">eaoa<", ">random<", "mean of 2 seeds"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %s", svg, want)
			}
		}
	}
	if rows := strings.Count(read(t, e, "summary.csv"), "\n"); rows != 1+2*(3+1) {
		t.Errorf("summary.csv has %d rows", rows)
	}
}

// Stopped after any round, with any half-written line, a run ends as one that was
// never stopped.
func TestRunResumes(t *testing.T) {
	t.Parallel()
	whole := experiment(t)
	if err := whole.Run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	for stop := range 12 {
		e := experiment(t)
		rounds := 0
		stopped := errors.New("stopped")
		e.runRound = func(ctx context.Context, be *backend.Backend, in ml.RoundInput, p func(winnow.Progress)) (*ml.RoundOutput, error) {
			if rounds++; rounds > stop {
				return nil, stopped
			}
			return everyOther(ctx, be, in, p)
		}
		if err := e.Run(t.Context(), nil, nil); !errors.Is(err, stopped) {
			t.Fatalf("stopped after %d: %v", stop, err)
		}
		for _, name := range []string{roundsFile, queriesFile} {
			f, err := os.OpenFile(filepath.Join(e.Out, name), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(f, `{"strategy":"eaoa","se`)
			f.Close()
		}
		e.runRound = everyOther
		if err := e.Run(t.Context(), nil, nil); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{roundsFile, queriesFile, "summary.csv", "accuracy.svg"} {
			if diff := cmp.Diff(read(t, whole, name), read(t, e, name)); diff != "" {
				t.Errorf("stopped after %d rounds, %s differs: %s", stop, name, diff)
			}
		}
	}
}

func TestRunGrowsButDoesNotMix(t *testing.T) {
	t.Parallel()
	e := experiment(t)
	if err := e.Run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	e.Rounds, e.Seeds = 4, []int64{1, 2, 3}
	if err := e.Run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(read(t, e, roundsFile), "\n"); got != 24 {
		t.Errorf("%d lines after more rounds and seeds", got)
	}
	e.Settings.Epochs++
	err := e.Run(t.Context(), nil, nil)
	if winnow.ErrorCode(err) != winnow.CodeInvalid || !strings.Contains(err.Error(), "settings.epochs") {
		t.Errorf("another experiment in the same folder: %v", err)
	}
}

func TestRunLabelsThePoolToItsEnd(t *testing.T) {
	t.Parallel()
	e := experiment(t)
	e.Settings.Budget, e.Rounds = 150, 5
	e.runRound = func(_ context.Context, _ *backend.Backend, in ml.RoundInput, _ func(winnow.Progress)) (*ml.RoundOutput, error) {
		out := &ml.RoundOutput{}
		for i := range min(in.Settings.Budget, in.Pool.Len()) {
			out.Query = append(out.Query, ml.Choice{Index: i})
		}
		return out, nil
	}
	if err := e.Run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(read(t, e, roundsFile), "\n"); got != 2*2*2 {
		t.Errorf("%d rounds of 192 images, 150 at a time", got)
	}
}

func TestAnnotatorsErr(t *testing.T) {
	t.Parallel()
	e := experiment(t)
	c, err := ReadConfusion(bytes.NewBufferString("m,a,b,c,d,e\na,0,1,0,0,0\nb,0,1,0,0,0\nc,0,0,1,0,0\nd,0,0,1,0,0\ne,0,0,0,0,1\n"), e.Classes)
	if err != nil {
		t.Fatal(err)
	}
	e.Annotators = c
	if err := e.Run(t.Context(), nil, nil); err != nil {
		t.Fatal(err)
	}
	queries, _ := ParseLines[labels]([]byte(read(t, e, queriesFile)), queriesFile)
	for _, q := range queries {
		for i, image := range q.Images {
			want := 2
			if class := e.Data.TrainLabels[image]; class == 0 || class == 1 { // a is taken for b
				want = 1
			}
			if q.Labels[i] != want {
				t.Fatalf("an image of class %d is labeled %d", e.Data.TrainLabels[image], q.Labels[i])
			}
		}
	}
	if !strings.Contains(read(t, e, roundsFile), `"true_precision"`) {
		t.Error("the true precision is not told")
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for field, spoil := range map[string]func(*Experiment){
		"known":        func(e *Experiment) { e.Known = []int{1, 1} },
		"init-percent": func(e *Experiment) { e.InitPercent = 0 },
		"rounds":       func(e *Experiment) { e.Rounds = 0 },
		"strategies":   func(e *Experiment) { e.Strategies = []string{"magic"} },
		"seeds":        func(e *Experiment) { e.Seeds = nil },
		"epochs":       func(e *Experiment) { e.Settings.Epochs = 0 },
		"out":          func(e *Experiment) { e.Out = "/proc/none" },
	} {
		e := experiment(t)
		spoil(e)
		var we *winnow.Error
		if err := e.Run(t.Context(), nil, nil); !errors.As(err, &we) || we.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	line := func(seed int64, round, labeled int, accuracy, precision float64) Line {
		return Line{Strategy: "random", Seed: seed, Round: round, LabeledKnown: labeled, TestAcc: accuracy, Precision: precision}
	}
	curves := summarize([]Line{
		line(1, 0, 100, 40, 0.2), line(1, 1, 200, 60, 0.4), line(1, 2, 400, 70, 0.6),
		line(2, 0, 100, 44, 0.4), line(2, 1, 200, 60, 0.4), line(2, 2, 400, 70, 0.2),
	}, 100, 150)
	if len(curves) != 1 {
		t.Fatalf("%d curves", len(curves))
	}
	c := curves[0]
	// Areas: (100*50 + 200*65) / 300 = 60 and (100*52 + 200*65) / 300 = 60.67.
	if got := fmt.Sprintf("%.2f %.2f", c.area.mean, c.area.sd); got != "60.33 0.47" {
		t.Errorf("area %s", got)
	}
	if got := fmt.Sprintf("%.3f %.3f %.2f", c.precision.mean, c.points[0].precision.sd, c.points[0].accuracy.sd); got != "0.367 0.141 2.83" {
		t.Errorf("precision and deviations %s", got)
	}
	// 150 knowns: the first 100 queried may all be known, of 300 only half.
	if c.points[0].ceiling != 1 || c.points[1].ceiling != 0.75 || c.ceiling != 0.5 {
		t.Errorf("ceilings %v %v %v", c.points[0].ceiling, c.points[1].ceiling, c.ceiling)
	}
}

func TestParseLinesNamesTheLine(t *testing.T) {
	t.Parallel()
	if _, err := ParseLines[Line]([]byte("{}\n\n{\n"), "x.jsonl"); err == nil || !strings.Contains(err.Error(), "x.jsonl:3") {
		t.Errorf("got %v", err)
	}
}
