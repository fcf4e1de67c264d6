package imaging

import (
	"image"
	"image/draw"
)

// bandRows is how many rows are converted at a time, so that shrinking a large
// image never holds a second copy of it.
const bandRows = 32

// average shrinks src to w x h, neither larger than src: each pixel is the mean of
// the area that it covers, parts of pixels counted by their share. With w and h of
// src itself it is an exact copy. The result is opaque.
func average(src image.Image, w, h int) *image.RGBA {
	b := src.Bounds()
	sw, sh := b.Dx(), b.Dy()
	if w == sw && h == sh {
		return flatten(src, b)
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	var (
		row   = make([]float32, 3*w) // the current source row, shrunk sideways
		sum   = make([]float32, 3*w) // of the rows of the output row y
		y     = 0
		scale = 1 / (float32(sw) / float32(w) * float32(sh) / float32(h))
	)
	emit := func() {
		for x := range w {
			d := out.Pix[y*out.Stride+4*x:]
			d[0] = uint8(sum[3*x]*scale + 0.5)
			d[1] = uint8(sum[3*x+1]*scale + 0.5)
			d[2] = uint8(sum[3*x+2]*scale + 0.5)
			d[3] = 255
		}
		clear(sum)
		y++
	}
	for top := 0; top < sh; top += bandRows {
		rows := min(bandRows, sh-top)
		band := flatten(src, image.Rect(b.Min.X, b.Min.Y+top, b.Max.X, b.Min.Y+top+rows))
		for r := range rows {
			averageRow(row, band.Pix[r*band.Stride:], sw, w)
			// Source row s covers [s*h, (s+1)*h) in units of 1/sh output rows.
			s := top + r
			end := (s + 1) * h
			if boundary := (y + 1) * sh; end < boundary {
				addScaled(sum, row, 1)
			} else {
				share := float32(boundary-s*h) / float32(h)
				addScaled(sum, row, share)
				emit()
				if end > boundary {
					addScaled(sum, row, 1-share)
				}
			}
		}
	}
	return out
}

// averageRow sums n RGBA pixels into w RGB cells, in units of source pixels.
func averageRow(dst []float32, pix []uint8, n, w int) {
	if n == w {
		for x := range w {
			dst[3*x], dst[3*x+1], dst[3*x+2] = float32(pix[4*x]), float32(pix[4*x+1]), float32(pix[4*x+2])
		}
		return
	}
	for x := range w {
		// Cell x covers [x*n, (x+1)*n) in units of 1/w source pixels.
		from, to := x*n, (x+1)*n
		first, last := from/w, (to-1)/w
		var r, g, b int
		for i := first + 1; i < last; i++ {
			p := pix[4*i : 4*i+3 : 4*i+3]
			r += int(p[0])
			g += int(p[1])
			b += int(p[2])
		}
		p, q := pix[4*first:4*first+3], pix[4*last:4*last+3]
		left := float32((first+1)*w-from) / float32(w)
		right := float32(to-last*w) / float32(w)
		dst[3*x] = float32(r) + left*float32(p[0]) + right*float32(q[0])
		dst[3*x+1] = float32(g) + left*float32(p[1]) + right*float32(q[1])
		dst[3*x+2] = float32(b) + left*float32(p[2]) + right*float32(q[2])
	}
}

func addScaled(sum, row []float32, share float32) {
	for i, v := range row {
		sum[i] += share * v
	}
}

// flatten converts the part r of src to opaque RGBA on the background.
func flatten(src image.Image, r image.Rectangle) *image.RGBA {
	out := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	if isOpaque(src) {
		draw.Draw(out, out.Rect, src, r.Min, draw.Src)
		return out
	}
	draw.Draw(out, out.Rect, image.NewUniform(background), image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, src, r.Min, draw.Over)
	return out
}

// isOpaque reports whether the kind of image cannot be transparent. It does not
// look at the pixels, which would cost a pass over the image for every band.
func isOpaque(m image.Image) bool {
	switch m := m.(type) {
	case *image.YCbCr, *image.Gray, *image.Gray16, *image.CMYK:
		return true
	case *image.Paletted:
		for _, c := range m.Palette {
			if _, _, _, a := c.RGBA(); a != 0xffff {
				return false
			}
		}
		return true
	default:
		return false
	}
}
