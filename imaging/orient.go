package imaging

import (
	"bytes"
	"image"

	"github.com/bep/imagemeta"
)

// orientation reads the EXIF orientation, 1 (upright) to 8. What cannot be read
// counts as upright: metadata must not keep an image out.
func orientation(data []byte, f format) (value int) {
	value = 1
	var kind imagemeta.ImageFormat
	var marker string // without it there is nothing to parse
	switch f.mediaType {
	case typeJPEG:
		kind, marker = imagemeta.JPEG, "Exif\x00\x00"
	case typePNG:
		kind, marker = imagemeta.PNG, "eXIf"
	case typeWebP:
		kind, marker = imagemeta.WebP, "EXIF"
	case typeTIFF:
		kind = imagemeta.TIFF
	default:
		return value
	}
	if !bytes.Contains(data, []byte(marker)) {
		return value
	}
	defer func() {
		if recover() != nil {
			value = 1
		}
	}()
	isOrientation := func(tag imagemeta.TagInfo) bool {
		return tag.Tag == "Orientation" && tag.Namespace == "IFD0"
	}
	_, _ = imagemeta.Decode(imagemeta.Options{
		R:               bytes.NewReader(data),
		ImageFormat:     kind,
		Sources:         imagemeta.EXIF,
		ShouldHandleTag: isOrientation,
		HandleTag: func(tag imagemeta.TagInfo) error {
			if v, ok := tag.Value.(uint16); ok && v >= 1 && v <= 8 && isOrientation(tag) {
				value = int(v)
			}
			return imagemeta.ErrStopWalking
		},
	})
	return value
}

// upright returns m turned and mirrored as the EXIF orientation o asks.
func upright(m *image.RGBA, o int) *image.RGBA {
	if o <= 1 || o > 8 {
		return m
	}
	w, h := m.Rect.Dx(), m.Rect.Dy()
	ow, oh := w, h
	if o >= 5 {
		ow, oh = h, w
	}
	out := image.NewRGBA(image.Rect(0, 0, ow, oh))
	for y := range oh {
		for x := range ow {
			var sx, sy int
			switch o {
			case 2: // mirrored left to right
				sx, sy = w-1-x, y
			case 3: // upside down
				sx, sy = w-1-x, h-1-y
			case 4: // mirrored top to bottom
				sx, sy = x, h-1-y
			case 5: // mirrored about the main diagonal
				sx, sy = y, x
			case 6: // lies on its left side: turn clockwise
				sx, sy = y, h-1-x
			case 7: // mirrored about the other diagonal
				sx, sy = w-1-y, h-1-x
			case 8: // lies on its right side: turn anticlockwise
				sx, sy = w-1-y, x
			}
			s, d := m.PixOffset(sx, sy), out.PixOffset(x, y)
			copy(out.Pix[d:d+4], m.Pix[s:s+4])
		}
	}
	return out
}
