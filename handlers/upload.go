package handlers

import (
	"archive/zip"
	"context"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"winnow"
)

// Importer brings the images of an uploaded ZIP into a project. Begin records the
// import and returns it with the work that is left; from then on the work owns the
// upload's file, and removes it.
type Importer interface {
	BeginUpload(ctx context.Context, project *winnow.Project, by winnow.UserID, upload Upload) (*winnow.Import, func(ctx context.Context), error)
}

// Upload is a ZIP that somebody sent, waiting in a file.
type Upload struct {
	Name    string // as the sender called it
	Path    string // where it is
	Split   winnow.Split
	Labeled bool   // class folders become labels
	Folder  string // only what lies in this folder of the ZIP; "" for all of it
}

// Uploads takes the files of forms. They go to disk as they come, never into
// memory as a whole; loose images are put into a ZIP, so that an import reads one
// kind of thing.
type Uploads struct {
	Importer Importer
	Dir      string // where uploads wait; "" for the system's temporary folder
	Limit    int64  // bytes of a request
	Go       func(work func(ctx context.Context))
}

// uploadPattern names the files of uploads.
const uploadPattern = "winnow-upload-*.zip"

// abandoned is when a file that nobody writes is what a process left that was killed.
// An upload that lives writes its file at least every minute, and an import holds its
// file open: on Unix it may lose its name.
const abandoned = time.Hour

// Sweep removes the files that were left behind. What cannot be removed, such as
// another user's file, stays.
func (u *Uploads) Sweep(now time.Time) (removed int) {
	dir := u.Dir
	if dir == "" {
		dir = os.TempDir()
	}
	names, _ := filepath.Glob(filepath.Join(dir, uploadPattern)) // the pattern is good
	for _, name := range names {
		info, err := os.Lstat(name)
		if err != nil || !info.Mode().IsRegular() || now.Sub(info.ModTime()) < abandoned {
			continue
		}
		if os.Remove(name) == nil {
			removed++
		}
	}
	return removed
}

// Bounds on what a form may hold beside its files.
const (
	maxFieldBytes = 256 << 10
	maxFields     = 200
	maxFiles      = 100_000
	// stalled ends an upload of which nothing arrives.
	stalled = time.Minute
)

// savedUpload is the file of a form.
type savedUpload struct {
	name string
	path string
}

// discard removes the file, unless an import took it over.
func (u *savedUpload) discard() {
	if u != nil && u.path != "" {
		_ = os.Remove(u.path)
	}
}

// read takes a multipart form: its fields, and its files as one ZIP, nil when none
// was chosen.
func (u *Uploads) read(w http.ResponseWriter, r *http.Request) (url.Values, *savedUpload, error) {
	r.Body = &patientBody{http.MaxBytesReader(w, r.Body, u.Limit), http.NewResponseController(w)}
	parts, err := r.MultipartReader()
	if err != nil {
		return nil, nil, formError(err)
	}
	f := &formReader{dir: u.Dir, form: url.Values{}}
	if err := f.read(parts); err != nil {
		f.abandon()
		return nil, nil, uploadError(err)
	}
	saved, err := f.finish()
	if err != nil {
		f.abandon()
		return nil, nil, err
	}
	return f.form, saved, nil
}

// begin starts the import of an upload; the upload is the import's afterwards.
func (u *Uploads) begin(ctx context.Context, p *winnow.Project, by winnow.UserID, form url.Values, saved *savedUpload) (*winnow.Import, error) {
	split := winnow.Split(form.Get("split"))
	if split != winnow.SplitPool && split != winnow.SplitTest {
		return nil, winnow.Invalid("split", "Images are for the pool or for testing.")
	}
	folder := strings.TrimSpace(form.Get("folder"))
	if len(folder) > winnow.MaxFolder {
		return nil, winnow.Invalid("folder", "The path of a folder has at most %d bytes.", winnow.MaxFolder)
	}
	imp, work, err := u.Importer.BeginUpload(ctx, p, by, Upload{
		Name: saved.name, Path: saved.path, Split: split, Labeled: form.Get("labeled") == "true", Folder: folder,
	})
	if err != nil {
		return nil, err
	}
	saved.path = ""
	u.Go(work)
	return imp, nil
}

