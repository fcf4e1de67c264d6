package simulate

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

// colourOf is the colour of image i of class c: recognisable after decoding.
func colourOf(c, i int) color.RGBA { return color.RGBA{uint8(20 * c), uint8(10 * i), 100, 255} }

func pngOf(t *testing.T, size int, c color.Color) []byte {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, size, size))
	for i := range size * size {
		m.Set(i%size, i/size, c)
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// tree writes files by path.
func tree(t *testing.T, files map[string][]byte) string {
	t.Helper()
	dir := t.TempDir()
	for name, b := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// classFolders are 3 classes of 4 train and 2 test images.
func classFolders(t *testing.T) map[string][]byte {
	files := make(map[string][]byte)
	for c, class := range []string{"ant", "bee", "cat"} {
		for i := range 4 {
			files[fmt.Sprintf("train/%s/%d.png", class, i)] = pngOf(t, 8, colourOf(c, i))
		}
		for i := range 2 {
			files[fmt.Sprintf("test/%s/%d.png", class, i)] = pngOf(t, 8, colourOf(c, 10+i))
		}
	}
	return files
}

// load opens path and loads it as squares of 8 pixels.
func load(t *testing.T, path string, perClass int, known ...string) (*Source, *Data) {
	t.Helper()
	s, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var numbers []int
	for _, k := range known {
		c, err := s.Class(k)
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, c)
	}
	d, err := s.Load(t.Context(), numbers, perClass, 8, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s, d
}

func TestClassFolders(t *testing.T) {
	t.Parallel()
	files := classFolders(t)
	dir := tree(t, files)
	s, d := load(t, dir, 3, "Cat", "0")
	if diff := cmp.Diff([]string{"ant", "bee", "cat"}, s.Classes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{0, 0, 0, 1, 1, 1, 2, 2, 2}, d.TrainLabels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{2, 2, 0, 0}, d.TestLabels); diff != "" {
		t.Error(diff)
	}
	for i, want := range map[int]color.RGBA{0: colourOf(0, 0), 5: colourOf(1, 2), 8: colourOf(2, 2)} {
		if got := d.Train.At(i); got[0] != want.R || got[1] != want.G || got[2] != want.B {
			t.Errorf("train image %d is %v, want %v", i, got[:3], want)
		}
	}

	// The same in a ZIP, below a folder of its own.
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, data := range files {
		w, err := z.Create("animals/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	_, zipped := load(t, filepath.Join(tree(t, map[string][]byte{"a.zip": b.Bytes()}), "a.zip"), 3, "cat", "ant")
	if diff := cmp.Diff(d, zipped); diff != "" {
		t.Errorf("a ZIP differs: %s", diff)
	}
}

// cifar is a file of records: labels, then a plane a channel.
func cifar(labels int, classes ...int) []byte {
	var b []byte
	for i, c := range classes {
		b = append(b, make([]byte, labels-1)...)
		b = append(b, byte(c))
		for _, v := range []uint8{colourOf(c, i).R, colourOf(c, i).G, colourOf(c, i).B} {
			b = append(b, bytes.Repeat([]byte{v}, cifarPixels/3)...)
		}
	}
	return b
}

func TestCIFAR(t *testing.T) {
	t.Parallel()
	ten := map[string][]byte{
		"cifar-10-batches-bin/test_batch.bin":   cifar(1, 3, 8, 3),
		"cifar-10-batches-bin/batches.meta.txt": []byte("airplane\nautomobile\nbird\ncat\ndeer\ndog\nfrog\nhorse\nship\ntruck\n\n"),
	}
	for i := range 5 {
		ten[fmt.Sprintf("cifar-10-batches-bin/data_batch_%d.bin", i+1)] = cifar(1, i, 8, 3)
	}
	_, d := load(t, tree(t, ten), 0, "ship", "3")
	if diff := cmp.Diff([]int{0, 1, 2, 3, 3, 3, 3, 3, 3, 4, 8, 8, 8, 8, 8}, d.TrainLabels); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{8, 3, 3}, d.TestLabels); diff != "" {
		t.Error(diff)
	}
	if got, want := d.Test.At(0), colourOf(8, 1); got[0] != want.R || got[1] != want.G || got[2] != want.B {
		t.Errorf("the ship is %v, want %v", got[:3], want)
	}

	hundred := map[string][]byte{"train.bin": cifar(2, 99, 27), "test.bin": cifar(2, 27)}
	s, d := load(t, tree(t, hundred), 0, "27")
	if len(s.Classes) != 100 || d.Train.N != 2 || d.TrainLabels[0] != 27 || d.TestLabels[0] != 27 {
		t.Errorf("CIFAR-100: %+v %v", d.TrainLabels, d.TestLabels)
	}
}

func TestTinyImageNet(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 64)), nil); err != nil {
		t.Fatal(err)
	}
	s, d := load(t, tree(t, map[string][]byte{
		"train/n01/images/n01_0.JPEG": b.Bytes(),
		"train/n02/images/n02_0.JPEG": b.Bytes(),
		"val/images/val_0.JPEG":       b.Bytes(),
		"val/val_annotations.txt":     []byte("val_0.JPEG\tn02\t0\t0\t62\t62\nval_1.JPEG\tn99\t0\t0\t1\t1\n"),
		"words.txt":                   []byte("n01\tgoldfish, Carassius auratus\nn02\tEuropean fire salamander\n"),
	}), 0, "European fire salamander")
	if len(s.Classes) != 2 || d.Train.N != 2 || len(d.TestLabels) != 1 || d.TestLabels[0] != 1 {
		t.Errorf("%v %+v", s.Classes, d.TestLabels)
	}
}

