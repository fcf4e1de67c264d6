package simulate

import (
	"fmt"
	"image"
	"io/fs"
	"path"
	"slices"
	"strings"

	"winnow"
)

// layouts are the forms a data set may have, told apart by their files.
var layouts = []struct {
	found func(fs.FS) bool
	index func(*Source) error
}{
	{has("data_batch_1.bin", "test_batch.bin"), indexCIFAR10},
	{has("train.bin", "test.bin"), indexCIFAR100},
	{has("train", "val/val_annotations.txt"), indexTinyImageNet},
	{has("train", "test"), indexFolders},
}

func has(names ...string) func(fs.FS) bool {
	return func(fsys fs.FS) bool {
		for _, name := range names {
			if _, err := fs.Stat(fsys, name); err != nil {
				return false
			}
		}
		return true
	}
}

// indexFolders lists train/<class>/ and test/<class>/; classes are numbered in the
// order of their names.
func indexFolders(s *Source) error {
	classes, err := folders(s.fsys, "train")
	if err != nil {
		return err
	}
	s.Classes = classes
	for _, class := range classes {
		train, err := images(s.fsys, path.Join("train", class))
		if err != nil {
			return err
		}
		test, err := images(s.fsys, path.Join("test", class))
		if err != nil {
			return err
		}
		s.train, s.test = append(s.train, train), append(s.test, test)
	}
	return nil
}

// indexTinyImageNet lists train/<wnid>/images/ and, as the test images, val/images/,
// whose classes are in val_annotations.txt. words.txt gives the classes names.
func indexTinyImageNet(s *Source) error {
	classes, err := folders(s.fsys, "train")
	if err != nil {
		return err
	}
	s.Classes, s.test = classes, make([][]item, len(classes))
	number := make(map[string]int, len(classes))
	for c, wnid := range classes {
		number[wnid] = c
		train, err := images(s.fsys, path.Join("train", wnid, "images"))
		if err != nil {
			return err
		}
		s.train = append(s.train, train)
	}
	annotations, err := fs.ReadFile(s.fsys, "val/val_annotations.txt")
	if err != nil {
		return fmt.Errorf("read the annotations: %w", err)
	}
	for line := range strings.Lines(string(annotations)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		if c, ok := number[f[1]]; ok && fs.ValidPath(f[0]) {
			s.test[c] = append(s.test[c], item{path: path.Join("val/images", f[0])})
		}
	}
	words, err := fs.ReadFile(s.fsys, "words.txt")
	if err != nil {
		return nil // names are a convenience
	}
	s.aliases = make(map[string]int)
	for line := range strings.Lines(string(words)) {
		wnid, names, _ := strings.Cut(line, "\t")
		if c, ok := number[wnid]; ok {
			name, _, _ := strings.Cut(names, ",")
			s.aliases[strings.ToLower(strings.TrimSpace(name))] = c
		}
	}
	return nil
}

// folders returns the names of dir's folders, sorted.
func folders(fsys fs.FS, dir string) ([]string, error) {
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, winnow.Invalid("data", "%s has no class folders.", dir)
	}
	return names, nil
}

// images returns dir's image files by name; a folder that is not there has none.
func images(fsys fs.FS, dir string) ([]item, error) {
	if _, err := fs.Stat(fsys, dir); err != nil {
		return nil, nil
	}
	entries, err := fs.ReadDir(fsys, dir)
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", dir, err)
	}
	var items []item
	for _, e := range entries {
		switch strings.ToLower(path.Ext(e.Name())) {
		case ".png", ".jpg", ".jpeg", ".gif":
			if !e.IsDir() {
				items = append(items, item{path: path.Join(dir, e.Name())})
			}
		}
	}
	slices.SortFunc(items, func(a, b item) int { return strings.Compare(a.path, b.path) })
	return items, nil
}

const (
	cifarSide   = 32
	cifarPixels = cifarSide * cifarSide * 3
)

func indexCIFAR10(s *Source) error {
	if err := s.names("batches.meta.txt", 10); err != nil {
		return err
	}
	for i := range 5 {
		name := fmt.Sprintf("data_batch_%d.bin", i+1)
		if err := s.records(name, 1, s.train); err != nil {
			return err
		}
	}
	return s.records("test_batch.bin", 1, s.test)
}

func indexCIFAR100(s *Source) error {
	if err := s.names("fine_label_names.txt", 100); err != nil {
		return err
	}
	if err := s.records("train.bin", 2, s.train); err != nil {
		return err
	}
	return s.records("test.bin", 2, s.test)
}

// names reads n class names, one a line; without the file they are numbers.
func (s *Source) names(file string, n int) error {
	s.train, s.test, s.packed = make([][]item, n), make([][]item, n), make(map[string][]byte)
	raw, err := fs.ReadFile(s.fsys, file)
	if err == nil {
		s.Classes = strings.Fields(string(raw))
	}
	if err == nil && len(s.Classes) != n {
		return winnow.Invalid("data", "%s names %d classes; expected %d.", file, len(s.Classes), n)
	}
	for c := len(s.Classes); c < n; c++ {
		s.Classes = append(s.Classes, fmt.Sprint(c))
	}
	return nil
}

// records lists a file of records: labels (the last of them counts), then the pixels.
func (s *Source) records(name string, labels int, to [][]item) error {
	raw, err := fs.ReadFile(s.fsys, name)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	size := labels + cifarPixels
	if len(raw) == 0 || len(raw)%size != 0 {
		return winnow.Invalid("data", "%s has %d bytes, which are not whole records of %d.", name, len(raw), size)
	}
	s.packed[name] = raw
	for at := 0; at < len(raw); at += size {
		class := int(raw[at+labels-1])
		if class >= len(to) {
			return winnow.Invalid("data", "%s has an image of class %d; there are %d classes.", name, class, len(to))
		}
		to[class] = append(to[class], item{name, at + labels})
	}
	return nil
}

// planar is the CIFAR image at the start of b: all red, all green, all blue.
func planar(b []byte) image.Image {
	m := image.NewRGBA(image.Rect(0, 0, cifarSide, cifarSide))
	const plane = cifarSide * cifarSide
	for i := range plane {
		m.Pix[4*i], m.Pix[4*i+1], m.Pix[4*i+2], m.Pix[4*i+3] = b[i], b[plane+i], b[2*plane+i], 255
	}
	return m
}
