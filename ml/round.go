// Package ml runs the machine's part of a round: train the networks on what is
// labeled, score the pool, and choose what to label next. It takes slices, a seed and
// a progress callback, and knows no database and no HTTP.
package ml

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"winnow"
	"winnow/ml/backend"
	"winnow/ml/eaoa"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// RoundInput is all that a round depends on: the same input gives the same query on
// one backend.
type RoundInput struct {
	Settings winnow.Settings
	Classes  int // C
	Number   int // of the round
	K        float64
	Seed     int64

	Labeled    nn.Images
	Labels     []int // 0..C-1, C for unknown
	Pool       Pool
	Test       nn.Images
	TestLabels []int // known classes only

	// Trained are networks of an earlier attempt at the same round; they are not trained
	// again.
	Trained Networks
	// Keep, if not nil, is given the networks as soon as any was trained, before the pool
	// is scored.
	Keep func(ctx context.Context, nets Networks) error
}

// Choice is one image of the query: an index into the pool, and why.
type Choice struct {
	Index  int
	Scores winnow.Scores
}

// RoundOutput is the query in rank order, the figures, and the networks.
type RoundOutput struct {
	Query     []Choice
	ColdStart bool
	Metrics   winnow.Metrics
	Networks
}

// RunRound trains what the strategy needs, and the classifier whenever there are test
// images; scores the pool; and queries it.
//
// Without any labeled image of a known class there is nothing to train: the query is a
// seeded random draw (ColdStart). While no unknown is labeled the detector is trained
// by cross-entropy alone. A known class that has no labeled image yet keeps its place
// in both networks, which learn not to answer it; its images are found by how little
// the networks are sure of them, and the round goes on.
//
// Progress, if not nil, is called from one goroutine at a time. Errors: those of
// nn.Train, of the pool and of the strategy, with what was being done;
// winnow.CodeInvalid for an empty pool; ctx's error.
func RunRound(ctx context.Context, be *backend.Backend, in RoundInput, progress func(winnow.Progress)) (*RoundOutput, error) {
	if err := in.validate(); err != nil {
		return nil, err
	}
	chosen, err := strategy.ByName(in.Settings.Strategy)
	if err != nil {
		return nil, err
	}
	out := &RoundOutput{Metrics: winnow.Metrics{PoolSize: in.Pool.Len(), TestImages: in.Test.N}}
	for _, label := range in.Labels {
		if label < in.Classes {
			out.Metrics.LabeledKnown++
		} else {
			out.Metrics.LabeledUnknown++
		}
	}
	if out.Metrics.LabeledKnown == 0 {
		out.ColdStart = true
		chosen = strategy.Random{}
	}

	r := round{in: in, be: be, needs: chosen.Needs(), meter: newMeter(progress)}
	if err := r.train(ctx, out); err != nil {
		return nil, err
	}
	query := strategy.Input{
		Settings: in.Settings, Classes: in.Classes, Round: in.Number, K: in.K, Seed: in.Seed,
		Pool: in.Pool.Len(), Labels: in.Labels,
	}
	if err := r.score(ctx, out, &query); err != nil {
		return nil, err
	}

	r.meter.stage("querying", "")
	start := time.Now()
	q, err := chosen.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("query by %s: %w", chosen.Name(), err)
	}
	out.Metrics.QuerySeconds = time.Since(start).Seconds()
	out.Query = make([]Choice, len(q.Selected))
	for rank, index := range q.Selected {
		out.Query[rank] = Choice{Index: index, Scores: winnow.Scores{Predicted: -1}}
		if q.Scores != nil {
			out.Query[rank].Scores = q.Scores[rank]
		}
	}
	r.meter.done()
	return out, nil
}

