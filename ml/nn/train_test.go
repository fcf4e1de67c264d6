package nn

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"winnow"
	"winnow/ml/backend"
)

// openGo opens the pure-Go backend.
func openGo(t testing.TB) *backend.Backend {
	t.Helper()
	be, err := backend.Open(backend.Default)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(be.Close)
	return be
}

// others opens the backends that are present besides the pure-Go one.
func others(t testing.TB) []*backend.Backend {
	t.Helper()
	var open []*backend.Backend
	for _, in := range backend.List() {
		if !in.Present || in.Name == backend.Default {
			continue
		}
		be, err := backend.Open(in.Name)
		if err != nil { // a plugin without its device, for one
			t.Logf("%s is left out: %v", in.Name, err)
			continue
		}
		t.Cleanup(be.Close)
		open = append(open, be)
	}
	return open
}

// noise draws images of noise.
func noise(n, size int, seed uint64) Images {
	rng := rand.New(rand.NewPCG(seed, 0))
	im := Images{N: n, Size: size, RGB: make([]byte, n*size*size*3)}
	for i := range im.RGB {
		im.RGB[i] = byte(rng.IntN(256))
	}
	return im
}

// cycle gives n labels 0, 1, ..., classes-1, 0, ...
func cycle(n, classes int) []int {
	labels := make([]int, n)
	for i := range labels {
		labels[i] = i % classes
	}
	return labels
}

// tiny is a configuration that trains in no time.
func tiny() Config {
	return Config{
		Outputs: 3, Width: 2, InputSize: 8, Epochs: 2, Batch: 4, LearningRate: 0.05, LRGamma: 0.5, LRStep: 1,
		Momentum: 0.9, WeightDecay: 5e-4, CropPad: 1, Flip: true, Std: [3]float64{1, 1, 1}, Seed: 1,
	}
}

