package simulate

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/gif"
	_ "image/jpeg"
	_ "image/png"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/image/draw"

	"winnow"
	"winnow/ml/nn"
)

// Source is a labeled data set on disk: class folders in a ZIP or a folder, CIFAR-10
// or CIFAR-100 in their binary form, or Tiny-ImageNet.
type Source struct {
	Classes     []string // by class number
	fsys        fs.FS
	close       func() error
	train, test [][]item          // by class
	aliases     map[string]int    // further names of classes
	packed      map[string][]byte // files that hold many images
}

// item is one image: a file, or a record of a packed file.
type item struct {
	path   string
	offset int // of the pixels in a packed file
}

// maxPixels bounds what is decoded: an image may claim any size.
const maxPixels = 50_000_000

// Open finds out what is at path and lists its classes and images.
func Open(path string) (*Source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: "data", Message: fmt.Sprintf("%q cannot be read.", path), Err: err}
	}
	s := &Source{close: func() error { return nil }}
	if info.IsDir() {
		s.fsys = os.DirFS(path)
	} else {
		z, err := zip.OpenReader(path)
		if err != nil {
			return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: "data", Message: fmt.Sprintf("%q is neither a folder nor a ZIP.", path), Err: err}
		}
		s.fsys, s.close = z, z.Close
	}
	if err := s.index(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// Close releases the files.
func (s *Source) Close() error { return s.close() }

// index tries the layouts, here and in an only folder at the top.
func (s *Source) index() error {
	for range 3 {
		for _, layout := range layouts {
			if layout.found(s.fsys) {
				return layout.index(s)
			}
		}
		only, ok := onlyFolder(s.fsys)
		if !ok {
			break
		}
		sub, err := fs.Sub(s.fsys, only)
		if err != nil {
			return fmt.Errorf("open %s: %w", only, err)
		}
		s.fsys = sub
	}
	return winnow.Invalid("data", "It has none of the known layouts: train/<class>/ with test/<class>/, CIFAR-10's or CIFAR-100's .bin files, or Tiny-ImageNet's train/ with val/val_annotations.txt.")
}

func onlyFolder(fsys fs.FS) (string, bool) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return "", false
	}
	var dirs []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && e.Name() != "__MACOSX" {
			dirs = append(dirs, e.Name())
		}
	}
	if len(dirs) != 1 {
		return "", false
	}
	return dirs[0], true
}

// Class finds a class by name (ignoring case) or by number.
func (s *Source) Class(name string) (int, error) {
	name = strings.TrimSpace(name)
	for c, n := range s.Classes {
		if strings.EqualFold(n, name) {
			return c, nil
		}
	}
	if c, ok := s.aliases[strings.ToLower(name)]; ok {
		return c, nil
	}
	if c, err := strconv.Atoi(name); err == nil && c >= 0 && c < len(s.Classes) {
		return c, nil
	}
	return 0, winnow.Invalid("known", "There is no class %q; the data has %d classes: %s.", name, len(s.Classes), someOf(s.Classes))
}

func someOf(names []string) string {
	if len(names) > 12 {
		return strings.Join(names[:12], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// Data are the images of an experiment in memory.
type Data struct {
	Train       nn.Images
	TrainLabels []int     // class numbers
	Test        nn.Images // of the known classes only
	TestLabels  []int     // class numbers
}

// Load decodes the first perClass train images of each class by name (0: all) and
// the test images of the known classes, as squares of size pixels.
func (s *Source) Load(ctx context.Context, known []int, perClass, size int, progress func(done, total int)) (*Data, error) {
	var train, test []item
	d := &Data{}
	for c := range s.Classes {
		items := s.train[c]
		if perClass > 0 {
			items = items[:min(perClass, len(items))]
		}
		train = append(train, items...)
		d.TrainLabels = append(d.TrainLabels, slices.Repeat([]int{c}, len(items))...)
	}
	for _, c := range known {
		if len(s.train[c]) == 0 {
			return nil, winnow.Invalid("known", "Class %q has no train images.", s.Classes[c])
		}
		if len(s.test[c]) == 0 {
			return nil, winnow.Invalid("known", "Class %q has no test images.", s.Classes[c])
		}
		test = append(test, s.test[c]...)
		d.TestLabels = append(d.TestLabels, slices.Repeat([]int{c}, len(s.test[c]))...)
	}
	total, done := len(train)+len(test), 0
	var mu sync.Mutex
	one := func() {
		mu.Lock()
		defer mu.Unlock()
		done++
		if progress != nil {
			progress(done, total)
		}
	}
	var err error
	if d.Train, err = s.decode(ctx, train, size, one); err != nil {
		return nil, err
	}
	d.Test, err = s.decode(ctx, test, size, one)
	return d, err
}

// decode decodes items on all processors; the first bad one ends it.
func (s *Source) decode(ctx context.Context, items []item, size int, one func()) (nn.Images, error) {
	images := nn.Images{N: len(items), Size: size, RGB: make([]byte, len(items)*size*size*3)}
	var next atomic.Int64
	errs := make([]error, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return
				}
				if errs[w] = ctx.Err(); errs[w] != nil {
					return
				}
				if errs[w] = s.read(items[i], images.At(i), size); errs[w] != nil {
					next.Store(int64(len(items)))
					return
				}
				one()
			}
		})
	}
	wg.Wait()
	return images, errors.Join(errs...)
}

// read decodes one image into rgb.
func (s *Source) read(it item, rgb []byte, size int) error {
	if packed, ok := s.packed[it.path]; ok {
		fill(rgb, planar(packed[it.offset:]), size)
		return nil
	}
	f, err := s.fsys.Open(it.path)
	if err != nil {
		return fmt.Errorf("open %s: %w", it.path, err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", it.path, err)
	}
	c, _, err := image.DecodeConfig(bytes.NewReader(b))
	if err == nil && (c.Width < 1 || c.Height < 1 || c.Width > maxPixels/c.Height) {
		err = fmt.Errorf("%d x %d pixels", c.Width, c.Height)
	}
	var m image.Image
	if err == nil {
		m, _, err = image.Decode(bytes.NewReader(b))
	}
	if err != nil {
		return &winnow.Error{Code: winnow.CodeInvalid, Field: it.path, Message: "The image cannot be decoded.", Err: err}
	}
	fill(rgb, m, size)
	return nil
}

// fill writes m, scaled to size x size, as red green blue bytes.
func fill(rgb []byte, m image.Image, size int) {
	b := m.Bounds()
	square := image.NewRGBA(image.Rect(0, 0, size, size))
	if b.Dx() == size && b.Dy() == size {
		draw.Draw(square, square.Bounds(), m, b.Min, draw.Src)
	} else {
		draw.CatmullRom.Scale(square, square.Bounds(), m, b, draw.Src, nil)
	}
	for i := range size * size {
		copy(rgb[3*i:3*i+3], square.Pix[4*i:])
	}
}
