package imaging

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
)

// seen is what a walk came upon.
type seen struct {
	Files   []string // path, or "path: error"
	Ignored int64
}

func walk(t *testing.T, s Source, prefix string) seen {
	t.Helper()
	var out seen
	var err error
	out.Ignored, err = s.Walk(context.Background(), prefix, func(f File) error {
		if _, err := f.Read(1 << 20); err != nil {
			out.Files = append(out.Files, f.Path+": "+string(winnow.ErrorCode(err)))
			return nil
		}
		out.Files = append(out.Files, f.Path+" "+f.Class())
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.png")
	write(t, outside)
	for _, name := range []string{
		"train/cat/1.png", "train/cat/2.JPG", "train/dog/3.webp", "test/cat/4.png", "training/cat/5.png",
		"readme.txt", "train/.hidden.png", ".git/6.png", "train/__MACOSX/7.png", "8.tiff",
		"train/cafe\u0301/9.png",
	} {
		write(t, filepath.Join(dir, name))
	}
	if err := os.Symlink(outside, filepath.Join(dir, "train/cat/link.png")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), filepath.Join(dir, "train/linked")); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Name() != filepath.Base(dir) {
		t.Errorf("name %q", s.Name())
	}
	want := seen{Files: []string{
		"8.tiff ", "test/cat/4.png cat", "train/café/9.png café", "train/cat/1.png cat", "train/cat/2.JPG cat", "train/dog/3.webp dog",
		"training/cat/5.png cat",
	}, Ignored: 4}
	if diff := cmp.Diff(want, walk(t, s, "")); diff != "" {
		t.Errorf("all (-want +got):\n%s", diff)
	}
	want = seen{Files: []string{"train/café/9.png café", "train/cat/1.png cat", "train/cat/2.JPG cat", "train/dog/3.webp dog"}, Ignored: 3}
	for _, prefix := range []string{"train", "train/", "./train/", "/train", "../train"} {
		if diff := cmp.Diff(want, walk(t, s, prefix)); diff != "" {
			t.Errorf("prefix %q (-want +got):\n%s", prefix, diff)
		}
	}
}

func TestSingleFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "photo.data")
	write(t, name)
	s, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff(seen{Files: []string{"photo.data "}}, walk(t, s, "")); diff != "" {
		t.Error(diff)
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	if _, err := Open(filepath.Join(t.TempDir(), "none")); winnow.ErrorCode(err) != winnow.CodeNotFound {
		t.Errorf("missing: %v", err)
	}
	if _, err := Open("/dev/null"); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("device: %v", err)
	}
	broken := filepath.Join(t.TempDir(), "broken.zip")
	write(t, broken)
	if _, err := Open(broken); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("broken archive: %v", err)
	}
}

