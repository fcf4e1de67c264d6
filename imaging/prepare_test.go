package imaging

import (
	"bytes"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"winnow"
)

// lossless1x1 is a lossless WebP of 1 x 1: the smallest there is, since Go has no
// encoder for the format.
var lossless1x1 = []byte("RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00")

// corners is a w x h image whose corners tell which way is up: red, green, blue,
// white, clockwise from the top left.
func corners(w, h int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i, c := range []color.NRGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}} {
		x, y := (i^i>>1)&1*w/2, i>>1*h/2
		draw.Draw(m, image.Rect(x, y, x+w/2, y+h/2), image.NewUniform(c), image.Point{}, draw.Src)
	}
	return m
}

func encode(t testing.TB, kind string, m image.Image) []byte {
	t.Helper()
	var buf bytes.Buffer
	var err error
	switch kind {
	case "png":
		err = png.Encode(&buf, m)
	case "jpeg":
		err = jpeg.Encode(&buf, m, &jpeg.Options{Quality: 98})
	case "gif":
		err = gif.Encode(&buf, m, nil)
	case "bmp":
		err = bmp.Encode(&buf, m)
	case "tiff":
		err = tiff.Encode(&buf, m, &tiff.Options{Compression: tiff.Deflate})
	case "webp":
		return lossless1x1
	default:
		t.Fatalf("no encoder for %s", kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func near(a, b color.Color, tolerance int) bool {
	ar, ag, ab, _ := a.RGBA()
	br, bg, bb, _ := b.RGBA()
	for _, d := range []int{int(ar) - int(br), int(ag) - int(bg), int(ab) - int(bb)} {
		if max(d, -d)>>8 > tolerance {
			return false
		}
	}
	return true
}

func rgbAt(pixels []byte, size, x, y int) color.RGBA {
	i := 3 * (y*size + x)
	return color.RGBA{pixels[i], pixels[i+1], pixels[i+2], 255}
}

var (
	red   = color.RGBA{255, 0, 0, 255}
	green = color.RGBA{0, 255, 0, 255}
	blue  = color.RGBA{0, 0, 255, 255}
	white = color.RGBA{255, 255, 255, 255}
	grey  = color.RGBA{128, 128, 128, 255}
)

func TestPrepareFormats(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind, mediaType string
		w, h            int
		display         bool
	}{
		{"png", "image/png", 40, 24, false},
		{"jpeg", "image/jpeg", 40, 24, false},
		{"gif", "image/gif", 40, 24, true},
		{"bmp", "image/bmp", 40, 24, false},
		{"tiff", "image/tiff", 40, 24, true},
		{"webp", "image/webp", 1, 1, false},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			data := encode(t, tt.kind, corners(tt.w, tt.h))
			got, err := NewPreparer(DefaultLimits()).Prepare(context.Background(), data, 16)
			if err != nil {
				t.Fatal(err)
			}
			if got.MediaType != tt.mediaType || got.Width != tt.w || got.Height != tt.h || got.Bytes != int64(len(data)) || got.Class != -1 {
				t.Errorf("got %s %dx%d, %d bytes, class %d", got.MediaType, got.Width, got.Height, got.Bytes, got.Class)
			}
			if (got.Display != nil) != tt.display {
				t.Errorf("has a display rendition: %v, want %v", got.Display != nil, tt.display)
			}
			thumb, err := jpeg.Decode(bytes.NewReader(got.Thumbnail))
			if err != nil || thumb.Bounds().Dx() != tt.w || thumb.Bounds().Dy() != tt.h {
				t.Errorf("thumbnail %v: %v", thumb.Bounds(), err)
			}
			if len(got.Pixels) != 16*16*3 {
				t.Fatalf("%d bytes of pixels", len(got.Pixels))
			}
			if tt.kind == "webp" {
				return
			}
			for i, want := range []color.RGBA{red, green, blue, white} {
				x, y := 3+9*((i^i>>1)&1), 3+9*(i>>1)
				if c := rgbAt(got.Pixels, 16, x, y); !near(c, want, 24) {
					t.Errorf("pixel %d,%d is %v, want %v", x, y, c, want)
				}
			}
		})
	}
}