func TestBadData(t *testing.T) {
	t.Parallel()
	folders := func(change func(map[string][]byte)) string {
		files := classFolders(t)
		change(files)
		return tree(t, files)
	}
	for name, c := range map[string]struct{ path, want string }{
		"nothing":        {"/nowhere", "cannot be read"},
		"no layout":      {tree(t, map[string][]byte{"readme.txt": nil}), "none of the known layouts"},
		"not a ZIP":      {filepath.Join(tree(t, map[string][]byte{"a.zip": []byte("no")}), "a.zip"), "neither a folder nor a ZIP"},
		"a broken image": {folders(func(f map[string][]byte) { f["train/bee/1.png"] = []byte("GIF89a") }), "train/bee/1.png"},
		"an empty class": {folders(func(f map[string][]byte) { delete(f, "test/ant/0.png"); delete(f, "test/ant/1.png") }), "no test images"},
		"half a record":  {tree(t, map[string][]byte{"train.bin": cifar(2, 1)[1:], "test.bin": cifar(2, 1)}), "whole records"},
		"a class beyond": {tree(t, map[string][]byte{"train.bin": cifar(2, 100), "test.bin": cifar(2, 1)}), "class 100"},
	} {
		err := func() error {
			s, err := Open(c.path)
			if err != nil {
				return err
			}
			defer s.Close()
			_, err = s.Load(t.Context(), []int{0}, 0, 8, nil)
			return err
		}()
		if winnow.ErrorCode(err) != winnow.CodeInvalid || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want it to say %q", name, err, c.want)
		}
	}
	s, _ := load(t, folders(func(map[string][]byte) {}), 0, "ant")
	for _, bad := range []string{"dog", "3", "-1", ""} {
		if _, err := s.Class(bad); winnow.ErrorCode(err) != winnow.CodeInvalid {
			t.Errorf("class %q: %v", bad, err)
		}
	}
}

func TestConfusion(t *testing.T) {
	t.Parallel()
	classes := []string{"ant", "bee", "cat"}
	read := func(text string) (*Confusion, error) { return ReadConfusion(strings.NewReader(text), classes) }
	c, err := read("majority,cat,ant,bee\nbee,1,0,3\nant,0,5,0\ncat,2,1,1\n")
	if err != nil {
		t.Fatal(err)
	}
	want := [][]float64{{1, 0, 0}, {0, 0.75, 0.25}, {0.25, 0.25, 0.5}}
	if diff := cmp.Diff(want, c.Share); diff != "" {
		t.Error(diff)
	}
	for name, text := range map[string]string{
		"empty":         "",
		"no rows":       "m,ant,bee,cat\n",
		"unknown row":   "m,ant,bee,cat\ndog,1,1,1\n",
		"unknown col":   "m,ant,bee,dog\nant,1,1,1\n",
		"twice":         "m,ant,bee,cat\nant,1,1,1\nant,1,1,1\n",
		"negative":      "m,ant,bee,cat\nant,1,-1,1\n",
		"text":          "m,ant,bee,cat\nant,1,x,1\n",
		"NaN":           "m,ant,bee,cat\nant,1,NaN,1\n",
		"zeros":         "m,ant,bee,cat\nant,0,0,0\n",
		"a row missing": "m,ant,bee,cat\nant,1,0,0\nbee,1,0,0\n",
		"ragged":        "m,ant,bee,cat\nant,1\n",
	} {
		if _, err := read(text); winnow.ErrorCode(err) != winnow.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}

	// An oracle with a confusion errs in those shares, and repeats itself.
	o := &oracle{truth: make([]int, 20000), index: map[int]int{0: 0, 1: 1}, confusion: c}
	for i := range o.truth {
		o.truth[i] = 2 // cat is not a known class
	}
	count := make([]float64, 3)
	for i := range o.truth {
		l := o.label(i, 7)
		if l != o.label(i, 7) {
			t.Fatal("an annotator changes their mind")
		}
		count[l] += 1. / float64(len(o.truth))
	}
	for l, want := range []float64{0.25, 0.25, 0.5} {
		if d := count[l] - want; d > 0.02 || d < -0.02 {
			t.Errorf("label %d has a share of %v, want %v", l, count[l], want)
		}
	}
}