func (in *RoundInput) validate() error {
	switch {
	case in.Pool == nil || in.Pool.Len() == 0:
		return winnow.Invalid("pool", "No unlabeled image is left to query.")
	case in.Classes < 1:
		return winnow.Invalid("classes", "A round needs at least one known class.")
	case len(in.Labels) != in.Labeled.N || len(in.TestLabels) != in.Test.N:
		return winnow.Errorf(winnow.CodeInternal, "%d labeled and %d test images have %d and %d labels.",
			in.Labeled.N, in.Test.N, len(in.Labels), len(in.TestLabels))
	}
	for _, label := range in.Labels {
		if label < 0 || label > in.Classes {
			return winnow.Errorf(winnow.CodeInternal, "Label %d is out of range; there are %d classes.", label, in.Classes)
		}
	}
	return nil
}

// round is one RunRound at work.
type round struct {
	in    RoundInput
	be    *backend.Backend
	needs strategy.Needs
	meter *meter
}

// job is one network to train.
type job struct {
	name   string
	cfg    nn.Config
	images nn.Images
	labels []int
	into   **nn.Network
}

// train trains the networks needed. On the pure-Go backend both at once, since a single
// training does not fill several cores; elsewhere one after the other: they fill their
// device with one, and on ONNX Runtime two at once took longer by a tenth.
func (r *round) train(ctx context.Context, out *RoundOutput) error {
	start := time.Now()
	jobs, err := r.jobs(ctx, out)
	if err != nil {
		return err
	}
	r.expect(jobs, out)
	if len(jobs) > 0 {
		r.meter.stage("training", jobs[0].name)
	}
	// A network that fails stops the other, and its error is the one reported.
	group, gctx := errgroup.WithContext(ctx)
	if r.be.Kind() != backend.Go {
		group.SetLimit(1)
	}
	for _, j := range jobs {
		group.Go(func() error {
			net, err := nn.Train(gctx, r.be, j.cfg, j.images, j.labels, r.meter.training(j.name, j.images.N))
			if err != nil {
				return fmt.Errorf("train the %s: %w", j.name, err)
			}
			*j.into = net
			return nil
		})
	}
	err = group.Wait()
	out.Metrics.TrainSeconds = time.Since(start).Seconds()
	if err != nil || len(jobs) == 0 || r.in.Keep == nil {
		return err
	}
	if err := r.in.Keep(ctx, out.Networks); err != nil {
		return fmt.Errorf("keep the networks: %w", err)
	}
	return nil
}

// expect announces the round's work to the meter.
func (r *round) expect(jobs []job, out *RoundOutput) {
	for _, j := range jobs {
		r.meter.expect(trainingCost * j.images.N * j.cfg.Passes(j.images.N))
	}
	r.meter.expect(r.scorings() * r.in.Pool.Len())
	for _, needed := range []bool{r.needs.DetectorFeatures, r.needs.ClassifierFeatures} {
		if needed {
			r.meter.expect(r.in.Labeled.N)
		}
	}
	if !out.ColdStart {
		r.meter.expect(r.in.Test.N)
	}
}

// scorings is how often each image of the pool is scored.
func (r *round) scorings() int {
	n := 0
	for _, needed := range []bool{r.needs.Detector(), r.needs.Classifier()} {
		if needed {
			n++
		}
	}
	return n
}