// TestColourModels checks that each way of storing a colour comes out as that
// colour, and transparency as the neutral background.
func TestColourModels(t *testing.T) {
	t.Parallel()
	fill := func(m draw.Image, c color.Color) image.Image {
		draw.Draw(m, m.Bounds(), image.NewUniform(c), image.Point{}, draw.Src)
		return m
	}
	box := image.Rect(0, 0, 9, 7)
	for _, tt := range []struct {
		name string
		img  image.Image
		want color.Color
	}{
		{"grey", fill(image.NewGray(box), color.Gray{77}), color.Gray{77}},
		{"grey 16 bit", fill(image.NewGray16(box), color.Gray16{0x4d4d}), color.Gray{77}},
		{"rgb 16 bit", fill(image.NewNRGBA64(box), color.RGBA64{0x1111, 0x8080, 0xeeee, 0xffff}), color.RGBA{0x11, 0x80, 0xee, 255}},
		{"palette", fill(image.NewPaletted(box, color.Palette{red, green}), green), green},
		{"clear palette", fill(image.NewPaletted(box, color.Palette{color.Transparent, green}), color.Transparent), grey},
		{"clear", fill(image.NewNRGBA(box), color.Transparent), grey},
		{"half clear red", fill(image.NewNRGBA(box), color.NRGBA{255, 0, 0, 128}), color.RGBA{192, 64, 64, 255}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewPreparer(DefaultLimits()).Pixels(context.Background(), encode(t, "png", tt.img), 4)
			if err != nil {
				t.Fatal(err)
			}
			for i := range 16 {
				if c := rgbAt(got, 4, i%4, i/4); !near(c, tt.want, 1) {
					t.Fatalf("pixel %d is %v, want %v", i, c, tt.want)
				}
			}
		})
	}
	t.Run("cmyk", func(t *testing.T) {
		t.Parallel()
		m := fill(image.NewCMYK(box), color.CMYK{C: 0, M: 255, Y: 255, K: 0}).(*image.CMYK)
		p := picture{img: m, orientation: 1}
		if c := rgbAt(p.pixels(4), 4, 1, 1); !near(c, red, 1) {
			t.Errorf("got %v, want red", c)
		}
	})
}

// withOrientation puts an EXIF block with nothing but the orientation into a JPEG.
func withOrientation(jpg []byte, o int, order binary.AppendByteOrder) []byte {
	tiff := []byte("II")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		tiff = []byte("MM")
	}
	tiff = order.AppendUint16(tiff, 42)
	tiff = order.AppendUint32(tiff, 8)      // first directory
	tiff = order.AppendUint16(tiff, 1)      // one entry
	tiff = order.AppendUint16(tiff, 0x0112) // orientation
	tiff = order.AppendUint16(tiff, 3)      // SHORT
	tiff = order.AppendUint32(tiff, 1)
	tiff = order.AppendUint16(tiff, uint16(o))
	tiff = order.AppendUint16(tiff, 0)
	tiff = order.AppendUint32(tiff, 0) // no further directory
	app1 := append([]byte("Exif\x00\x00"), tiff...)
	out := append([]byte{}, jpg[:2]...)
	out = append(out, 0xff, 0xe1)
	out = binary.BigEndian.AppendUint16(out, uint16(len(app1)+2))
	out = append(out, app1...)
	return append(out, jpg[2:]...)
}

