package app

import (
	"archive/zip"
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// writeZip writes an archive of small pictures, one a name; a name that ends in
// bad.png has none.
func writeZip(t *testing.T, name string, entries ...string) {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i, entry := range entries {
		f, err := w.Create(entry)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(entry, "bad.png") {
			_, _ = f.Write([]byte("no picture"))
			continue
		}
		m := image.NewRGBA(image.Rect(0, 0, 8, 8))
		m.Set(0, 0, color.RGBA{byte(i), 1, 2, 255})
		if err := png.Encode(f, m); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, buf.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// newDataProject makes a project in a database of its own.
func newDataProject(t *testing.T) env {
	t.Helper()
	e := env{"DATABASE_URL": dbtest.URL(t)}
	store, err := db.Open(t.Context(), e["DATABASE_URL"], db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	classes, err := winnow.NewClasses([]string{"cat", "dog"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.CreateProject(t.Context(), 0, &winnow.Project{Name: "Pets", Classes: classes, Settings: dbtest.Settings()}); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestImportAndExport(t *testing.T) {
	t.Parallel()
	e := newDataProject(t)
	dir := t.TempDir()
	archive := filepath.Join(dir, "pets.zip")
	writeZip(t, archive, "train/cat/1.png", "train/dog/2.png", "train/emu/3.png", "train/dog/bad.png", "train/notes.txt", "test/cat/4.png")
	out := filepath.Join(dir, "labels.csv")
	if err := os.WriteFile(out, []byte("what was there before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		code int
		want string // part of the standard output
		fail string // part of the standard error
	}{
		{
			[]string{"import", "--project", "pets", "--prefix", "train", "--labeled", archive},
			exitDone, `pets.zip: 3 images added to the pool of "Pets", 1 could not be imported, 1 other file ignored.`, "",
		},
		{
			[]string{"import", "--project", "1", "--prefix", "train", "--labeled", archive},
			exitDone, "not imported: train/dog/bad.png: This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image.\n" +
				`pets.zip: 0 images added to the pool of "Pets", 3 were there already, 1 could not be imported, 1 other file ignored.`, "",
		},
		{
			[]string{"import", "--project", "Pets", "--prefix", "test/", "--split", "test", "--labeled", archive},
			exitDone, `pets.zip: 1 image added to the test images of "Pets".`, "",
		},
		{[]string{"import", "--project", "Pets", "--split", "train", archive}, exitUsage, "", "--split"},
		{[]string{"import", "--project", "Pets"}, exitUsage, "", "at least 1 arg"},
		{[]string{"import", "--project", "Ponies", archive}, exitFailed, "", `no project named "Ponies"`},
		{[]string{"import", "--project", "Pets", filepath.Join(dir, "none")}, exitFailed, "", "no such file or folder"},
		{[]string{"import", "--project", "Pets", dir}, exitFailed, "", "There are no images in"},

		{[]string{"export", "--project", "Pets", "--status", "known"}, exitDone, `"source_path":"train/cat/1.png","split":"pool","status":"known","class":"cat"`, ""},
		{[]string{"export", "--project", "Pets", "--split", "test"}, exitDone, `"source_path":"test/cat/4.png"`, ""},
		{[]string{"export", "--project", "Pets", "-o", out}, exitDone, out + `: 3 records of "Pets".`, ""},
		{[]string{"export", "--project", "Pets", "-o", "/dev/null"}, exitDone, `/dev/null: 3 records of "Pets".`, ""},
		{[]string{"export", "--project", "Pets", "--format", "xlsx"}, exitUsage, "", "xlsx"},
		{[]string{"export", "--project", "Pets", "--status", "good"}, exitFailed, "", "status"},
		{[]string{"export", "--project", "Pets", "--round", "7"}, exitFailed, "", "round"},
		{[]string{"export", "--project", "Pets", "-o", filepath.Join(dir, "none", "x.csv")}, exitFailed, "", "cannot be written"},
	} {
		code, stdout, stderr := runWinnow(t, e, tt.args...)
		if code != tt.code || !strings.Contains(stdout, tt.want) || !strings.Contains(stderr, tt.fail) {
			t.Errorf("winnow %s: exit code %d\n%s%s", strings.Join(tt.args, " "), code, stdout, stderr)
		}
	}
	data, err := os.ReadFile(out)
	if err != nil || strings.Count(string(data), "\n") != 4 || !strings.HasPrefix(string(data), "image_id,") {
		t.Errorf("%v: %s", err, data)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestWriteFileKeepsTheOldOneOnFailure(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "labels.jsonl")
	if err := os.WriteFile(name, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	err := writeFile(name, func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return broken
	})
	data, _ := os.ReadFile(name)
	if !errors.Is(err, broken) || string(data) != "old" {
		t.Errorf("%v, file has %q", err, data)
	}
	if files, _ := os.ReadDir(filepath.Dir(name)); len(files) != 1 {
		t.Errorf("left behind: %v", files)
	}
}

func TestSeedDemo(t *testing.T) {
	t.Parallel()
	e := env{"DATABASE_URL": dbtest.URL(t)}
	for range 2 {
		code, stdout, stderr := runWinnow(t, e, "seed", "demo")
		if code != exitDone || stdout != "The project \"Demo\" is ready, number 1.\n" {
			t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
		}
	}
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 files", 1: "1 file", 999: "999 files", 1000: "1,000 files", 1234567: "1,234,567 files"} {
		if got := count(n, "file", "files"); got != want {
			t.Errorf("count(%d) = %q, want %q", n, got, want)
		}
	}
}
