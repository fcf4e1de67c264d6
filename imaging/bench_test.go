package imaging

import (
	"context"
	"image"
	"math"
	"testing"

	"golang.org/x/image/draw"
)

// photo is a smooth picture with some detail, as large as a camera's.
func photo(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		x, y := i/4%w, i/4/w
		m.Pix[i] = uint8(128 + 60*math.Sin(float64(x)/40) + 60*math.Cos(float64(y)/30+float64(i%4)))
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	return m
}

func BenchmarkPrepare(b *testing.B) {
	for _, bb := range []struct {
		name, kind string
		w, h       int
	}{
		{"png 32x32", "png", 32, 32},
		{"png 64x64", "png", 64, 64},
		{"jpeg 500x375", "jpeg", 500, 375},
		{"jpeg 4000x3000", "jpeg", 4000, 3000},
	} {
		b.Run(bb.name, func(b *testing.B) {
			data := encode(b, bb.kind, photo(bb.w, bb.h))
			p := NewPreparer(DefaultLimits())
			b.SetBytes(int64(len(data)))
			for b.Loop() {
				if _, err := p.Prepare(context.Background(), data, 32); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkThumbnail is why a thumbnail is averaged first: a cubic over the whole
// image costs several times as much, a bilinear one too, and it blurs. The
// approximate one costs nothing because it looks at few of the pixels.
func BenchmarkThumbnail(b *testing.B) {
	src := photo(4000, 3000)
	for _, bb := range []struct {
		name   string
		shrink func() *image.RGBA
	}{
		{"average and cubic", func() *image.RGBA { return sharpen(src, 256, 192) }},
		{"cubic", func() *image.RGBA { return cubic(src, 256, 192) }},
		{"bilinear", func() *image.RGBA {
			out := image.NewRGBA(image.Rect(0, 0, 256, 192))
			draw.BiLinear.Scale(out, out.Rect, src, src.Rect, draw.Src, nil)
			return out
		}},
		{"approximate bilinear", func() *image.RGBA {
			out := image.NewRGBA(image.Rect(0, 0, 256, 192))
			draw.ApproxBiLinear.Scale(out, out.Rect, src, src.Rect, draw.Src, nil)
			return out
		}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			for b.Loop() {
				bb.shrink()
			}
		})
	}
}
