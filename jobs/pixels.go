package jobs

import (
	"context"
	"fmt"
	"runtime"

	"golang.org/x/sync/errgroup"

	"winnow"
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

// load reads what the round trains on and is tested with, and finds the pool that it
// queries.
func (w *roundWorker) load(ctx context.Context, round *winnow.Round) (in ml.RoundInput, pool *pool, err error) {
	in = ml.RoundInput{
		Settings: round.Settings, Classes: round.Classes, Number: round.Number, K: round.K, Seed: round.Seed,
	}
	in.Settings.Strategy = round.Strategy
	size := round.Settings.InputSize

	labeled, labels, err := w.images.TrainingSet(ctx, round.ProjectID, round.LabelVersion, round.Classes)
	if err != nil {
		return in, nil, err
	}
	test, testLabels, err := w.images.TestSet(ctx, round.ProjectID, round.LabelVersion)
	if err != nil {
		return in, nil, err
	}
	test, testLabels = below(round.Classes, test, testLabels)
	ids, err := w.images.PoolSet(ctx, round.ProjectID, round.LabelVersion, round.ImageVersion)
	if err != nil {
		return in, nil, err
	}
	if len(ids) == 0 {
		return in, nil, winnow.Errorf(winnow.CodeInvalid, "No image of the pool is left to ask about. Import images first.")
	}
	if in.Labeled, err = w.pixels(ctx, labeled, size); err != nil {
		return in, nil, err
	}
	if in.Test, err = w.pixels(ctx, test, size); err != nil {
		return in, nil, err
	}
	pool = newPool(w, round, ids)
	in.Labels, in.TestLabels, in.Pool = labels, testLabels, pool
	return in, pool, nil
}

// pixels reads the images as the networks see them, in the order of ids. It makes
// those that are not stored at this size from the originals, and stores them for the
// rounds to come.
func (w *roundWorker) pixels(ctx context.Context, ids []winnow.ImageID, size int) (nn.Images, error) {
	stride := size * size * 3
	images := nn.Images{N: len(ids), Size: size, RGB: make([]byte, len(ids)*stride)}
	missing, err := w.images.Pixels(ctx, ids, size, images.RGB)
	if err != nil || len(missing) == 0 {
		return images, err
	}
	w.log.Info("making pixels at a new input size", "images", len(missing), "size", size)
	at := make(map[winnow.ImageID]int, len(ids))
	for i, id := range ids {
		at[id] = i
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, id := range missing {
		g.Go(func() error {
			data, _, err := w.images.Original(ctx, id)
			if err != nil {
				return err
			}
			rgb, err := w.preparer.Pixels(ctx, data, size)
			if err != nil {
				return fmt.Errorf("make pixels of image %d: %w", id, err)
			}
			copy(images.RGB[at[id]*stride:], rgb)
			return w.images.PutPixels(ctx, id, size, rgb)
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
