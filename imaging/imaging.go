// Package imaging is everything that touches untrusted image bytes: it finds the
// images of a folder or a ZIP, decodes them within limits, puts them upright, and
// makes what the rest of Winnow needs of each: its hash, a thumbnail, a rendition
// that browsers can show, and the pixels that the networks see.
//
// The networks' input is a square, images are not. Winnow squashes: the whole image
// is scaled to the square, whatever its proportions. A label is given for the whole
// image, so the network must see all of it; a centre crop would cut away what an
// annotator saw, and letterboxing would spend the few pixels there are on borders.
//
// Transparent parts are shown on mid grey, the colour of the labeling page's canvas,
// so that people and networks look at the same picture. Averages are taken over the
// stored (gamma-encoded) values, as the usual training libraries do.
package imaging

import (
	"context"
	"crypto/sha256"

	"golang.org/x/sync/semaphore"

	"winnow"
)

// Limits of what is decoded. Both are checked before a pixel is decoded.
type Limits struct {
	MaxBytes  int64 // of a file
	MaxPixels int64 // width x height, as the header claims
}

// DefaultLimits take the photographs of today's cameras with room to spare.
func DefaultLimits() Limits {
	return Limits{MaxBytes: 64 << 20, MaxPixels: 64_000_000}
}

// decodeMemory bounds the memory of all images being decoded at once.
const decodeMemory = 1 << 30

// Preparer makes images ready for the store. It may be used by many goroutines at
// once; together they stay within a fixed memory budget, however large the images.
type Preparer struct {
	limits Limits
	memory *semaphore.Weighted
}

// NewPreparer returns a Preparer with the given limits.
func NewPreparer(limits Limits) *Preparer {
	return &Preparer{limits: limits, memory: semaphore.NewWeighted(decodeMemory)}
}

// Prepare decodes the bytes of a file and returns the image with its hash,
// renditions, and its pixels at size x size. Split, path and label are the caller's
// to fill in; Class is -1.
//
// Errors: CodeTooLarge over a limit, CodeUnsupported for what is not an image of a
// format that is read, CodeInvalid for a damaged one.
func (p *Preparer) Prepare(ctx context.Context, data []byte, size int) (*winnow.NewImage, error) {
	out := &winnow.NewImage{Original: data, PixelSize: size}
	err := p.decode(ctx, data, func(pic *picture) error {
		out.Image = winnow.Image{
			SHA256:    sha256.Sum256(data),
			MediaType: pic.format.mediaType,
			Bytes:     int64(len(data)),
			Class:     -1,
		}
		out.Width, out.Height = pic.size()
		var err error
		if out.Thumbnail, err = pic.thumbnail(); err != nil {
			return err
		}
		if out.Display, err = pic.display(len(data)); err != nil {
			return err
		}
		out.Pixels = pic.pixels(size)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Pixels decodes the bytes of a file and returns only its pixels: size x size x 3,
// row-major RGB. Errors are those of Prepare.
func (p *Preparer) Pixels(ctx context.Context, data []byte, size int) (rgb []byte, err error) {
	err = p.decode(ctx, data, func(pic *picture) error {
		rgb = pic.pixels(size)
		return nil
	})
	return rgb, err
}

// decode calls use with the decoded image while its memory is accounted for.
func (p *Preparer) decode(ctx context.Context, data []byte, use func(*picture) error) error {
	h, err := readHeader(data, p.limits)
	if err != nil {
		return err
	}
	cost := min(h.memory(), decodeMemory)
	if err := p.memory.Acquire(ctx, cost); err != nil {
		return err
	}
	defer p.memory.Release(cost)
	pic, err := h.decode()
	if err != nil {
		return err
	}
	return use(pic)
}
