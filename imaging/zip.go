package imaging

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/charmap"

	"winnow"
)

// ZipLimits keep an archive made to do harm from doing any.
type ZipLimits struct {
	MaxFiles     int   // entries of any kind
	MaxDirectory int64 // bytes of the list of contents, read before anything else
	MaxTotal     int64 // bytes of all images, unpacked
	MaxRatio     int64 // unpacked over packed bytes of an entry above ratioFloor
}

// ratioFloor is the unpacked size up to which any ratio is harmless.
const ratioFloor = 1 << 20

// DefaultZipLimits take about a million images.
func DefaultZipLimits() ZipLimits {
	return ZipLimits{MaxFiles: 2_000_000, MaxDirectory: 192 << 20, MaxTotal: 1 << 40, MaxRatio: 200}
}

// Zip is an archive of images. Nothing of it is unpacked to disk. Archives within
// it, links, hidden files and what is not an image by its name are passed over.
type Zip struct {
	name   string
	limits ZipLimits
	reader *zip.Reader
	file   io.Closer // nil when the caller owns the reader
}

// OpenZip reads the list of contents of an archive of the given size. It refuses,
// with CodeInvalid or CodeTooLarge, one that is damaged or over the limits.
func OpenZip(name string, r io.ReaderAt, size int64, limits ZipLimits) (z *Zip, err error) {
	defer func() {
		if recover() != nil {
			z, err = nil, winnow.Invalid(name, "The ZIP archive is damaged.")
		}
	}()
	// The list of contents is read into memory as a whole, before its length can be
	// checked: so the reading is metered.
	meter := &meteredReader{r: r, left: limits.MaxDirectory}
	reader, err := zip.NewReader(meter, size)
	switch {
	case meter.left < 0:
		return nil, &winnow.Error{Code: winnow.CodeTooLarge, Field: name, Message: "The ZIP archive has too many entries; import it in parts."}
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: name, Message: "The file is not a ZIP archive, or it is damaged.", Err: err}
	case len(reader.File) > limits.MaxFiles:
		return nil, &winnow.Error{Code: winnow.CodeTooLarge, Field: name, Message: "The ZIP archive has too many entries; import it in parts."}
	}
	meter.unlimited = true

	var packed, unpacked uint64
	for _, f := range reader.File {
		if f.CompressedSize64 > uint64(size) || f.UncompressedSize64 > 1<<50 {
			return nil, winnow.Invalid(name, "The ZIP archive is damaged: an entry claims an impossible size.")
		}
		packed += f.CompressedSize64
		if imageName(f.Name) {
			unpacked += f.UncompressedSize64
		}
	}
	// Entries that together are larger than the archive share their bytes, the trick
	// of the most effective bombs.
	if packed > uint64(size) {
		return nil, winnow.Invalid(name, "The ZIP archive is damaged: its entries overlap.")
	}
	if unpacked > uint64(limits.MaxTotal) {
		return nil, &winnow.Error{Code: winnow.CodeTooLarge, Field: name, Message: "The images of the ZIP archive are larger than " + bytesText(limits.MaxTotal) + " when unpacked."}
	}
	return &Zip{name: cleanName(name), limits: limits, reader: reader}, nil
}

// Name implements Source.
func (z *Zip) Name() string { return z.name }

// Close closes the file that Open opened; a reader given to OpenZip stays open.
func (z *Zip) Close() error {
	if z.file == nil {
		return nil
	}
	return z.file.Close()
}

// Walk implements Source, in the archive's own order.
func (z *Zip) Walk(ctx context.Context, prefix string, fn func(File) error) (ignored int64, err error) {
	prefix = cleanPrefix(prefix)
	for _, entry := range z.reader.File {
		if err := ctx.Err(); err != nil {
			return ignored, err
		}
		name := entryName(entry)
		file := File{Path: cleanName(name), Size: int64(entry.UncompressedSize64), Open: entry.Open}
		switch {
		case strings.HasSuffix(name, "/"):
			continue
		case escapes(name):
			if !imageName(name) {
				ignored++
				continue
			}
			file.Bad = winnow.Errorf(winnow.CodeInvalid, "Its path leads out of the archive.")
		case !under(name, prefix):
			continue
		case !entry.Mode().IsRegular() || !imageName(name) || slices.ContainsFunc(strings.Split(name, "/"), hidden):
			ignored++
			continue
		default:
			file.Bad = z.check(entry)
		}
		if err := fn(file); err != nil {
			return ignored, err
		}
	}
	return ignored, nil
}

// check says why an entry is not unpacked, if it is not.
func (z *Zip) check(entry *zip.File) error {
	const encrypted = 1
	switch {
	case entry.Flags&encrypted != 0:
		return winnow.Errorf(winnow.CodeUnsupported, "The entry is encrypted; pack the archive without a password.")
	case entry.Method != zip.Store && entry.Method != zip.Deflate:
		return winnow.Errorf(winnow.CodeUnsupported, "The entry is packed by a method that is not read; use the usual Deflate.")
	case entry.UncompressedSize64 > ratioFloor && entry.UncompressedSize64/max(entry.CompressedSize64, 1) > uint64(z.limits.MaxRatio):
		return winnow.Errorf(winnow.CodeTooLarge, "The entry unpacks to more than %d times its size.", z.limits.MaxRatio)
	}
	return nil
}

// entryName returns the path of an entry with slashes, from the code page of old
// archives where it is not UTF-8.
func entryName(entry *zip.File) string {
	name := entry.Name
	if entry.NonUTF8 && !utf8.ValidString(name) {
		if s, err := charmap.CodePage437.NewDecoder().String(name); err == nil {
			name = s
		}
	}
	return strings.TrimPrefix(strings.ReplaceAll(name, "\\", "/"), "./")
}

// meteredReader fails once more than left bytes were read, unless unlimited.
type meteredReader struct {
	r         io.ReaderAt
	left      int64
	unlimited bool
}

func (m *meteredReader) ReadAt(p []byte, off int64) (int, error) {
	if !m.unlimited {
		if m.left -= int64(len(p)); m.left < 0 {
			return 0, fs.ErrInvalid
		}
	}
	return m.r.ReadAt(p, off)
}

// IsZip reports whether data begins like a ZIP archive.
func IsZip(data []byte) bool {
	return bytes.HasPrefix(data, []byte("PK\x03\x04")) || bytes.HasPrefix(data, []byte("PK\x05\x06"))
}
