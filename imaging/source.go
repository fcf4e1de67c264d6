package imaging

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"winnow"
)

// File is a file that may be an image.
type File struct {
	Path string // within the source: slashes, valid UTF-8, no control characters
	Size int64  // as the folder or archive claims; -1 when it is not known
	Bad  error  // why it cannot be taken, when that is known before it is opened
	Open func() (io.ReadCloser, error)
}

// Class is the name of the last folder of the file's path, "" when it has none.
func (f File) Class() string {
	dir := path.Dir(f.Path)
	if dir == "." || dir == "/" {
		return ""
	}
	return path.Base(dir)
}

// Read returns the whole content, or an error when it is larger than limit.
func (f File) Read(limit int64) ([]byte, error) {
	if f.Bad != nil {
		return nil, f.Bad
	}
	if f.Size > limit {
		return nil, tooLarge(limit)
	}
	r, err := f.Open()
	if err != nil {
		return nil, unreadable(err)
	}
	defer r.Close()
	// One byte more than claimed tells an archive's lie, or a file that is growing.
	most := f.Size
	if most < 0 {
		most = limit
	}
	var buf bytes.Buffer
	buf.Grow(int(max(f.Size, 0)) + bytes.MinRead + 1)
	n, err := buf.ReadFrom(io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, unreadable(err)
	case n > limit:
		return nil, tooLarge(limit)
	case n > most:
		return nil, winnow.Errorf(winnow.CodeInvalid, "The file is larger than its folder or archive says.")
	case n < f.Size:
		return nil, winnow.Errorf(winnow.CodeInvalid, "The file is cut short.")
	}
	return buf.Bytes(), nil
}

func tooLarge(limit int64) error {
	return winnow.Errorf(winnow.CodeTooLarge, "The file is larger than %s.", bytesText(limit))
}

func unreadable(err error) error {
	return &winnow.Error{Code: winnow.CodeInvalid, Message: "The file cannot be read.", Err: err}
}

// Source is where images come from.
type Source interface {
	// Name is the base name of the folder or file.
	Name() string
	// Walk calls fn for each file with an image's name under prefix, in an order
	// that is the same each time, until fn returns an error. It returns how many
	// files it passed over because they are not images by their names.
	Walk(ctx context.Context, prefix string, fn func(File) error) (ignored int64, err error)
	Close() error
}

// Open opens a folder, a ZIP archive or a single image.
func Open(name string) (Source, error) {
	info, err := os.Stat(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, &winnow.Error{Code: winnow.CodeNotFound, Field: name, Message: "There is no such file or folder."}
		}
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: name, Message: "It cannot be opened.", Err: err}
	}
	if info.IsDir() {
		root, err := os.OpenRoot(name)
		if err != nil {
			return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: name, Message: "The folder cannot be opened.", Err: err}
		}
		return &folder{name: baseName(name), root: root}, nil
	}
	if !info.Mode().IsRegular() {
		return nil, winnow.Invalid(name, "It is neither a folder nor a file.")
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: name, Message: "The file cannot be opened.", Err: err}
	}
	var magic [4]byte
	_, _ = io.ReadFull(f, magic[:])
	if IsZip(magic[:]) || strings.EqualFold(filepath.Ext(name), ".zip") {
		z, err := OpenZip(baseName(name), f, info.Size(), DefaultZipLimits())
		if err != nil {
			_ = f.Close()
			return nil, err
		}
		z.file = f
		return z, nil
	}
	return &single{name: baseName(name), size: info.Size(), file: f}, nil
}

// baseName returns the last element of a path, also of "." and "..".
func baseName(name string) string {
	if abs, err := filepath.Abs(name); err == nil {
		name = abs
	}
	return cleanName(filepath.Base(name))
}

// folder is a directory tree. Links are not followed, and os.Root keeps every
// file within it.
type folder struct {
	name string
	root *os.Root
}

func (f *folder) Name() string { return f.name }
func (f *folder) Close() error { return f.root.Close() }

func (f *folder) Walk(ctx context.Context, prefix string, fn func(File) error) (ignored int64, err error) {
	prefix = cleanPrefix(prefix)
	tree := f.root.FS()
	err = fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil && name == ".":
			return fmt.Errorf("read folder: %w", err)
		case name == ".":
			return nil
		case hidden(d.Name()):
			if d.IsDir() {
				return fs.SkipDir
			}
			ignored++
			return nil
		case err != nil:
			return fn(File{Path: cleanName(name), Bad: unreadable(err)})
		case d.IsDir():
			if !related(name, prefix) {
				return fs.SkipDir
			}
			return nil
		case !under(name, prefix):
			return nil
		case !d.Type().IsRegular() || !imageName(name):
			ignored++
			return nil
		}
		file := File{Path: cleanName(name), Open: func() (io.ReadCloser, error) { return tree.Open(name) }}
		if info, err := d.Info(); err != nil {
			file.Bad = unreadable(err)
		} else {
			file.Size = info.Size()
		}
		return fn(file)
	})
	return ignored, err
}

// single is one image file, named by its user: its extension does not matter.
type single struct {
	name string
	size int64
	file *os.File
}

func (s *single) Name() string { return s.name }
func (s *single) Close() error { return s.file.Close() }

func (s *single) Walk(_ context.Context, _ string, fn func(File) error) (int64, error) {
	return 0, fn(File{Path: s.name, Size: s.size, Open: func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(s.file, 0, s.size+1)), nil
	}})
}
