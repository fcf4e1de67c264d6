package nn

import "math/rand/v2"

// normalizer maps bytes to normalised values, channel by channel.
type normalizer [3][256]float32

func newNormalizer(mean, std [3]float64) *normalizer {
	t := new(normalizer)
	for c := range 3 {
		for v := range 256 {
			t[c][v] = float32((float64(v)/255 - mean[c]) / std[c])
		}
	}
	return t
}

// view is one look at an image: the crop's offset into the zero-padded image, less the
// padding, and whether it is mirrored. The zero value is the plain image.
type view struct {
	dy, dx int
	flip   bool
}

// draw picks a view at random.
func draw(rng *rand.Rand, pad int, flip bool) view {
	var v view
	if pad > 0 {
		v.dy, v.dx = rng.IntN(2*pad+1)-pad, rng.IntN(2*pad+1)-pad
	}
	if flip {
		v.flip = rng.IntN(2) == 1
	}
	return v
}

// place writes a view of an image into place i of a batch's flat data. The padding is
// black: zero before normalisation.
func (t *normalizer) place(dst []float32, l layout, i int, rgb []byte, size int, v view) {
	for y := range size {
		sy := y + v.dy
		for x := range size {
			sx := x
			if v.flip {
				sx = size - 1 - x
			}
			sx += v.dx
			at := l.offset + i*l.image + y*l.row + x*l.pixel
			if sy < 0 || sy >= size || sx < 0 || sx >= size {
				dst[at], dst[at+l.channel], dst[at+2*l.channel] = t[0][0], t[1][0], t[2][0]
				continue
			}
			px := rgb[(sy*size+sx)*3:]
			dst[at], dst[at+l.channel], dst[at+2*l.channel] = t[0][px[0]], t[1][px[1]], t[2][px[2]]
		}
	}
}
