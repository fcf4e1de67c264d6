package app

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"winnow"
	"winnow/ml"
	"winnow/ml/backend"
	"winnow/ml/nn"
	"winnow/ml/simulate"
)

// benchFlags are those of winnow backend bench.
type benchFlags struct {
	data          string
	known         []string
	labeled, pool int
	settings      winnow.Settings
}

// benchReport is what it prints.
type benchReport struct {
	Backend         string  `json:"backend"`
	Precision       string  `json:"precision"`
	Data            string  `json:"data"`
	LabeledKnown    int     `json:"labeled_known"`
	LabeledUnknown  int     `json:"labeled_unknown"`
	Pool            int     `json:"pool"`
	Width           int     `json:"width"`
	Epochs          int     `json:"epochs"`
	Batch           int     `json:"batch"`
	Steps           int     `json:"steps"` // of both networks
	TrainSeconds    float64 `json:"train_s"`
	ScoreSeconds    float64 `json:"score_s"`
	QuerySeconds    float64 `json:"query_s"`
	TotalSeconds    float64 `json:"total_s"`
	TrainImagesPerS float64 `json:"train_images_per_s"`
	TrainStepsPerS  float64 `json:"train_steps_per_s"`
	ScoreImagesPerS float64 `json:"score_images_per_s"`
	TestAccuracy    float64 `json:"test_acc,omitempty"` // in %
	TestImages      int     `json:"test_images,omitempty"`
	Note            string  `json:"note"`
}

func (c *cli) newBackendBenchCommand() *cobra.Command {
	f := benchFlags{settings: winnow.DefaultSettings()}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time a whole round on a backend: train both networks, score a pool, query",
		Long: `Time a whole round on a backend: train both networks, score a pool, query.

The defaults are the paper's round on CIFAR-10 with 10,000 labels. The data is what
winnow simulate takes; without it images of noise are drawn, which take as long. It
prints one line of JSON. Times include compiling the networks for the device.`,
		Example: `  winnow backend bench --labeled 640 --pool 2000 --epochs 2
  winnow backend bench --backend xla:cuda,precision=bf16 --data cifar10.zip --known ship,bird,horse,deer`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, c.cfg.Backend) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "ZIP or folder with the images; noise when empty")
	flags.StringSliceVar(&f.known, "known", []string{"0", "1", "2", "3"}, "known classes, by name or number")
	flags.IntVar(&f.labeled, "labeled", 10_000, "labeled images, drawn from the train images")
	flags.IntVar(&f.pool, "pool", 50_000, "images that are scored")
	flags.IntVar(&f.settings.Epochs, "epochs", f.settings.Epochs, "epochs of each network")
	flags.IntVar(&f.settings.Batch, "batch", f.settings.Batch, "images in a training step")
	flags.IntVar(&f.settings.Width, "width", f.settings.Width, "channels of the first stage")
	flags.IntVar(&f.settings.InputSize, "input-size", f.settings.InputSize, "pixels a side")
	return c.withOptions(cmd, optionsBackend)
}

func (f *benchFlags) run(cmd *cobra.Command, backendName string) error {
	ctx := cmd.Context()
	f.settings.Budget = min(f.settings.Budget, max(f.pool, 1))
	if err := f.settings.Validate(); err != nil {
		return err
	}
	if f.labeled < 1 || f.pool < 1 {
		return winnow.Invalid("labeled", "A round needs labeled images and a pool; got %d and %d.", f.labeled, f.pool)
	}
	data, known, err := f.load(ctx)
	if err != nil {
		return err
	}
	be, err := backend.Open(backendName)
	if err != nil {
		return err
	}
	defer be.Close()

	in := f.round(data, known, be)
	bar := newStageBar(cmd.ErrOrStderr())
	start := time.Now()
	out, err := ml.RunRound(ctx, be, in, func(p winnow.Progress) {
		bar.show(p.Fraction, p.SecondsLeft, fmt.Sprintf("%s %s %d/%d", p.Stage, p.Network, p.Epoch, p.Epochs))
	})
	bar.clear()
	if err != nil {
		return err
	}
	return json.NewEncoder(cmd.OutOrStdout()).Encode(f.report(be, in, out.Metrics, time.Since(start).Seconds()))
}

