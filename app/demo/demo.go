// Package demo draws the images that a newcomer tries Winnow with, and makes a
// project of them. Every picture is a small scene drawn from a seed: nothing is
// shipped or downloaded, and nobody else's rights are touched.
package demo

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"io"
	"math/rand/v2"
	"strings"

	"winnow"
	"winnow/imaging"
)

// Known is how many of the classes the demo project asks for; they are the first.
const Known = 4

// Classes returns the names of all classes, known ones first.
func Classes() []string {
	var names []string
	for _, k := range kinds() {
		names = append(names, k.name)
	}
	return names
}

// ImageSize is the side of the images in pixels.
const ImageSize = 64

// Images of each known class, and of each that the project does not ask for: 35
// percent of the pool are known, and 60 of the test images, which is where only
// known ones count.
const (
	poolKnown, poolUnknown = 175, 130
	testKnown, testUnknown = 60, 16
	poolImages, testImages = 2000, 400
)

// Set is the image set of a seed, as the source of an import. It is drawn as it is
// read: the same image, however often and in whatever order.
type Set struct {
	seed  uint64
	files []entry
}

// entry names an image: the n-th of its class in its split.
type entry struct {
	split winnow.Split
	class int
	n     int
}

func (e entry) path(kinds []kind) string {
	return fmt.Sprintf("%s/%s/%05d.png", e.split, kinds[e.class].name, e.n)
}

// NewSet returns the whole set of a seed. Its files lie in pool/<class>/ and
// test/<class>/, shuffled within their split as a real pool is.
func NewSet(seed uint64) *Set {
	s := &Set{seed: seed}
	for _, split := range []winnow.Split{winnow.SplitPool, winnow.SplitTest} {
		from := len(s.files)
		for class := range kinds() {
			for n := range count(split, class) {
				s.files = append(s.files, entry{split, class, n})
			}
		}
		part := s.files[from:]
		rng := rand.New(rand.NewPCG(seed, uint64(from)))
		rng.Shuffle(len(part), func(i, j int) { part[i], part[j] = part[j], part[i] })
	}
	return s
}

func count(split winnow.Split, class int) int {
	switch {
	case split == winnow.SplitPool && class < Known:
		return poolKnown
	case split == winnow.SplitPool:
		return poolUnknown
	case class < Known:
		return testKnown
	default:
		return testUnknown
	}
}

// First returns the part of the pool that the project begins with: the first n
// images of each known class.
func (s *Set) First(n int) *Set {
	part := &Set{seed: s.seed}
	for _, e := range s.files {
		if e.split == winnow.SplitPool && e.class < Known && e.n < n {
			part.files = append(part.files, e)
		}
	}
	return part
}

// Name implements imaging.Source.
func (s *Set) Name() string { return "demo images" }

// Close implements imaging.Source.
func (s *Set) Close() error { return nil }

// Walk implements imaging.Source.
func (s *Set) Walk(ctx context.Context, prefix string, fn func(imaging.File) error) (int64, error) {
	all := kinds()
	prefix = strings.Trim(prefix, "/")
	for _, e := range s.files {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		name := e.path(all)
		if prefix != "" && !strings.HasPrefix(name, prefix+"/") {
			continue
		}
		file := imaging.File{Path: name, Size: -1, Open: func() (io.ReadCloser, error) {
			data, err := s.draw(all[e.class], e)
			return io.NopCloser(bytes.NewReader(data)), err
		}}
		if err := fn(file); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// draw returns the PNG of an image.
func (s *Set) draw(k kind, e entry) ([]byte, error) {
	stream := uint64(e.class)<<32 | uint64(e.n)
	if e.split == winnow.SplitTest {
		stream |= 1 << 63
	}
	m := render(k, ImageSize, rand.New(rand.NewPCG(s.seed, stream)))
	var buf bytes.Buffer
	enc := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := enc.Encode(&buf, m); err != nil {
		return nil, fmt.Errorf("encode demo image: %w", err)
	}
	return buf.Bytes(), nil
}
