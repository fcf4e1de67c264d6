package nn

import (
	"archive/zip"
	"image"
	_ "image/png" // the images' format
	"path"
	"slices"
	"strings"
	"testing"
)

// cifarMini reads up to perClass images of each class from a split of
// ../shared/data/cifar10-mini.zip, or skips the test.
func cifarMini(t *testing.T, split string, classes []string, perClass int) (Images, []int) {
	t.Helper()
	z, err := zip.OpenReader("../../../shared/data/cifar10-mini.zip")
	if err != nil {
		t.Skip("no ../shared/data/cifar10-mini.zip:", err)
	}
	defer z.Close()
	images, counts := Images{Size: 32}, make([]int, len(classes))
	var labels []int
	for _, f := range z.File {
		label := slices.Index(classes, path.Base(path.Dir(f.Name)))
		if !strings.Contains(f.Name, split+"/") || !strings.HasSuffix(f.Name, ".png") || label < 0 || counts[label] == perClass {
			continue
		}
		counts[label]++
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		img, _, err := image.Decode(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		for y := range 32 {
			for x := range 32 {
				r, g, b, _ := img.At(x, y).RGBA()
				images.RGB = append(images.RGB, byte(r>>8), byte(g>>8), byte(b>>8))
			}
		}
		labels = append(labels, label)
	}
	images.N = len(labels)
	return images, labels
}

// A short training on real photographs is clearly better than chance, which is 0.5.
func TestCIFAR(t *testing.T) {
	if testing.Short() {
		t.Skip("trains on real images")
	}
	t.Parallel()
	be := openGo(t)
	classes := []string{"ship", "horse"}
	train, labels := cifarMini(t, "train", classes, 60)
	test, want := cifarMini(t, "test", classes, 40)
	if train.N == 0 || test.N == 0 {
		t.Fatal("the archive has no images where they were expected")
	}
	cfg := tiny()
	cfg.Outputs, cfg.InputSize, cfg.Width, cfg.Epochs, cfg.Batch, cfg.LRStep, cfg.CropPad = 2, 32, 8, 12, 16, 8, 2
	cfg.Mean, cfg.Std = MeanStd(train)
	net, err := Train(t.Context(), be, cfg, train, labels, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := net.Infer(t.Context(), be, test, nil)
	if err != nil {
		t.Fatal(err)
	}
	right := 0
	for i, label := range want {
		if row := out.Logits[i*2 : i*2+2]; row[label] > row[1-label] {
			right++
		}
	}
	accuracy := float64(right) / float64(test.N)
	t.Logf("accuracy %.3f of %d images", accuracy, test.N)
	if accuracy < 0.65 {
		t.Errorf("accuracy %.3f after training on %d photographs, want at least 0.65", accuracy, train.N)
	}
}