// benchClasses is how many classes the noise has.
const benchClasses = 10

// load reads the data, or draws it.
func (f *benchFlags) load(ctx context.Context) (*simulate.Data, []int, error) {
	size := f.settings.InputSize
	if f.data == "" {
		rng := rand.New(rand.NewPCG(1, 1))
		n := max(f.labeled, f.pool)
		d := &simulate.Data{Train: nn.Images{N: n, Size: size, RGB: make([]byte, n*size*size*3)}, Test: nn.Images{Size: size}}
		for i := range d.Train.RGB {
			d.Train.RGB[i] = byte(rng.Uint32())
		}
		for i := range n {
			d.TrainLabels = append(d.TrainLabels, i%benchClasses)
		}
		known := make([]int, min(len(f.known), benchClasses))
		for i := range known {
			known[i] = i
		}
		return d, known, nil
	}
	source, err := simulate.Open(f.data)
	if err != nil {
		return nil, nil, err
	}
	defer source.Close()
	var known []int
	for _, name := range f.known {
		class, err := source.Class(name)
		if err != nil {
			return nil, nil, err
		}
		known = append(known, class)
	}
	d, err := source.Load(ctx, known, 0, size, nil)
	return d, known, err
}

// round labels images drawn from the train images and puts the first of them, whether
// labeled or not, into the pool: what is timed is the work, not the query.
func (f *benchFlags) round(d *simulate.Data, known []int, be *backend.Backend) ml.RoundInput {
	image := d.Train.Size * d.Train.Size * 3
	class := func(label int) int {
		if i := slices.Index(known, label); i >= 0 {
			return i
		}
		return len(known)
	}
	drawn := rand.New(rand.NewPCG(2, 1)).Perm(d.Train.N)[:min(f.labeled, d.Train.N)]
	in := ml.RoundInput{
		Settings: f.settings, Classes: len(known), Number: 1, K: f.settings.K, Seed: f.settings.Seed,
		Labeled: nn.Images{N: len(drawn), Size: d.Train.Size}, Test: d.Test,
	}
	for _, i := range drawn {
		in.Labeled.RGB = append(in.Labeled.RGB, d.Train.At(i)...)
		in.Labels = append(in.Labels, class(d.TrainLabels[i]))
	}
	for _, label := range d.TestLabels {
		in.TestLabels = append(in.TestLabels, class(label))
	}
	n := min(f.pool, d.Train.N)
	in.Pool = ml.Hold(be, nn.Images{N: n, Size: d.Train.Size, RGB: d.Train.RGB[:n*image]})
	return in
}

func (f *benchFlags) report(be *backend.Backend, in ml.RoundInput, m winnow.Metrics, total float64) benchReport {
	steps := func(images int) int {
		return f.settings.Epochs * ((images + f.settings.Batch - 1) / f.settings.Batch)
	}
	both := m.LabeledKnown + m.LabeledUnknown + m.LabeledKnown // the detector's and the classifier's
	r := benchReport{
		Backend: be.Name(), Precision: string(be.Precision()), Data: f.data,
		LabeledKnown: m.LabeledKnown, LabeledUnknown: m.LabeledUnknown, Pool: in.Pool.Len(),
		Width: f.settings.Width, Epochs: f.settings.Epochs, Batch: f.settings.Batch,
		Steps:        steps(m.LabeledKnown+m.LabeledUnknown) + steps(m.LabeledKnown),
		TrainSeconds: m.TrainSeconds, ScoreSeconds: m.ScoreSeconds, QuerySeconds: m.QuerySeconds, TotalSeconds: total,
		TestImages: in.Test.N, Note: "times include compilation",
	}
	if f.data == "" {
		r.Data = "noise"
	}
	r.TrainImagesPerS = float64(both) * float64(f.settings.Epochs) / m.TrainSeconds
	r.TrainStepsPerS = float64(r.Steps) / m.TrainSeconds
	// Both networks see the pool, the detector the labeled images, the classifier the test.
	r.ScoreImagesPerS = float64(2*in.Pool.Len()+in.Labeled.N+in.Test.N) / m.ScoreSeconds
	if m.TestAccuracy != nil {
		r.TestAccuracy = 100 * *m.TestAccuracy
	}
	return r
}