func write(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte("content"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// archive makes a ZIP of entries.
func archive(t testing.TB, entries ...zip.FileHeader) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for _, e := range entries {
		f, err := w.CreateHeader(&e)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("content")); err != nil && !strings.HasSuffix(e.Name, "/") {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func openZip(data []byte, limits ZipLimits) (*Zip, error) {
	return OpenZip("a.zip", bytes.NewReader(data), int64(len(data)), limits)
}

func TestZip(t *testing.T) {
	t.Parallel()
	link := zip.FileHeader{Name: "train/cat/link.png"}
	link.SetMode(os.ModeSymlink | 0o777)
	encrypted := zip.FileHeader{Name: "train/cat/locked.png", Flags: 1}
	data := archive(t,
		zip.FileHeader{Name: "train/cat/1.png", Method: zip.Deflate},
		zip.FileHeader{Name: "train/dog/2.jpeg"},
		zip.FileHeader{Name: "test/cat/3.png"},
		zip.FileHeader{Name: "./train/cat/4.gif"},
		zip.FileHeader{Name: `train\bird\5.bmp`},
		zip.FileHeader{Name: "train/"},
		zip.FileHeader{Name: "../../etc/6.png"},
		zip.FileHeader{Name: "/etc/7.png"},
		zip.FileHeader{Name: `C:\8.png`},
		zip.FileHeader{Name: "train/cat/a\x00b\x1b.png"},
		zip.FileHeader{Name: "train/caf\x82/9.png", NonUTF8: true},
		zip.FileHeader{Name: "__MACOSX/train/cat/._1.png"},
		zip.FileHeader{Name: "train/inner.zip"},
		zip.FileHeader{Name: "../notes.txt"},
		link, encrypted,
	)
	z, err := openZip(data, DefaultZipLimits())
	if err != nil {
		t.Fatal(err)
	}
	want := seen{Files: []string{
		"train/cat/1.png cat", "train/dog/2.jpeg dog", "test/cat/3.png cat", "train/cat/4.gif cat", "train/bird/5.bmp bird",
		"../../etc/6.png: invalid", "/etc/7.png: invalid", "C:/8.png: invalid",
		"train/cat/a\ufffdb\ufffd.png cat", "train/café/9.png café", "train/cat/locked.png: unsupported",
	}, Ignored: 4}
	if diff := cmp.Diff(want, walk(t, z, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want = seen{Files: []string{"test/cat/3.png cat", "../../etc/6.png: invalid", "/etc/7.png: invalid", "C:/8.png: invalid"}, Ignored: 1}
	if diff := cmp.Diff(want, walk(t, z, "test/")); diff != "" {
		t.Errorf("prefix (-want +got):\n%s", diff)
	}
}

func TestZipWalkStops(t *testing.T) {
	t.Parallel()
	z, err := openZip(archive(t, zip.FileHeader{Name: "1.png"}, zip.FileHeader{Name: "2.png"}), DefaultZipLimits())
	if err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	if _, err := z.Walk(context.Background(), "", func(File) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := z.Walk(ctx, "", func(File) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// raw writes one entry whose headers say what the test wants them to say.
func raw(t *testing.T, n int, packed []byte, unpacked uint64, method uint16) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := range n {
		f, err := w.CreateRaw(&zip.FileHeader{
			Name: "cat/" + string(rune('a'+i)) + ".png", Method: method,
			CompressedSize64: uint64(len(packed)), UncompressedSize64: unpacked, CRC32: crc32.ChecksumIEEE(packed),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(packed); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func TestZipBombs(t *testing.T) {
	t.Parallel()

	t.Run("ratio", func(t *testing.T) {
		t.Parallel()
		var buf bytes.Buffer
		w := zip.NewWriter(&buf)
		f, _ := w.Create("cat/zeros.png")
		_, _ = io.CopyN(f, zeros{}, 8<<20)
		_ = w.Close()
		z, err := openZip(buf.Bytes(), DefaultZipLimits())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(seen{Files: []string{"cat/zeros.png: too_large"}}, walk(t, z, "")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an entry larger than it says", func(t *testing.T) {
		t.Parallel()
		z, err := openZip(raw(t, 1, []byte("content"), 3, zip.Store), DefaultZipLimits())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(seen{Files: []string{"cat/a.png: invalid"}}, walk(t, z, "")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("an entry smaller than it says", func(t *testing.T) {
		t.Parallel()
		z, err := openZip(raw(t, 1, []byte("content"), 300, zip.Store), DefaultZipLimits())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(seen{Files: []string{"cat/a.png: invalid"}}, walk(t, z, "")); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a packing that is not read", func(t *testing.T) {
		t.Parallel()
		z, err := openZip(raw(t, 1, []byte("content"), 7, 14), DefaultZipLimits())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(seen{Files: []string{"cat/a.png: unsupported"}}, walk(t, z, "")); diff != "" {
			t.Error(diff)
		}
	})

	many := raw(t, 20, []byte("content"), 7, zip.Store)
	overlapping := bytes.Clone(many)
	for i := 0; ; { // every entry of the list of contents claims most of the archive
		j := bytes.Index(overlapping[i:], []byte("PK\x01\x02"))
		if j < 0 {
			break
		}
		i += j + 4
		overlapping[i+16], overlapping[i+17] = byte(len(many)-200), byte((len(many)-200)>>8)
	}
	for _, tt := range []struct {
		name   string
		data   []byte
		limits ZipLimits
		code   winnow.Code
	}{
		{"too many entries", many, ZipLimits{MaxFiles: 19, MaxDirectory: 1 << 20, MaxTotal: 1 << 20, MaxRatio: 200}, winnow.CodeTooLarge},
		{"a list of contents that is too long", many, ZipLimits{MaxFiles: 100, MaxDirectory: 1000, MaxTotal: 1 << 20, MaxRatio: 200}, winnow.CodeTooLarge},
		{"too large in total", many, ZipLimits{MaxFiles: 100, MaxDirectory: 1 << 20, MaxTotal: 139, MaxRatio: 200}, winnow.CodeTooLarge},
		{"overlapping entries", overlapping, DefaultZipLimits(), winnow.CodeInvalid},
		{"cut short", many[:len(many)-30], DefaultZipLimits(), winnow.CodeInvalid},
		{"not an archive", []byte("hello"), DefaultZipLimits(), winnow.CodeInvalid},
		{"empty file", nil, DefaultZipLimits(), winnow.CodeInvalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := openZip(tt.data, tt.limits); winnow.ErrorCode(err) != tt.code {
				t.Errorf("got %v, want %s", err, tt.code)
			}
		})
	}
	if _, err := openZip(many, ZipLimits{MaxFiles: 20, MaxDirectory: 1 << 20, MaxTotal: 140, MaxRatio: 200}); err != nil {
		t.Errorf("just within the limits: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestCleanName(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 2000) + ".png"
	for _, tt := range []struct{ in, want string }{
		{"a/b.png", "a/b.png"},
		{"a\xffb", "a\ufffdb"},
		{"a\nb\x00", "a\ufffdb\ufffd"},
		{"u\u0308", "ü"},
		{long, "…" + strings.Repeat("ä", maxName-5) + ".png"},
	} {
		if got := cleanName(tt.in); got != tt.want {
			t.Errorf("cleanName(%.20q) = %.20q, want %.20q", tt.in, got, tt.want)
		}
	}
}

func FuzzZip(f *testing.F) {
	f.Add(archive(f, zip.FileHeader{Name: "train/cat/1.png", Method: zip.Deflate}, zip.FileHeader{Name: "../2.png"}))
	f.Add(archive(f))
	limits := ZipLimits{MaxFiles: 1000, MaxDirectory: 1 << 20, MaxTotal: 1 << 20, MaxRatio: 200}
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := openZip(data, limits)
		if err != nil {
			if winnow.ErrorCode(err) == winnow.CodeInternal {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		_, err = z.Walk(context.Background(), "", func(f File) error {
			if f.Path != cleanName(f.Path) {
				t.Errorf("unclean path %q", f.Path)
			}
			if f.Bad == nil && escapes(f.Path) {
				t.Errorf("path %q leads out of the archive", f.Path)
			}
			content, err := f.Read(1 << 16)
			if err == nil && int64(len(content)) != f.Size {
				t.Errorf("%q: %d bytes, %d claimed", f.Path, len(content), f.Size)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}
