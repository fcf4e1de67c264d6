// Package simulate runs the paper's experiment: a data set whose labels are known
// plays the pool, an oracle plays the annotators, and query strategies are compared
// over rounds and seeds. Every round is [ml.RunRound], the same as in the web
// application.
package simulate

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"winnow"
	"winnow/ml"
	"winnow/ml/backend"
	"winnow/ml/eaoa"
	"winnow/ml/nn"
)

// Experiment is what is run.
type Experiment struct {
	Data        *Data
	Classes     []string // of the data, by class number
	Known       []int    // class numbers, in the order of the networks' outputs
	InitPercent float64  // of the known classes' train images, labeled at the start
	PerClass    int      // train images of each class that were loaded; 0 for all
	Rounds      int
	Strategies  []string
	Seeds       []int64
	Settings    winnow.Settings // Strategy and Seed are set for each run
	Annotators  *Confusion      // nil: they never err
	Out         string          // folder

	// Compare are curves of another run of the protocol, drawn dashed.
	Compare      []Line
	CompareLabel string

	// runRound is ml.RunRound; tests replace it.
	runRound func(context.Context, *backend.Backend, ml.RoundInput, func(winnow.Progress)) (*ml.RoundOutput, error)
}

// Progress is where an experiment stands.
type Progress struct {
	Strategy    string
	Seed        int64
	Round       int
	Stage       winnow.Progress
	Fraction    float64 // of all work
	SecondsLeft float64 // 0 while unknown
	Line        *Line   // set once, when a round is done
}

// protocol is what must be equal for rounds to belong to one experiment. Strategies,
// seeds and rounds may grow.
type protocol struct {
	Known       []string        `json:"known"`
	InitPercent float64         `json:"init_percent"`
	PerClass    int             `json:"per_class"`
	TrainImages int             `json:"train_images"`
	TestImages  int             `json:"test_images"`
	Annotators  *Confusion      `json:"annotators,omitempty"`
	Settings    winnow.Settings `json:"settings"`
	Backend     string          `json:"backend"`
}

// Run runs what is not done yet. After each round it writes rounds.jsonl and
// queries.jsonl, and summary.csv, accuracy.svg and precision.svg of the rounds so far. Stopped and
// started again it goes on with the next round. Errors: CodeInvalid for an
// experiment that cannot be, or for a folder that holds another one; what RunRound
// returns; ctx's.
func (e *Experiment) Run(ctx context.Context, be *backend.Backend, progress func(Progress)) error {
	if err := e.validate(); err != nil {
		return err
	}
	if e.runRound == nil {
		e.runRound = ml.RunRound
	}
	l, err := openLog(e.Out, e.protocol(be))
	if err != nil {
		return err
	}
	meter := newMeter(e, l, progress)
	for _, seed := range e.Seeds {
		for _, strategy := range e.Strategies {
			if err := e.run(ctx, be, l, meter, strategy, seed); err != nil {
				return fmt.Errorf("%s, seed %d: %w", strategy, seed, err)
			}
		}
	}
	return e.write(l.lines)
}

func (e *Experiment) validate() error {
	switch {
	case len(e.Known) == 0:
		return winnow.Invalid("known", "Name at least one known class.")
	case !(e.InitPercent > 0 && e.InitPercent <= 100):
		return winnow.Invalid("init-percent", "%v is not above 0 and at most 100.", e.InitPercent)
	case e.Rounds < 1:
		return winnow.Invalid("rounds", "At least 1 round is needed.")
	case len(e.Strategies) == 0:
		return winnow.Invalid("strategies", "Name at least one strategy.")
	case len(e.Seeds) == 0:
		return winnow.Invalid("seeds", "Name at least one seed.")
	}
	for i, c := range e.Known {
		if slices.Contains(e.Known[:i], c) {
			return winnow.Invalid("known", "The class %q is named twice.", e.Classes[c])
		}
	}
	for _, s := range e.Strategies {
		if !slices.Contains(winnow.Strategies, s) {
			return winnow.Invalid("strategies", "%q is not one of %q.", s, winnow.Strategies)
		}
	}
	s := e.Settings
	return s.Validate()
}