// formReader collects the parts of a form.
type formReader struct {
	dir   string
	form  url.Values
	names int   // fields so far
	bytes int64 // of the fields so far

	file    *os.File // where the files go
	name    string   // of the first file
	loose   *zip.Writer
	entries int
}

func (f *formReader) read(parts *multipart.Reader) error {
	for {
		part, err := parts.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := filename(part)
		switch {
		case name != "":
			err = f.addFile(name, part)
		case part.FormName() == "files": // no file was chosen
		default:
			err = f.addField(part)
		}
		if err != nil {
			return err
		}
	}
}

func (f *formReader) addField(part *multipart.Part) error {
	data, err := io.ReadAll(io.LimitReader(part, maxFieldBytes-f.bytes+1))
	if err != nil {
		return err
	}
	f.names++
	f.bytes += int64(len(data))
	if f.bytes > maxFieldBytes || f.names > maxFields {
		return winnow.Errorf(winnow.CodeTooLarge, "The form holds more text than it can take. Nothing of it was kept.")
	}
	f.form.Add(part.FormName(), string(data))
	return nil
}

func (f *formReader) addFile(name string, part io.Reader) error {
	if f.file == nil {
		file, err := os.CreateTemp(f.dir, uploadPattern)
		if err != nil {
			return &winnow.Error{Code: winnow.CodeUnavailable, Message: "There is no room for the upload on the server. Ask whoever runs it.", Err: err}
		}
		f.file, f.name = file, path.Base(name)
	}
	if strings.EqualFold(path.Ext(name), ".zip") {
		if f.entries > 0 {
			return winnow.Invalid("files", "Send one ZIP, or images without a ZIP.")
		}
		f.entries = maxFiles // nothing may follow it
		_, err := io.Copy(f.file, part)
		return err
	}
	if f.entries >= maxFiles {
		return winnow.Invalid("files", "Send one ZIP, or at most %d images without a ZIP.", maxFiles)
	}
	if f.loose == nil {
		f.loose = zip.NewWriter(f.file)
	}
	f.entries++
	// Images are compressed already.
	entry, err := f.loose.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
	if err != nil {
		return err
	}
	_, err = io.Copy(entry, part)
	return err
}

// finish closes the file.
func (f *formReader) finish() (*savedUpload, error) {
	if f.file == nil {
		return nil, nil
	}
	if f.loose != nil {
		if err := f.loose.Close(); err != nil {
			return nil, err
		}
		if f.entries > 1 {
			f.name = "loose images"
		}
	}
	saved := &savedUpload{name: f.name, path: f.file.Name()}
	return saved, f.file.Close()
}

// abandon removes what was written.
func (f *formReader) abandon() {
	if f.file != nil {
		_ = f.file.Close()
		_ = os.Remove(f.file.Name())
	}
}

// filename is the name that the sender gave a file, with its folders: those are
// what names classes. It leads nowhere outside the ZIP it is put into.
func filename(part *multipart.Part) string {
	_, params, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil || params["filename"] == "" {
		return ""
	}
	name := path.Clean("/" + strings.ReplaceAll(params["filename"], `\`, "/"))[1:]
	if name == "" {
		return "file"
	}
	return name
}

func uploadError(err error) error {
	var e *winnow.Error
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &e):
		return err
	case errors.As(err, &big):
		return bodyError(err)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &winnow.Error{Code: winnow.CodeInvalid, Message: "The upload stopped half way. Nothing was imported; send it again.", Err: err}
	default:
		return &winnow.Error{Code: winnow.CodeInvalid, Message: "The upload could not be read to its end. Nothing was imported; send it again.", Err: err}
	}
}

// patientBody gives the sender time as long as something arrives.
type patientBody struct {
	io.ReadCloser
	rc *http.ResponseController
}

func (b *patientBody) Read(p []byte) (int, error) {
	// Not every writer has deadlines; without one the server's own limit holds.
	_ = b.rc.SetReadDeadline(time.Now().Add(stalled))
	_ = b.rc.SetWriteDeadline(time.Now().Add(2 * stalled))
	return b.ReadCloser.Read(p)
}
