package imaging

import (
	"image"
	"image/draw"
)

// bandRows is how many rows are converted at a time, so that shrinking a large
// image never holds a second copy of it.
const bandRows = 32

// average shrinks an opaque image to w x h, neither larger than its own: each pixel
// is the mean of the area that it covers, parts of pixels counted by their share.
// With w and h of src itself it is src, exactly.
func average(src image.Image, w, h int) *image.RGBA {
	b := src.Bounds()
	sw, sh := b.Dx(), b.Dy()
	if w == sw && h == sh {
		return convert(src, b)
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
		band := convert(src, image.Rect(b.Min.X, b.Min.Y+top, b.Max.X, b.Min.Y+top+rows))
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

// convert returns the part r of an opaque image as RGBA, without a copy where it is
// that already.
func convert(src image.Image, r image.Rectangle) *image.RGBA {
	if m, ok := src.(*image.RGBA); ok {
		part := m.SubImage(r).(*image.RGBA)
		part.Rect = part.Rect.Sub(r.Min)
		return part
	}
	out := image.NewRGBA(image.Rect(0, 0, r.Dx(), r.Dy()))
	draw.Draw(out, out.Rect, src, r.Min, draw.Src)
	return out
}