func (e *Experiment) protocol(be *backend.Backend) protocol {
	p := protocol{
		InitPercent: e.InitPercent, PerClass: e.PerClass, TrainImages: e.Data.Train.N, TestImages: e.Data.Test.N,
		Annotators: e.Annotators, Settings: e.Settings,
	}
	if be != nil {
		p.Backend = be.Name()
	}
	// Each run sets its own.
	p.Settings.Strategy, p.Settings.Seed = "", 0
	for _, c := range e.Known {
		p.Known = append(p.Known, e.Classes[c])
	}
	return p
}

// run is one strategy with one seed.
func (e *Experiment) run(ctx context.Context, be *backend.Backend, l *log, meter *meter, strategy string, seed int64) error {
	o := e.oracle()
	settings := e.Settings
	settings.Strategy, settings.Seed = strategy, seed
	labeled, given := e.start(o, seed)
	k := settings.K
	for round := range e.Rounds {
		pool := e.pool(labeled)
		if len(pool) == 0 {
			return nil // everything is labeled
		}
		if line, q, ok := l.done(key{strategy, seed, round}); ok {
			labeled, given, k = append(labeled, q.Images...), append(given, q.Labels...), line.K
			continue
		}
		out, err := e.runRound(ctx, be, ml.RoundInput{
			Settings: settings, Classes: len(e.Known), Number: round, K: k, Seed: seed*1_000_003 + int64(round),
			Labeled: gather(e.Data.Train, labeled), Labels: given,
			Pool: ml.Hold(be, gather(e.Data.Train, pool)),
			Test: e.Data.Test, TestLabels: o.indices(e.Data.TestLabels),
		}, meter.stage(strategy, seed, round))
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		line, q, err := e.label(o, out, pool, seed)
		if err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		if strategy == "eaoa" { // the others have no k
			k = eaoa.NextK(settings, k, line.Precision, int64(len(pool)-len(q.Images)))
		}
		line.Strategy, line.Seed, line.Round, line.K = strategy, seed, round, k
		q.Strategy, q.Seed, q.Round = strategy, seed, round
		for _, c := range given {
			if c < len(e.Known) {
				line.LabeledKnown++
			} else {
				line.LabeledUnknown++
			}
		}
		if err := l.add(line, q); err != nil {
			return err
		}
		if err := e.write(l.lines); err != nil {
			return err
		}
		meter.finished(line)
		labeled, given = append(labeled, q.Images...), append(given, q.Labels...)
	}
	return nil
}

// start draws what is labeled at the start, the same for every strategy. These labels
// are right, whoever the annotators are.
func (e *Experiment) start(o *oracle, seed int64) (images, given []int) {
	var knowns []int
	for i, class := range e.Data.TrainLabels {
		if o.known(class) < len(e.Known) {
			knowns = append(knowns, i)
		}
	}
	n := max(1, int(math.Round(e.InitPercent/100*float64(len(knowns)))))
	rng := rand.New(rand.NewPCG(uint64(seed), 0x7374617274))
	for _, i := range rng.Perm(len(knowns))[:n] {
		images = append(images, knowns[i])
		given = append(given, o.known(e.Data.TrainLabels[knowns[i]]))
	}
	return images, given
}

// pool are the train images that are not labeled, in their order.
func (e *Experiment) pool(labeled []int) []int {
	taken := make([]bool, e.Data.Train.N)
	for _, i := range labeled {
		taken[i] = true
	}
	var pool []int
	for i, t := range taken {
		if !t {
			pool = append(pool, i)
		}
	}
	return pool
}