func TestOrientation(t *testing.T) {
	t.Parallel()
	upright := corners(48, 32)
	// Where, in the file, the four corners of the upright image lie: the inverse of
	// what each orientation asks for, from the EXIF standard's table of which side
	// of the picture the file's first row and first column are.
	for o, tt := range map[int]struct {
		turned bool
		at     func(x, y, w, h int) (int, int) // file pixel of the upright pixel
	}{
		1: {false, func(x, y, w, h int) (int, int) { return x, y }},                 // row 0 top, column 0 left
		2: {false, func(x, y, w, h int) (int, int) { return w - 1 - x, y }},         // top, right
		3: {false, func(x, y, w, h int) (int, int) { return w - 1 - x, h - 1 - y }}, // bottom, right
		4: {false, func(x, y, w, h int) (int, int) { return x, h - 1 - y }},         // bottom, left
		5: {true, func(x, y, w, h int) (int, int) { return y, x }},                  // left, top
		6: {true, func(x, y, w, h int) (int, int) { return y, w - 1 - x }},          // right, top
		7: {true, func(x, y, w, h int) (int, int) { return h - 1 - y, w - 1 - x }},  // right, bottom
		8: {true, func(x, y, w, h int) (int, int) { return h - 1 - y, x }},          // left, bottom
	} {
		stored := image.NewNRGBA(image.Rect(0, 0, 48, 32))
		if tt.turned {
			stored = image.NewNRGBA(image.Rect(0, 0, 32, 48))
		}
		for y := range 32 {
			for x := range 48 {
				fx, fy := tt.at(x, y, 48, 32)
				stored.Set(fx, fy, upright.At(x, y))
			}
		}
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			data := withOrientation(encode(t, "jpeg", stored), o, order)
			got, err := NewPreparer(DefaultLimits()).Prepare(context.Background(), data, 16)
			if err != nil {
				t.Fatalf("orientation %d: %v", o, err)
			}
			if got.Width != 48 || got.Height != 32 {
				t.Errorf("orientation %d: %dx%d", o, got.Width, got.Height)
			}
			for i, want := range []color.RGBA{red, green, blue, white} {
				x, y := 3+9*((i^i>>1)&1), 3+9*(i>>1)
				if c := rgbAt(got.Pixels, 16, x, y); !near(c, want, 40) {
					t.Errorf("orientation %d (%v): pixel %d,%d is %v, want %v", o, order, x, y, c, want)
				}
			}
		}
	}
}

func TestSameSizeIsExact(t *testing.T) {
	t.Parallel()
	m := image.NewNRGBA(image.Rect(0, 0, 32, 32))
	for i := range m.Pix {
		m.Pix[i] = byte(i*7 + i/128)
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	got, err := NewPreparer(DefaultLimits()).Pixels(context.Background(), encode(t, "png", m), 32)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 32 * 32 {
		if !bytes.Equal(got[3*i:3*i+3], m.Pix[4*i:4*i+3]) {
			t.Fatalf("pixel %d: %v, want %v", i, got[3*i:3*i+3], m.Pix[4*i:4*i+3])
		}
	}
}

// TestAverage compares with the definition: each output pixel is the mean over the
// area that it covers.
func TestAverage(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ sw, sh, w, h int }{
		{64, 64, 32, 32}, {100, 70, 32, 32}, {33, 97, 32, 32}, {5, 3, 2, 3}, {7, 200, 7, 9}, {3, 3, 1, 1}, {40, 2, 1, 2},
	} {
		src := image.NewRGBA(image.Rect(0, 0, tt.sw, tt.sh))
		for i := range src.Pix {
			src.Pix[i] = byte(i*i*31 + i*7)
			if i%4 == 3 {
				src.Pix[i] = 255
			}
		}
		got := average(src, tt.w, tt.h)
		for y := range tt.h {
			for x := range tt.w {
				var sum, area float64
				for sy := range tt.sh {
					for sx := range tt.sw {
						a := overlap(x, tt.sw, tt.w, sx) * overlap(y, tt.sh, tt.h, sy)
						sum += a * float64(src.RGBAAt(sx, sy).G)
						area += a
					}
				}
				if d := float64(got.RGBAAt(x, y).G) - sum/area; d > 0.6 || d < -0.6 {
					t.Fatalf("%+v: pixel %d,%d is %d, want %.2f", tt, x, y, got.RGBAAt(x, y).G, sum/area)
				}
			}
		}
	}
}

// overlap is the length that output cell i of n has in common with source pixel s of m.
func overlap(i, m, n, s int) float64 {
	from, to := float64(i*m)/float64(n), float64((i+1)*m)/float64(n)
	return max(0, min(to, float64(s+1))-max(from, float64(s)))
}

