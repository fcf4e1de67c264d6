package imaging

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

const (
	// ThumbnailSide is the longest side of a thumbnail, in pixels.
	ThumbnailSide = 256

	// An original beyond either of these is shown as a rendition of displaySide.
	maxOriginalSide  = 4096
	maxOriginalBytes = 5 << 20
	displaySide      = 2560

	// A rendition up to this many pixels is a lossless PNG, beyond it a JPEG.
	maxPNGPixels = 1 << 20
)

// background is what transparent parts are shown on.
var background = color.RGBA{R: 128, G: 128, B: 128, A: 255}

// picture is a decoded image, as it lies in the file.
type picture struct {
	format      format
	img         image.Image
	orientation int
}

// size returns width and height when upright.
func (p *picture) size() (w, h int) {
	b := p.img.Bounds()
	if p.orientation >= 5 {
		return b.Dy(), b.Dx()
	}
	return b.Dx(), b.Dy()
}

// thumbnail returns a JPEG of at most ThumbnailSide pixels a side.
func (p *picture) thumbnail() ([]byte, error) {
	return encodeJPEG(p.fit(ThumbnailSide), 85)
}

// display returns a rendition for browsers, nil when they can show the original.
// An animation is shown by its first frame: it is what the networks see.
func (p *picture) display(size int) ([]byte, error) {
	b := p.img.Bounds()
	huge := max(b.Dx(), b.Dy()) > maxOriginalSide || size > maxOriginalBytes
	// Browsers turn a JPEG by its EXIF orientation, but not all of them turn others.
	turned := p.orientation > 1 && p.format.mediaType != typeJPEG
	if p.format.inBrowser && !huge && !turned && p.format.mediaType != typeGIF {
		return nil, nil
	}
	m := p.fit(displaySide)
	if m.Rect.Dx()*m.Rect.Dy() > maxPNGPixels {
		return encodeJPEG(m, 90)
	}
	var buf bytes.Buffer
	if err := png.Encode(&buf, m); err != nil {
		return nil, fmt.Errorf("encode display rendition: %w", err)
	}
	return buf.Bytes(), nil
}

// pixels returns the image squashed to size x size, as RGB. An image of that very
// size is copied exactly.
func (p *picture) pixels(size int) []byte {
	m := upright(scale(p.img, size, size), p.orientation)
	rgb := make([]byte, 0, size*size*3)
	for i := 0; i < len(m.Pix); i += 4 {
		rgb = append(rgb, m.Pix[i], m.Pix[i+1], m.Pix[i+2])
	}
	return rgb
}

// fit returns the upright image, shrunk where needed so that no side is longer than
// side.
func (p *picture) fit(side int) *image.RGBA {
	b := p.img.Bounds()
	w, h := b.Dx(), b.Dy()
	if long := max(w, h); long > side {
		w, h = max(1, (w*side+long/2)/long), max(1, (h*side+long/2)/long)
	}
	return upright(sharpen(p.img, w, h), p.orientation)
}

// scale resizes to w x h: shrunk by area averaging, exact where the size is the
// same, enlarged by a cubic.
func scale(src image.Image, w, h int) *image.RGBA {
	b := src.Bounds()
	m := average(src, min(w, b.Dx()), min(h, b.Dy()))
	if m.Rect.Dx() == w && m.Rect.Dy() == h {
		return m
	}
	return cubic(m, w, h)
}

// sharpen shrinks to w x h for the eye: by area averaging to twice the size, then
// by a cubic, which keeps edges crisp where averaging alone blurs them.
func sharpen(src image.Image, w, h int) *image.RGBA {
	b := src.Bounds()
	m := average(src, min(2*w, b.Dx()), min(2*h, b.Dy()))
	if m.Rect.Dx() == w && m.Rect.Dy() == h {
		return m
	}
	return cubic(m, w, h)
}

func cubic(src *image.RGBA, w, h int) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	draw.CatmullRom.Scale(out, out.Rect, src, src.Rect, draw.Src, nil)
	return out
}

func encodeJPEG(m *image.RGBA, quality int) ([]byte, error) {
	var buf bytes.Buffer
	if err := jpeg.Encode(&buf, m, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode rendition: %w", err)
	}
	return buf.Bytes(), nil
}