// jobs lists the networks that are still to train: the detector on everything labeled,
// with C+1 outputs, and the classifier on the knowns, with C. Test images alone ask
// for a classifier, too.
func (r *round) jobs(ctx context.Context, out *RoundOutput) ([]job, error) {
	out.Networks = r.in.Trained
	detector := r.needs.Detector() && out.Detector == nil
	classifier := (r.needs.Classifier() || r.in.Test.N > 0 && !out.ColdStart) && out.Classifier == nil
	if !detector && !classifier {
		return nil, nil
	}
	s := r.in.Settings
	mean, std, err := meanStd(ctx, r.in.Pool)
	if err != nil {
		return nil, err
	}
	base := recipe(s)
	base.AllowEmpty, base.Mean, base.Std = true, mean, std
	var jobs []job
	if detector {
		cfg := base
		cfg.Outputs, cfg.Seed = r.in.Classes+1, deriveSeed(r.in.Seed, 1)
		if out.Metrics.LabeledUnknown > 0 {
			cfg.Energy = &nn.Energy{Weight: s.EnergyWeight, MarginKnown: s.MarginKnown, MarginUnknown: s.MarginUnknown}
		}
		jobs = append(jobs, job{"detector", cfg, r.in.Labeled, r.in.Labels, &out.Detector})
	}
	if classifier {
		cfg := base
		cfg.Outputs, cfg.Seed = r.in.Classes, deriveSeed(r.in.Seed, 2)
		images, labels := r.in.knowns()
		jobs = append(jobs, job{"classifier", cfg, images, labels, &out.Classifier})
	}
	return jobs, nil
}

// knowns are the labeled images of known classes.
func (in *RoundInput) knowns() (nn.Images, []int) {
	images := nn.Images{Size: in.Labeled.Size}
	var labels []int
	for i, label := range in.Labels {
		if label < in.Classes {
			images.RGB = append(images.RGB, in.Labeled.At(i)...)
			labels = append(labels, label)
		}
	}
	images.N = len(labels)
	return images, labels
}

// score runs the networks over the pool, the labeled and the test images, plain, each
// as far as anybody reads what they say.
func (r *round) score(ctx context.Context, out *RoundOutput, q *strategy.Input) error {
	start := time.Now()
	if r.scorings() > 0 || out.Classifier != nil {
		r.meter.stage("scoring", "")
	}
	if r.scorings() > 0 {
		report := r.meter.scoringPool(r.scorings(), r.in.Pool.Len())
		pool, err := r.in.Pool.Score(ctx, out.Networks, r.needs, report)
		if err != nil {
			return err
		}
		q.PoolDetectorLogits, q.PoolDetectorFeatures = pool.DetectorLogits, pool.DetectorFeatures
		q.PoolClassifierLogits, q.PoolClassifierFeatures = pool.ClassifierLogits, pool.ClassifierFeatures
	}
	infer := func(name string, net *nn.Network, images nn.Images) (logits, features eaoa.Matrix, err error) {
		o, err := net.Infer(ctx, r.be, images, r.meter.scoring())
		if err != nil {
			return logits, features, fmt.Errorf("score with the %s: %w", name, err)
		}
		return eaoa.Matrix{Rows: o.N, Cols: o.Outputs, Data: o.Logits}, eaoa.Matrix{Rows: o.N, Cols: o.Features, Data: o.Feature}, nil
	}
	var err error
	if r.needs.DetectorFeatures {
		if _, q.LabeledDetectorFeatures, err = infer("detector", out.Detector, r.in.Labeled); err != nil {
			return err
		}
	}
	if r.needs.ClassifierFeatures {
		if _, q.LabeledClassifierFeatures, err = infer("classifier", out.Classifier, r.in.Labeled); err != nil {
			return err
		}
	}
	if r.in.Test.N > 0 && out.Classifier != nil {
		logits, _, err := infer("classifier", out.Classifier, r.in.Test)
		if err != nil {
			return err
		}
		accuracy := accuracy(logits, r.in.TestLabels)
		out.Metrics.TestAccuracy = &accuracy
	}
	out.Metrics.ScoreSeconds = time.Since(start).Seconds()
	return nil
}

// accuracy is the share of rows whose largest logit is at their label.
func accuracy(logits eaoa.Matrix, labels []int) float64 {
	right := 0
	for i, label := range labels {
		row := logits.Row(i)
		if slices.Index(row, slices.Max(row)) == label {
			right++
		}
	}
	return float64(right) / float64(len(labels))
}

// deriveSeed gives the networks of a round seeds of their own (SplitMix64).
func deriveSeed(seed int64, network uint64) int64 {
	z := uint64(seed) + network*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int64(z ^ z>>31)
}