func TestLargeImages(t *testing.T) {
	t.Parallel()
	data := encode(t, "jpeg", corners(4400, 1000))
	got, err := NewPreparer(DefaultLimits()).Prepare(context.Background(), data, 32)
	if err != nil {
		t.Fatal(err)
	}
	display, err := jpeg.DecodeConfig(bytes.NewReader(got.Display))
	if err != nil || display.Width != displaySide {
		t.Errorf("display rendition %dx%d: %v", display.Width, display.Height, err)
	}
	thumb, err := jpeg.DecodeConfig(bytes.NewReader(got.Thumbnail))
	if err != nil || thumb.Width != 256 || thumb.Height != 58 {
		t.Errorf("thumbnail %dx%d: %v", thumb.Width, thumb.Height, err)
	}
}

func TestPrepareRefuses(t *testing.T) {
	t.Parallel()
	whole := encode(t, "png", corners(40, 24))
	huge := bytes.Clone(whole)
	binary.BigEndian.PutUint32(huge[16:], 100_000)
	binary.BigEndian.PutUint32(huge[20:], 100_000)
	fixCRC(huge)
	cut := func(kind string) []byte {
		b := encode(t, kind, corners(64, 64))
		return b[:len(b)/2]
	}
	small := Limits{MaxBytes: 2000, MaxPixels: 900}
	for _, tt := range []struct {
		name   string
		data   []byte
		limits Limits
		code   winnow.Code
	}{
		{"empty", nil, DefaultLimits(), winnow.CodeInvalid},
		{"text", []byte("not an image at all"), DefaultLimits(), winnow.CodeUnsupported},
		{"svg", []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`), DefaultLimits(), winnow.CodeUnsupported},
		{"huge dimensions", huge, DefaultLimits(), winnow.CodeTooLarge},
		{"too many pixels", whole, small, winnow.CodeTooLarge},
		{"too many bytes", append(bytes.Clone(whole), make([]byte, 2000)...), small, winnow.CodeTooLarge},
		{"cut png", cut("png"), DefaultLimits(), winnow.CodeInvalid},
		{"cut jpeg", cut("jpeg"), DefaultLimits(), winnow.CodeInvalid},
		{"cut gif", cut("gif"), DefaultLimits(), winnow.CodeInvalid},
		{"cut bmp", cut("bmp"), DefaultLimits(), winnow.CodeInvalid},
		{"cut tiff", cut("tiff"), DefaultLimits(), winnow.CodeInvalid},
		{"cut webp", lossless1x1[:24], DefaultLimits(), winnow.CodeInvalid},
		{"only a signature", []byte("\x89PNG\r\n\x1a\n"), DefaultLimits(), winnow.CodeInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := NewPreparer(tt.limits).Prepare(context.Background(), tt.data, 8)
			if winnow.ErrorCode(err) != tt.code {
				t.Errorf("got %v, %v; want code %s", got != nil, err, tt.code)
			}
			if got != nil {
				t.Error("an image came out")
			}
		})
	}
}

func TestDecoderPanicIsAnError(t *testing.T) {
	t.Parallel()
	h := header{format: format{mediaType: typePNG, decode: nil}}
	if _, err := h.decode(); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("got %v", err)
	}
}

func FuzzPrepare(f *testing.F) {
	for _, kind := range []string{"png", "jpeg", "gif", "bmp", "tiff", "webp"} {
		data := encode(f, kind, corners(16, 10))
		f.Add(data)
		f.Add(data[:len(data)*2/3])
	}
	f.Add(withOrientation(encode(f, "jpeg", corners(16, 10)), 6, binary.LittleEndian))
	p := NewPreparer(Limits{MaxBytes: 1 << 20, MaxPixels: 1 << 20})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := p.Prepare(context.Background(), data, 8)
		if err != nil {
			if winnow.ErrorCode(err) == winnow.CodeInternal {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		if len(got.Pixels) != 8*8*3 || got.Width < 1 || got.Height < 1 || len(got.Thumbnail) == 0 {
			t.Fatalf("incomplete: %dx%d, %d bytes of pixels", got.Width, got.Height, len(got.Pixels))
		}
	})
}
