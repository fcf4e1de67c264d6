package imaging

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"

	"winnow"
)

// format is an image format that is read, recognised by its first bytes and never
// by the file's name.
type format struct {
	mediaType string
	magic     []string // "?" matches any byte
	config    func(io.Reader) (image.Config, error)
	decode    func(io.Reader) (image.Image, error)
	inBrowser bool // every browser shows it
}

const (
	typeJPEG = "image/jpeg"
	typePNG  = "image/png"
	typeGIF  = "image/gif"
	typeWebP = "image/webp"
	typeBMP  = "image/bmp"
	typeTIFF = "image/tiff"
)

func formats() []format {
	return []format{
		{typeJPEG, []string{"\xff\xd8\xff"}, jpeg.DecodeConfig, jpeg.Decode, true},
		{typePNG, []string{"\x89PNG\r\n\x1a\n"}, png.DecodeConfig, png.Decode, true},
		{typeGIF, []string{"GIF87a", "GIF89a"}, gif.DecodeConfig, gif.Decode, true},
		{typeWebP, []string{"RIFF????WEBPVP8"}, webp.DecodeConfig, webp.Decode, true},
		{typeBMP, []string{"BM????\x00\x00\x00\x00"}, bmp.DecodeConfig, bmp.Decode, true},
		{typeTIFF, []string{"II\x2a\x00", "MM\x00\x2a"}, tiff.DecodeConfig, tiff.Decode, false},
	}
}

// sniff finds the format of data.
func sniff(data []byte) (format, bool) {
	for _, f := range formats() {
		for _, magic := range f.magic {
			if hasMagic(data, magic) {
				return f, true
			}
		}
	}
	return format{}, false
}

func hasMagic(data []byte, magic string) bool {
	if len(data) < len(magic) {
		return false
	}
	for i := range len(magic) {
		if magic[i] != '?' && magic[i] != data[i] {
			return false
		}
	}
	return true
}

// header is what is known of a file before its pixels are decoded.
type header struct {
	data   []byte
	format format
	config image.Config
}

// readHeader recognises the format and checks the limits.
func readHeader(data []byte, limits Limits) (h header, err error) {
	defer recoverDecoder(&err)
	if int64(len(data)) > limits.MaxBytes {
		return h, tooLarge(limits.MaxBytes)
	}
	if len(data) == 0 {
		return h, winnow.Errorf(winnow.CodeInvalid, "The file is empty.")
	}
	f, ok := sniff(data)
	if !ok {
		return h, winnow.Errorf(winnow.CodeUnsupported, "This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image.")
	}
	h = header{data: data, format: f}
	if h.config, err = f.config(bytes.NewReader(data)); err != nil {
		return h, damaged(f, err)
	}
	w, hgt := int64(h.config.Width), int64(h.config.Height)
	switch {
	case w < 1 || hgt < 1:
		return h, winnow.Errorf(winnow.CodeInvalid, "The image has no pixels (%d x %d).", w, hgt)
	case w > limits.MaxPixels/hgt:
		return h, winnow.Errorf(winnow.CodeTooLarge, "The image is %d x %d; the limit is %d million pixels.", w, hgt, limits.MaxPixels/1_000_000)
	}
	return h, nil
}

// memory estimates, from above, how many bytes decoding takes.
func (h header) memory() int64 {
	perPixel := int64(8) // the pixels, and a copy of them on the background
	switch h.config.ColorModel {
	case color.RGBA64Model, color.NRGBA64Model:
		perPixel = 12
	case color.YCbCrModel, color.GrayModel:
		perPixel = 4
	}
	if h.format.mediaType == typeJPEG && bytes.Contains(h.data, []byte{0xff, 0xc2}) {
		perPixel = 16 // progressive: the coefficients of all scans are kept
	}
	return perPixel * int64(h.config.Width) * int64(h.config.Height)
}

// decode decodes the pixels and reads which way is up.
func (h header) decode() (pic *picture, err error) {
	defer recoverDecoder(&err)
	img, err := h.format.decode(bytes.NewReader(h.data))
	if err != nil {
		return nil, damaged(h.format, err)
	}
	// Only the first frame of a GIF need not fill the picture.
	frame := image.Rect(0, 0, h.config.Width, h.config.Height)
	if img.Bounds() != frame && (h.format.mediaType != typeGIF || !img.Bounds().In(frame)) {
		return nil, winnow.Errorf(winnow.CodeInvalid, "The %s image is not of the size that its header claims.", h.format.name())
	}
	return &picture{format: h.format, img: onBackground(img, frame), orientation: orientation(h.data, h.format)}, nil
}

// onBackground returns the image itself when it fills the frame and nothing of it is
// transparent; otherwise it is put on the background.
func onBackground(img image.Image, frame image.Rectangle) image.Image {
	if m, ok := img.(interface{ Opaque() bool }); ok && m.Opaque() && img.Bounds() == frame {
		return img
	}
	out := image.NewRGBA(frame)
	draw.Draw(out, frame, image.NewUniform(background), image.Point{}, draw.Src)
	draw.Draw(out, img.Bounds(), img, img.Bounds().Min, draw.Over)
	return out
}

func (f format) name() string {
	switch f.mediaType {
	case typeJPEG:
		return "JPEG"
	case typeWebP:
		return "WebP"
	default:
		return string(bytes.ToUpper([]byte(f.mediaType[len("image/"):])))
	}
}

// damaged words a decoder's error for a person.
func damaged(f format, err error) error {
	var (
		pngUnsupported  png.UnsupportedError
		jpegUnsupported jpeg.UnsupportedError
		tiffUnsupported tiff.UnsupportedError
	)
	switch {
	case errors.As(err, &pngUnsupported), errors.As(err, &jpegUnsupported), errors.As(err, &tiffUnsupported), errors.Is(err, bmp.ErrUnsupported):
		return &winnow.Error{Code: winnow.CodeUnsupported, Message: "This kind of " + f.name() + " image is not read.", Err: err}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return &winnow.Error{Code: winnow.CodeInvalid, Message: "The " + f.name() + " image is cut short.", Err: err}
	default:
		return &winnow.Error{Code: winnow.CodeInvalid, Message: "The " + f.name() + " image is damaged.", Err: err}
	}
}

// recoverDecoder turns a decoder's panic, which untrusted bytes may provoke, into
// an error.
func recoverDecoder(err *error) {
	if r := recover(); r != nil {
		*err = &winnow.Error{Code: winnow.CodeInvalid, Message: "The image is damaged.", Err: fmt.Errorf("decoder panic: %v", r)}
	}
}

// bytesText writes a size as people do.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.4g GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.4g MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.4g KiB", float64(n)/(1<<10))
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
