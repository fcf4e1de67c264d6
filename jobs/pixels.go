package jobs

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"

	"golang.org/x/sync/errgroup"

	"winnow"
	"winnow/imaging"
	"winnow/ml"
	"winnow/ml/nn"
)

// Images is what a worker needs of the store to load what a round trains on.
type Images interface {
	TrainingSet(ctx context.Context, project winnow.ProjectID, upTo winnow.EventID, classes int) (ids []winnow.ImageID, labels []int, err error)
	PoolSet(ctx context.Context, project winnow.ProjectID, upTo winnow.EventID, last winnow.ImageID) ([]winnow.ImageID, error)
	TestSet(ctx context.Context, project winnow.ProjectID, upTo winnow.EventID) (ids []winnow.ImageID, labels []int, err error)
	Pixels(ctx context.Context, ids []winnow.ImageID, size int, dst []byte) (missing []winnow.ImageID, err error)
	PutPixels(ctx context.Context, id winnow.ImageID, size int, rgb []byte) error
	Original(ctx context.Context, id winnow.ImageID) (data []byte, mediaType string, err error)
}

// reader reads the pixels of images.
type reader struct {
	images   Images
	preparer *imaging.Preparer
	pace     pace
	log      *slog.Logger
}

// load reads what the round trains on and is tested with, and finds the pool that it
// queries. Training names what its networks depend on.
func (w *roundWorker) load(ctx context.Context, round *winnow.Round) (in ml.RoundInput, queried *pool, training []byte, err error) {
	in = ml.RoundInput{
		Settings: round.Settings, Classes: round.Classes, Number: round.Number, K: round.K, Seed: round.Seed,
	}
	in.Settings.Strategy = round.Strategy
	size := round.Settings.InputSize

	labeled, labels, err := w.store.TrainingSet(ctx, round.ProjectID, round.LabelVersion, round.Classes)
	if err != nil {
		return in, nil, nil, err
	}
	test, testLabels, err := w.store.TestSet(ctx, round.ProjectID, round.LabelVersion)
	if err != nil {
		return in, nil, nil, err
	}
	test, testLabels = below(round.Classes, test, testLabels)
	ids, err := w.store.PoolSet(ctx, round.ProjectID, round.LabelVersion, round.ImageVersion)
	if err != nil {
		return in, nil, nil, err
	}
	if len(ids) == 0 {
		return in, nil, nil, winnow.Errorf(winnow.CodeInvalid, "No image of the pool is left to ask about. Import images first.")
	}
	if in.Labeled, err = w.scoring.reader.pixels(ctx, labeled, size); err != nil {
		return in, nil, nil, err
	}
	if in.Test, err = w.scoring.reader.pixels(ctx, test, size); err != nil {
		return in, nil, nil, err
	}
	queried = &pool{scoring: w.scoring, round: round, ids: ids}
	in.Labels, in.TestLabels, in.Pool = labels, testLabels, queried
	training, err = trainingDigest(w.trainer.Name(), in, labeled, ids)
	return in, queried, training, err
}

// pixels reads the images as the networks see them, in the order of ids. It makes
// those that are not stored at this size from the originals, and stores them for the
// rounds to come.
func (r *reader) pixels(ctx context.Context, ids []winnow.ImageID, size int) (nn.Images, error) {
	stride := size * size * 3
	images := nn.Images{N: len(ids), Size: size, RGB: make([]byte, len(ids)*stride)}
	var missing []winnow.ImageID
	err := persist(ctx, r.pace, r.log, func() (err error) {
		missing, err = r.images.Pixels(ctx, ids, size, images.RGB)
		return err
	})
	if err != nil || len(missing) == 0 {
		return images, err
	}
	r.log.Info("making pixels at a new input size", "images", len(missing), "size", size)
	at := make(map[winnow.ImageID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, id := range missing {
		g.Go(func() error {
			data, _, err := r.images.Original(ctx, id)
			if err != nil {
				return err
			}
			rgb, err := r.preparer.Pixels(ctx, data, size)
			if err != nil {
				return fmt.Errorf("make pixels of image %d: %w", id, err)
			}
			copy(images.RGB[at[id]*stride:], rgb)
			return r.images.PutPixels(ctx, id, size, rgb)
		})
	}
	return images, g.Wait()
}

// below keeps the images of classes that the round knows: a class may have been
// added since it was queued.
func below(classes int, ids []winnow.ImageID, labels []int) ([]winnow.ImageID, []int) {
	n := 0
	for i, label := range labels {
		if label < classes {
			ids[n], labels[n] = ids[i], label
			n++
		}
	}
	return ids[:n], labels[:n]
}
