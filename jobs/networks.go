package jobs

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"

	"winnow"
	"winnow/ml"
	"winnow/ml/nn"
	"winnow/ml/strategy"
)

// Networks is what a worker needs of the store to keep what it trained.
type Networks interface {
	SaveCheckpoints(ctx context.Context, id winnow.RoundID, attempt int, c winnow.Checkpoints) error
	Checkpoints(ctx context.Context, id winnow.RoundID) (winnow.Checkpoints, error)
}

// The names of the networks' checkpoints.
const (
	detectorName   = "detector"
	classifierName = "classifier"
)

func marshalNetworks(nets ml.Networks) (map[string][]byte, error) {
	checkpoints := make(map[string][]byte)
	for name, network := range map[string]*nn.Network{detectorName: nets.Detector, classifierName: nets.Classifier} {
		if network == nil {
			continue
		}
		data, err := network.MarshalBinary()
		if err != nil {
			return nil, fmt.Errorf("encode %s: %w", name, err)
		}
		checkpoints[name] = data
	}
	return checkpoints, nil
}

func unmarshalNetworks(checkpoints map[string][]byte) (nets ml.Networks, err error) {
	for name, network := range map[string]**nn.Network{detectorName: &nets.Detector, classifierName: &nets.Classifier} {
		data, ok := checkpoints[name]
		if !ok {
			continue
		}
		if *network, err = nn.UnmarshalNetwork(data); err != nil {
			return ml.Networks{}, fmt.Errorf("decode %s: %w", name, err)
		}
	}
	return nets, nil
}

// modelDigest names what scores a pool: the networks, to the bit, and which of their
// outputs are kept.
func modelDigest(checkpoints map[string][]byte, needs strategy.Needs) []byte {
	h := sha256.New()
	fmt.Fprintf(h, "%+v", needs)
	for _, name := range []string{detectorName, classifierName} {
		sum := sha256.Sum256(checkpoints[name])
		h.Write(sum[:])
	}
	return h.Sum(nil)
}

// trainingDigest names all that the networks of a round depend on. Pixels are not
// looked at: those of an image never change.
func trainingDigest(backend string, in ml.RoundInput, labeled, pool []winnow.ImageID) ([]byte, error) {
	h := sha256.New()
	err := json.NewEncoder(h).Encode(struct {
		Backend  string
		Settings winnow.Settings
		Classes  int
		Seed     int64
		Labeled  []winnow.ImageID
		Labels   []int
		Tested   bool
		Pool     int
	}{backend, in.Settings, in.Classes, in.Seed, labeled, in.Labels, len(in.TestLabels) > 0, len(pool)})
	if err != nil {
		return nil, fmt.Errorf("digest what is trained on: %w", err)
	}
	for _, id := range pool { // its mean and deviation
		fmt.Fprintln(h, id)
	}
	return h.Sum(nil), nil
}

// trained returns the networks of an earlier attempt at the round, if they are what
// training would give again.
func trained(ctx context.Context, store Networks, round *winnow.Round, training []byte, log *slog.Logger) (ml.Networks, error) {
	c, err := store.Checkpoints(ctx, round.ID)
	if err != nil || !bytes.Equal(c.Training, training) {
		return ml.Networks{}, err
	}
	nets, err := unmarshalNetworks(c.Networks)
	if err != nil {
		log.Warn("the networks of the attempt before cannot be read; training again", "error", err)
		return ml.Networks{}, nil
	}
	log.Info("the networks are trained already", "networks", len(c.Networks))
	return nets, nil
}