// label has the annotators label a query.
func (e *Experiment) label(o *oracle, out *ml.RoundOutput, pool []int, seed int64) (Line, labels, error) {
	line := Line{
		TrainSeconds: out.Metrics.TrainSeconds, ScoreSeconds: out.Metrics.ScoreSeconds, QuerySeconds: out.Metrics.QuerySeconds,
	}
	if out.Metrics.TestAccuracy != nil {
		line.TestAcc = math.Round(1e6*(*out.Metrics.TestAccuracy)) / 1e4
	}
	var q labels
	said, known := 0, 0
	for _, choice := range out.Query {
		if choice.Index < 0 || choice.Index >= len(pool) {
			return line, q, errOutOfPool
		}
		image := pool[choice.Index]
		label := o.label(image, seed)
		q.Images, q.Labels = append(q.Images, image), append(q.Labels, label)
		if label < len(e.Known) {
			said++
		}
		if o.known(o.truth[image]) < len(e.Known) {
			known++
		}
	}
	n := float64(max(len(q.Images), 1))
	line.Precision = float64(said) / n
	if e.Annotators != nil {
		p := float64(known) / n
		line.TruePrecision = &p
	}
	return line, q, nil
}

func (e *Experiment) oracle() *oracle {
	o := &oracle{truth: e.Data.TrainLabels, index: make(map[int]int, len(e.Known)), confusion: e.Annotators}
	for i, c := range e.Known {
		o.index[c] = i
	}
	return o
}

// indices are the known-class indices of class numbers.
func (o *oracle) indices(classes []int) []int {
	out := make([]int, len(classes))
	for i, c := range classes {
		out[i] = o.known(c)
	}
	return out
}

// gather copies the images at the indices.
func gather(from nn.Images, indices []int) nn.Images {
	out := nn.Images{N: len(indices), Size: from.Size}
	for _, i := range indices {
		out.RGB = append(out.RGB, from.At(i)...)
	}
	return out
}

// write writes the summary and the figures from the lines so far.
func (e *Experiment) write(lines []Line) error {
	known := 0
	o := e.oracle()
	for _, class := range e.Data.TrainLabels {
		if o.known(class) < len(e.Known) {
			known++
		}
	}
	images, _ := e.start(o, 0)
	s := summarize(lines, e.Settings.Budget, known-len(images))
	f, err := os.Create(filepath.Join(e.Out, "summary.csv"))
	if err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	if err := writeSummary(f, s); err != nil {
		f.Close()
		return fmt.Errorf("write the summary: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("write the summary: %w", err)
	}
	return e.draw(s)
}

// meter turns the progress of rounds into that of the experiment. A round's work
// grows with what is labeled, and scoring adds to it.
type meter struct {
	report      func(Progress)
	weight      func(round int) float64
	total, done float64
	begin       time.Time
	skipped     float64 // done before this process began
}

func newMeter(e *Experiment, l *log, report func(Progress)) *meter {
	if report == nil {
		report = func(Progress) {}
	}
	images, _ := e.start(e.oracle(), 0)
	m := &meter{report: report, begin: time.Now(), weight: func(round int) float64 {
		labeled := len(images) + round*e.Settings.Budget
		// A training step costs three times the scoring of as many images.
		return 3*float64(labeled)*float64(e.Settings.Epochs) + float64(e.Data.Train.N+e.Data.Test.N)
	}}
	for _, s := range e.Strategies {
		for _, seed := range e.Seeds {
			for r := range e.Rounds {
				m.total += m.weight(r)
				if _, _, ok := l.done(key{s, seed, r}); ok {
					m.skipped += m.weight(r)
				}
			}
		}
	}
	m.done = m.skipped
	return m
}

func (m *meter) stage(strategy string, seed int64, round int) func(winnow.Progress) {
	return func(p winnow.Progress) {
		m.send(Progress{Strategy: strategy, Seed: seed, Round: round, Stage: p}, m.done+p.Fraction*m.weight(round))
	}
}

func (m *meter) finished(line Line) {
	m.done += m.weight(line.Round)
	m.send(Progress{Strategy: line.Strategy, Seed: line.Seed, Round: line.Round, Line: &line}, m.done)
}

func (m *meter) send(p Progress, done float64) {
	p.Fraction = done / m.total
	if mine := done - m.skipped; mine > 0 {
		p.SecondsLeft = time.Since(m.begin).Seconds() / mine * (m.total - done)
	}
	m.report(p)
}
