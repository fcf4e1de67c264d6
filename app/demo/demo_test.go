package demo

import (
	"bytes"
	"context"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"strings"
	"testing"

	"winnow/imaging"
)

var sheet = flag.String("sheet", "", "write a contact sheet of the demo images to this PNG file")

// TestContactSheet draws the sheet that a person looks at after a change of the
// shapes: a row a class.
func TestContactSheet(t *testing.T) {
	if *sheet == "" {
		t.Skip("no -sheet given")
	}
	const columns, gap = 16, 4
	all := kinds()
	out := image.NewRGBA(image.Rect(0, 0, columns*(ImageSize+gap), len(all)*(ImageSize+gap)))
	set := NewSet(1)
	for row, k := range all {
		for n := range columns {
			data, err := set.draw(k, entry{"pool", row, n})
			if err != nil {
				t.Fatal(err)
			}
			m, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			x, y := n*(ImageSize+gap), row*(ImageSize+gap)
			draw.Draw(out, image.Rect(x, y, x+ImageSize, y+ImageSize), m, image.Point{}, draw.Src)
		}
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, out); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*sheet, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range Classes()[:Known] {
		known[name] = true
	}
	if len(Classes()) < 10 {
		t.Errorf("%d classes", len(Classes()))
	}
	for _, tt := range []struct {
		prefix       string
		total, known int
	}{{"pool", 2000, 700}, {"test/", 400, 240}, {"", 2400, 940}, {"pool/fish", 175, 175}, {"poo", 0, 0}} {
		total, ofKnown := 0, 0
		paths := map[string]bool{}
		_, err := NewSet(1).Walk(context.Background(), tt.prefix, func(f imaging.File) error {
			total++
			paths[f.Path] = true
			if known[f.Class()] {
				ofKnown++
			}
			return nil
		})
		if err != nil || total != tt.total || ofKnown != tt.known || len(paths) != total {
			t.Errorf("%q: %d images, %d known, %d paths, %v", tt.prefix, total, ofKnown, len(paths), err)
		}
	}
}

// contents reads the named images of a set.
func contents(t *testing.T, s *Set, prefix string) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	_, err := s.Walk(context.Background(), prefix, func(f imaging.File) error {
		data, err := f.Read(1 << 20)
		out[f.Path] = data
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestSeeds(t *testing.T) {
	t.Parallel()
	a, again, b := contents(t, NewSet(1), "test/fish"), contents(t, NewSet(1), "test/fish"), contents(t, NewSet(2), "test/fish")
	seen := map[string]string{}
	for name, data := range a {
		if !bytes.Equal(data, again[name]) {
			t.Errorf("%s differs between two sets of a seed", name)
		}
		if bytes.Equal(data, b[name]) {
			t.Errorf("%s is the same under another seed", name)
		}
		if other, ok := seen[string(data)]; ok {
			t.Errorf("%s is the same as %s", name, other)
		}
		seen[string(data)] = name
		m, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || m.Width != ImageSize || m.Height != ImageSize {
			t.Errorf("%s: %dx%d, %v", name, m.Width, m.Height, err)
		}
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	first := contents(t, NewSet(1).First(2), "")
	if len(first) != 2*Known {
		t.Fatalf("%d images", len(first))
	}
	pool := contents(t, NewSet(1), "pool/boat")
	for name, data := range first {
		if strings.HasPrefix(name, "pool/boat/") && !bytes.Equal(data, pool[name]) {
			t.Errorf("%s is not the pool's", name)
		}
	}
}

func BenchmarkDraw(b *testing.B) {
	set, all := NewSet(1), kinds()
	for i := 0; b.Loop(); i++ {
		class := i % len(all)
		if _, err := set.draw(all[class], entry{"pool", class, i}); err != nil {
			b.Fatal(err)
		}
	}
}
