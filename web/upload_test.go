package web_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/web"
)

type file struct{ name, data string }

// upload posts a multipart form.
func (c *client) upload(path, accept string, fields map[string]string, files ...file) answer {
	c.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for name, value := range fields {
		_ = form.WriteField(name, value)
	}
	for _, f := range files {
		part, err := form.CreatePart(textproto.MIMEHeader{"Content-Disposition": {fmt.Sprintf(`form-data; name="files"; filename=%q`, f.name)}})
		if err != nil {
			c.t.Fatal(err)
		}
		_, _ = part.Write([]byte(f.data))
	}
	_ = form.Close()
	req := c.request(http.MethodPost, path, nil)
	req.Body, req.ContentLength = http.NoBody, 0
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.base+path, &body)
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", form.FormDataContentType())
	req.Header.Set("Accept", accept)
	return c.do(req)
}

func TestUploads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := newWorld(t, func(c *web.Config) { c.UploadDir = dir })
	c := w.role(t, "admin")
	path := fmt.Sprintf("/projects/%d/imports", w.project.ID)
	pool := map[string]string{"split": "pool", "labeled": "true"}

	t.Run("zip", func(t *testing.T) {
		got := c.upload(path, "text/html", pool, file{"animals.ZIP", "PK bytes"})
		if got.status != http.StatusSeeOther || !strings.HasPrefix(got.location, path+"/") {
			t.Fatalf("status %d to %q: %s", got.status, got.location, got.body)
		}
		u := w.importer.uploads[len(w.importer.uploads)-1]
		if u.Name != "animals.ZIP" || u.Split != winnow.SplitPool || !u.Labeled || string(w.importer.data) != "PK bytes" {
			t.Errorf("the importer got %+v, %q", u, w.importer.data)
		}
		if page := c.get(got.location); page.status != 200 || !strings.Contains(page.body, "animals.ZIP") {
			t.Errorf("its page: status %d", page.status)
		}
	})
	t.Run("one folder of a zip", func(t *testing.T) {
		c.upload(path, "text/html", map[string]string{"split": "test", "folder": " test "}, file{"animals.zip", "PK"})
		if u := w.importer.uploads[len(w.importer.uploads)-1]; u.Folder != "test" || u.Split != winnow.SplitTest || u.Labeled {
			t.Errorf("the importer got %+v", u)
		}
	})
	t.Run("folder", func(t *testing.T) {
		got := c.upload(path, "application/json", pool,
			file{"photos/cat/1.png", "one"}, file{"photos/../../../etc/passwd.png", "two"}, file{`C:\dog\3.png`, "three"})
		var made struct{ Location string }
		if err := json.Unmarshal([]byte(got.body), &made); got.status != http.StatusCreated || err != nil || !strings.HasPrefix(made.Location, path+"/") {
			t.Fatalf("status %d: %s", got.status, got.body)
		}
		archive, err := zip.NewReader(bytes.NewReader(w.importer.data), int64(len(w.importer.data)))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, f := range archive.File {
			names = append(names, f.Name)
		}
		if want := []string{"photos/cat/1.png", "etc/passwd.png", "C:/dog/3.png"}; !slices.Equal(names, want) {
			t.Errorf("the ZIP holds %q, want %q", names, want)
		}
	})
	for _, tc := range []struct {
		name   string
		fields map[string]string
		files  []file
		refuse error
		status int
		says   string
	}{
		{"too large", pool, []file{{"a.zip", strings.Repeat("x", 2<<20)}}, nil, 413, "larger than the limit of 1.0 MB"},
		{"no file", pool, nil, nil, 422, "Choose a ZIP"},
		{"two archives", pool, []file{{"a.zip", "x"}, {"b.zip", "x"}}, nil, 422, "one ZIP"},
		{"archive after images", pool, []file{{"a.png", "x"}, {"b.zip", "x"}}, nil, 422, "one ZIP"},
		{"no split", nil, []file{{"a.zip", "x"}}, nil, 422, "for the pool or for testing"},
		{"folder too long", map[string]string{"split": "pool", "folder": strings.Repeat("x", 2000)}, []file{{"a.zip", "x"}}, nil, 422, "at most 1024 bytes"},
		{"too much text", map[string]string{"split": strings.Repeat("x", 300<<10)}, nil, nil, 413, "more text"},
		{"corrupt archive", pool, []file{{"a.zip", "x"}}, winnow.Errorf(winnow.CodeInvalid, "The file is not a ZIP archive, or it is damaged."), 422, "it is damaged"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w.importer.refuse = tc.refuse
			for _, accept := range []string{"text/html", "application/json"} {
				got := c.upload(path, accept, tc.fields, tc.files...)
				if got.status != tc.status || !strings.Contains(got.body, tc.says) {
					t.Errorf("%s: status %d, want %d saying %q: %s", accept, got.status, tc.status, tc.says, got.body)
				}
			}
		})
	}
	w.server.Close()
	noFiles(t, dir)
}

func TestNewProject(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.role(t, "site")
	fields := map[string]string{
		"name": " Birds ", "classes": "ship\r\nbird\r\n\r\n", "instructions": "Look.\r\nTwice.", "budget": "20", "strategy": "random", "split": "pool",
	}
	got := c.upload("/projects", "text/html", fields, file{"birds.zip", "PK"})
	if got.status != http.StatusSeeOther || !strings.Contains(got.location, "/imports/") {
		t.Fatalf("status %d to %q: %s", got.status, got.location, got.body)
	}
	p, err := w.store.FindProject(t.Context(), "Birds")
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Classes) != 2 || p.Classes[1].Name != "bird" || p.Instructions != "Look.\nTwice." ||
		p.Settings.Budget != 20 || p.Settings.Strategy != "random" || p.Settings.Flip || p.Settings.Epochs != winnow.DefaultSettings().Epochs {
		t.Errorf("made %+v", p)
	}
	again := c.upload("/projects", "text/html", fields)
	if again.status != http.StatusConflict && again.status != http.StatusUnprocessableEntity {
		t.Errorf("the same name again: status %d", again.status)
	}
	if !strings.Contains(again.body, "bird") {
		t.Error("the refused form has lost what was typed")
	}
	bare := c.upload("/projects", "text/html", map[string]string{"name": "Bare", "classes": "one"})
	if bare.status != http.StatusSeeOther {
		t.Fatalf("without images: status %d: %s", bare.status, bare.body)
	}
	if page := c.get(bare.location); !strings.Contains(page.body, "Import images") {
		t.Error("an empty project does not say what to do next")
	}
}

// A server that is killed leaves the file of an upload behind: the next one takes it
// away, but nothing that may still be in use or is not its own.
func TestUploadsLeftBehindAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, age := range map[string]time.Duration{
		"winnow-upload-1.zip": 2 * time.Hour, // left behind
		"winnow-upload-2.zip": time.Minute,   // maybe another server's
		"holidays.zip":        9 * time.Hour,
	} {
		path, at := filepath.Join(dir, name), time.Now().Add(-age)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld(t, func(c *web.Config) { c.UploadDir = dir })
	c, stop := w.serve(t, "viewer")
	if got := c.get("/healthz"); got.status != 200 {
		t.Fatalf("status %d", got.status)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range left {
		left[i] = filepath.Base(left[i])
	}
	if diff := cmp.Diff([]string{"holidays.zip", "winnow-upload-2.zip"}, left); diff != "" {
		t.Error(diff)
	}
}
