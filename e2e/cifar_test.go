package e2e

import (
	"archive/zip"
	"crypto/sha256"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// known are the classes that the projects of these tests ask for; the other six of
// CIFAR-10 are unknown.
var known = []string{"ship", "bird", "horse", "deer"}

// miniZIP is where the data is, seen from this package.
var miniZIP = filepath.Join("..", "..", "shared", "data", "cifar10-mini.zip")

// cifar is the small CIFAR-10 of the shared data.
type cifar struct {
	train, test []picture
}

// picture is one image of it.
type picture struct {
	class string
	name  string // "train/ship/0001.png"
	data  []byte
}

// loadCIFAR reads the data, or skips the test where it is not there.
func loadCIFAR(t testing.TB) *cifar {
	t.Helper()
	archive, err := zip.OpenReader(miniZIP)
	if os.IsNotExist(err) {
		t.Skipf("no %s: the data these tests label is not part of the project", miniZIP)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	c := &cifar{}
	for _, f := range archive.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			t.Fatal(err)
		}
		p := picture{class: path.Base(path.Dir(f.Name)), name: f.Name, data: data}
		if strings.HasPrefix(f.Name, "train/") {
			c.train = append(c.train, p)
		} else {
			c.test = append(c.test, p)
		}
	}
	return c
}

// labeled takes the first n training images of each known class and m of all others.
func (c *cifar) labeled(n, m int) []picture {
	var out []picture
	took := map[string]int{}
	unknown := 0
	for _, p := range c.train {
		switch isKnown := slices.Contains(known, p.class); {
		case isKnown && took[p.class] < n:
			took[p.class]++
		case !isKnown && unknown < m:
			unknown++
		default:
			continue
		}
		out = append(out, p)
	}
	return out
}

// writeZIP puts pictures into a ZIP of class folders.
func writeZIP(t testing.TB, name string, pictures []picture) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z := zip.NewWriter(f)
	for _, p := range pictures {
		w, err := z.CreateHeader(&zip.FileHeader{Name: p.class + "/" + path.Base(p.name), Method: zip.Store})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(p.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// oracle knows the class of every image by its content.
type oracle map[[32]byte]string

func (c *cifar) oracle() oracle {
	o := oracle{}
	for _, p := range append(slices.Clone(c.train), c.test...) {
		o[sha256.Sum256(p.data)] = p.class
	}
	return o
}

// key is what the oracle presses for an image.
func (o oracle) key(t testing.TB, image []byte) string {
	t.Helper()
	class, ok := o[sha256.Sum256(image)]
	if !ok {
		t.Fatal("the page shows an image that was never imported")
	}
	if i := slices.Index(known, class); i >= 0 {
		return string(rune('1' + i))
	}
	return "u"
}