func checkpoint(t *testing.T, n *Network) []byte {
	t.Helper()
	data, err := n.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A network with room to do so learns noise by heart, and scoring gives back the labels.
func TestTrainLearns(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images, labels := noise(18, 12, 1), cycle(18, 3)
	cfg := tiny()
	cfg.InputSize, cfg.Width, cfg.Epochs, cfg.LRStep, cfg.Batch, cfg.CropPad, cfg.Flip = 12, 6, 40, 30, 6, 0, false
	var losses []float64
	net, err := Train(t.Context(), be, cfg, images, labels, func(p Progress) {
		if p.EpochDone {
			losses = append(losses, p.Loss)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(losses) != cfg.Epochs || !(losses[len(losses)-1] < losses[0]/2) {
		t.Errorf("the losses are %v", losses)
	}
	out, err := net.Infer(t.Context(), be, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i, label := range labels {
		row := out.Logits[i*3 : i*3+3]
		if row[label] == max(row[0], row[1], row[2]) {
			right++
		}
	}
	if right < 16 {
		t.Errorf("%d of 18 images are right", right)
	}
}

func TestTrainReproducible(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images, labels := noise(10, 8, 2), cycle(10, 3) // batches of 4, 4 and 2
	train := func(seed int64) []byte {
		cfg := tiny()
		cfg.Seed = seed
		net, err := Train(t.Context(), be, cfg, images, labels, nil)
		if err != nil {
			t.Fatal(err)
		}
		return checkpoint(t, net)
	}
	first := train(1)
	if !bytes.Equal(first, train(1)) {
		t.Error("the same seed gives another network")
	}
	if bytes.Equal(first, train(2)) {
		t.Error("another seed gives the same network")
	}
}

// Several networks trained at once on one backend neither disturb each other nor wait
// for each other for ever.
func TestTrainConcurrently(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images, labels := noise(10, 8, 2), cycle(10, 3)
	checkpoints := make([][]byte, 4)
	var wg sync.WaitGroup
	for i := range checkpoints {
		wg.Go(func() {
			net, err := Train(t.Context(), be, tiny(), images, labels, nil)
			if err != nil {
				t.Error(err)
				return
			}
			checkpoints[i] = checkpoint(t, net)
		})
	}
	wg.Wait()
	for _, c := range checkpoints[1:] {
		if !bytes.Equal(c, checkpoints[0]) {
			t.Error("networks trained side by side differ")
		}
	}
}

// One image in a batch leaves single values to normalise in the last stage.
func TestTrainOneImage(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	cfg := tiny()
	cfg.Outputs, cfg.AllowEmpty = 2, true
	cfg.Energy = &Energy{Weight: 0.01, MarginKnown: -25, MarginUnknown: -7}
	net, err := Train(t.Context(), be, cfg, noise(1, 8, 3), []int{1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Infer(t.Context(), be, noise(1, 8, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range append(out.Logits, out.Feature...) {
		if f := float64(v); math.IsNaN(f) || math.IsInf(f, 0) {
			t.Fatalf("logits %v, features %v", out.Logits, out.Feature)
		}
	}
}

func TestTrainErrors(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	tests := []struct {
		name   string
		change func(cfg *Config, images *Images, labels *[]int)
		code   winnow.Code
		says   string
	}{
		{"diverges", func(c *Config, _ *Images, _ *[]int) { c.LearningRate = 1e30 }, winnow.CodeInvalid, "at step 2 of"},
		{"diverges in the last step", func(c *Config, _ *Images, _ *[]int) { c.LearningRate, c.Epochs, c.Batch = 1e38, 1, 64 }, winnow.CodeInvalid, "after step 1"},
		{"too small", func(c *Config, im *Images, _ *[]int) { c.InputSize = 7; *im = noise(10, 7, 1) }, winnow.CodeInvalid, "at least 8 pixels"},
		{"no width", func(c *Config, _ *Images, _ *[]int) { c.Width = 0 }, winnow.CodeInvalid, "width"},
		{"class without examples", func(c *Config, _ *Images, _ *[]int) { c.Outputs = 4 }, winnow.CodeInvalid, "Class 3 of 4 has no example"},
		{"no images", func(_ *Config, im *Images, l *[]int) { *im, *l = Images{Size: 8}, nil }, winnow.CodeInvalid, "no labeled images"},
		{"label out of range", func(_ *Config, _ *Images, l *[]int) { (*l)[0] = 3 }, winnow.CodeInternal, "label 3"},
		{"negative label", func(_ *Config, _ *Images, l *[]int) { (*l)[0] = -1 }, winnow.CodeInternal, "label -1"},
		{"labels missing", func(_ *Config, _ *Images, l *[]int) { *l = (*l)[1:] }, winnow.CodeInternal, "9 labels"},
		{"bytes missing", func(_ *Config, im *Images, _ *[]int) { im.RGB = im.RGB[1:] }, winnow.CodeInternal, "bytes"},
		{"another size", func(c *Config, _ *Images, _ *[]int) { c.InputSize = 16 }, winnow.CodeInternal, "8 pixels a side"},
		{"no epochs", func(c *Config, _ *Images, _ *[]int) { c.Epochs = 0 }, winnow.CodeInvalid, "epoch"},
		{"no deviation", func(c *Config, _ *Images, _ *[]int) { c.Std[1] = 0 }, winnow.CodeInternal, "positive"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			cfg, images, labels := tiny(), noise(10, 8, 1), cycle(10, 3)
			tt.change(&cfg, &images, &labels)
			_, err := Train(t.Context(), be, cfg, images, labels, nil)
			if winnow.ErrorCode(err) != tt.code || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("the error is %q (%s), want %q (%s)", err, winnow.ErrorCode(err), tt.says, tt.code)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images, labels := noise(10, 8, 1), cycle(10, 3)
	ctx, cancel := context.WithCancel(t.Context())
	steps := 0
	_, err := Train(ctx, be, tiny(), images, labels, func(Progress) {
		steps++
		cancel()
	})
	if !errors.Is(err, context.Canceled) || steps != 1 {
		t.Errorf("training ends with %v after %d steps", err, steps)
	}
	net, err := Train(t.Context(), be, tiny(), images, labels, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := net.Infer(ctx, be, images, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("scoring ends with %v", err)
	}
}

// However images are cut into batches, each gets the same scores.
func TestInferBatches(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images := noise(2*inferBatch+5, 8, 1)
	net, err := Train(t.Context(), be, tiny(), noise(10, 8, 1), cycle(10, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	reported := 0
	all, err := net.Infer(t.Context(), be, images, func(done, total int) {
		if done <= reported || total != images.N {
			t.Errorf("progress %d of %d after %d", done, total, reported)
		}
		reported = done
	})
	if err != nil {
		t.Fatal(err)
	}
	if reported != images.N || len(all.Logits) != images.N*3 || len(all.Feature) != images.N*net.Features() {
		t.Errorf("%d images reported, %d logits, %d features", reported, len(all.Logits), len(all.Feature))
	}
	for _, i := range []int{0, inferBatch, images.N - 1} {
		one, err := net.Infer(t.Context(), be, Images{N: 1, Size: 8, RGB: images.At(i)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for j, v := range one.Logits {
			if math.Abs(float64(v-all.Logits[i*3+j])) > 1e-4 {
				t.Errorf("image %d alone has logits %v, among others %v", i, one.Logits, all.Logits[i*3:i*3+3])
				break
			}
		}
	}
	if none, err := net.Infer(t.Context(), be, Images{Size: 8}, nil); err != nil || none.N != 0 {
		t.Errorf("no images give %+v, %v", none, err)
	}
	if _, err := net.Infer(t.Context(), be, noise(1, 9, 1), nil); winnow.ErrorCode(err) != winnow.CodeInternal {
		t.Errorf("images of another size give %v", err)
	}
}

func TestCheckpoint(t *testing.T) {
	t.Parallel()
	be := openGo(t)
	images := noise(10, 8, 1)
	cfg := tiny()
	cfg.Mean, cfg.Std = MeanStd(images)
	net, err := Train(t.Context(), be, cfg, images, cycle(10, 3), nil)
	if err != nil {
		t.Fatal(err)
	}
	data := checkpoint(t, net)
	again, err := UnmarshalNetwork(data)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(data, checkpoint(t, again)) {
		t.Error("a checkpoint read and written differs")
	}
	want, err := net.Infer(t.Context(), be, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := again.Infer(t.Context(), be, images, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range want.Logits {
		if want.Logits[i] != got.Logits[i] {
			t.Fatal("the network read scores differently")
		}
	}
}

func TestUnmarshalDamaged(t *testing.T) {
	t.Parallel()
	cfg := tiny()
	net := &Network{Outputs: cfg.Outputs, Width: cfg.Width, InputSize: cfg.InputSize, Std: cfg.Std}
	net.weights, net.stats = initialise(cfg, rand.New(rand.NewPCG(1, 1)))
	data := checkpoint(t, net)
	damaged := map[string][]byte{
		"empty":       nil,
		"not one":     []byte(strings.Repeat("PNG ", 100)),
		"cut":         data[:len(data)/2],
		"cut by one":  data[:len(data)-1],
		"longer":      append(bytes.Clone(data), 0),
		"header only": data[:20],
	}
	for _, at := range []int{4, 8, 12, 16, 20, len(data) / 2, len(data) - 1} {
		d := bytes.Clone(data)
		d[at] ^= 0x40
		damaged["bit at "+string(rune('a'+len(damaged)))] = d
	}
	net.weights[0][0] = float32(math.NaN())
	damaged["NaN"] = checkpoint(t, net)
	for name, d := range damaged {
		if _, err := UnmarshalNetwork(d); winnow.ErrorCode(err) != winnow.CodeInvalid {
			t.Errorf("%s: %v, want %s", name, err, winnow.CodeInvalid)
		}
	}
}

func FuzzUnmarshalNetwork(f *testing.F) {
	cfg := tiny()
	net := &Network{Outputs: cfg.Outputs, Width: 1, InputSize: cfg.InputSize, Std: cfg.Std}
	cfg.Width = 1
	net.weights, net.stats = initialise(cfg, rand.New(rand.NewPCG(1, 1)))
	data, err := net.MarshalBinary()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add(data[:100])
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := UnmarshalNetwork(data)
		if err != nil {
			return
		}
		if again, err := n.MarshalBinary(); err != nil || !bytes.Equal(again, data) {
			t.Errorf("what was read is written differently: %v", err)
		}
	})
}

func TestMeanStd(t *testing.T) {
	t.Parallel()
	im := Images{N: 1, Size: 2, RGB: []byte{0, 10, 255, 255, 10, 0, 0, 10, 255, 255, 10, 0}}
	mean, std := MeanStd(im)
	near(t, "mean", mean[:], []float64{0.5, 10. / 255, 0.5}, 1e-12)
	near(t, "std", std[:], []float64{0.5, 1, 0.5}, 1e-12)
	if mean, std := MeanStd(Images{}); mean != [3]float64{} || std != [3]float64{1, 1, 1} {
		t.Errorf("no images have mean %v and deviation %v", mean, std)
	}
}

// place crops, mirrors and normalises; what lies outside of the image is black.
func TestPlace(t *testing.T) {
	t.Parallel()
	const size = 2
	rgb := []byte{1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4}
	table := newNormalizer([3]float64{}, [3]float64{1. / 255, 1. / 255, 1. / 255}) // values as they are
	tests := []struct {
		v    view
		want []float32
	}{
		{view{}, []float32{1, 2, 3, 4}},
		{view{flip: true}, []float32{2, 1, 4, 3}},
		{view{dy: 1}, []float32{3, 4, 0, 0}},
		{view{dx: -1}, []float32{0, 1, 0, 3}},
		{view{dy: -1, dx: 1}, []float32{0, 0, 2, 0}},
		{view{dx: -1, flip: true}, []float32{1, 0, 3, 0}},
	}
	for _, tt := range tests {
		dst := make([]float32, 3*2*size*size)
		l := layout{offset: 0, channel: 2 * size * size, image: size * size, row: size, pixel: 1}
		table.place(dst, l, 1, rgb, size, tt.v)
		for c := range 3 {
			for i, want := range tt.want {
				if got := dst[c*l.channel+l.image+i]; math.Abs(float64(got-want)) > 1e-5 {
					t.Errorf("%+v: channel %d pixel %d is %v, want %v", tt.v, c, i, got, want)
				}
			}
		}
	}
}

// Views are drawn over the whole range and both ways.
func TestDraw(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	seen := map[view]int{}
	for range 2000 {
		seen[draw(rng, 1, true)]++
	}
	if len(seen) != 3*3*2 {
		t.Errorf("%d of 18 views were drawn", len(seen))
	}
	if v := draw(rng, 0, false); v != (view{}) {
		t.Errorf("without augmentation the view is %+v", v)
	}
}
