package jobs_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/imaging"
	"winnow/jobs"
)

// importBundle is a project to import into.
type importBundle struct {
	store    *db.Store
	admin    winnow.User
	project  *winnow.Project
	importer *jobs.Importer
}

func newImportBundle(t testing.TB, classes ...string) importBundle {
	t.Helper()
	b := importBundle{store: dbtest.New(t, db.Options{})}
	b.admin = dbtest.User(t, b.store, "admin")
	list, err := winnow.NewClasses(classes)
	if err != nil {
		t.Fatal(err)
	}
	id, err := b.store.CreateProject(t.Context(), b.admin.ID, &winnow.Project{Name: "Imports", Classes: list, Settings: dbtest.Settings()})
	if err != nil {
		t.Fatal(err)
	}
	b.project = b.reload(t, id)
	b.importer = jobs.NewImporter(b.store, imaging.DefaultLimits())
	return b
}

func (b importBundle) reload(t testing.TB, id winnow.ProjectID) *winnow.Project {
	t.Helper()
	p, err := b.store.Project(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request asks for the pool images of a source.
func (b importBundle) request(s imaging.Source) jobs.ImportRequest {
	return jobs.ImportRequest{Project: b.project, By: b.admin.ID, Source: s, Split: winnow.SplitPool}
}

// records exports what is in the project, by path.
func (b importBundle) records(t testing.TB, split winnow.Split) map[string]winnow.LabelRecord {
	t.Helper()
	out := map[string]winnow.LabelRecord{}
	all := winnow.LabelFilter{Split: split, Statuses: []string{"known", "unknown", "skip", "unreadable", winnow.Unlabeled}}
	err := b.store.ExportLabels(t.Context(), b.project.ID, all, func(r winnow.LabelRecord) error {
		out[r.SourcePath] = r
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// picture is the PNG of a small image that differs for each n.
func picture(n int) []byte {
	m := image.NewRGBA(image.Rect(0, 0, 12, 9))
	for i := range m.Pix {
		m.Pix[i] = byte(i * (n + 1))
	}
	m.Set(0, 0, color.RGBA{byte(n), byte(n >> 8), 0, 255})
	var buf bytes.Buffer
	_ = png.Encode(&buf, m) // into memory, it cannot fail
	return buf.Bytes()
}

// zipOf packs files, in the order given.
func zipOf(t testing.TB, files ...any) imaging.Source {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	for i := 0; i < len(files); i += 2 {
		f, err := w.Create(files[i].(string))
		if err == nil {
			_, err = f.Write(files[i+1].([]byte))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	z, err := imaging.OpenZip("some.zip", bytes.NewReader(buf.Bytes()), int64(buf.Len()), imaging.DefaultZipLimits())
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func ignoreTimes() cmp.Option {
	return cmpopts.IgnoreFields(winnow.Import{}, "ID", "ProjectID", "StartedAt", "FinishedAt")
}

func TestImportReportsBadFilesAndTakesTheRest(t *testing.T) {
	t.Parallel()
	b := newImportBundle(t, "cat", "dog")
	whole := picture(1)
	source := zipOf(t,
		"train/cat/1.png", whole,
		"train/cat/cut.png", whole[:len(whole)/2],
		"train/cat/copy.png", whole,
		"train/dog/2.png", picture(2),
		"train/dog/text.jpg", []byte("hello"),
		"train/notes.txt", []byte("hello"),
		"../up.png", picture(3),
		"test/cat/4.png", picture(4),
	)
	report, err := b.importer.Import(t.Context(), b.request(source))
	if err != nil {
		t.Fatal(err)
	}
	want := winnow.Import{
		Source: "some.zip", Split: winnow.SplitPool, State: winnow.ImportDone,
		Total: 7, Done: 7, Added: 3, Duplicates: 1, Failed: 3, Ignored: 1,
		Problems: []winnow.ImportProblem{
			{Path: "train/cat/cut.png", Reason: "The PNG image is damaged."},
			{Path: "train/dog/text.jpg", Reason: "This is not a PNG, JPEG, GIF, WebP, BMP or TIFF image."},
			{Path: "../up.png", Reason: "Its path leads out of the archive."},
		},
	}
	if diff := cmp.Diff(want, report, ignoreTimes()); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	stored, err := b.store.Import(t.Context(), b.project.ID, report.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, *stored, ignoreTimes()); diff != "" || stored.FinishedAt.IsZero() {
		t.Errorf("stored, finished %v (-want +got):\n%s", stored.FinishedAt, diff)
	}

	again, err := b.importer.Import(t.Context(), b.request(source))
	if err != nil || again.Added != 0 || again.Duplicates != 4 || again.Failed != 3 {
		t.Errorf("again: %d added, %d duplicates, %d failed, %v", again.Added, again.Duplicates, again.Failed, err)
	}
	if p := b.reload(t, b.project.ID); p.Counts.Pool != 3 || p.Counts.Unlabeled() != 3 {
		t.Errorf("counts %+v", p.Counts)
	}
}

func TestImportLabels(t *testing.T) {
	t.Parallel()
	b := newImportBundle(t, "cat", "dog")
	source := zipOf(t,
		"train/cat/1.png", picture(1), "train/Dog/2.png", picture(2), "train/emu/3.png", picture(3), "train/unknown/4.png", picture(4),
		"5.png", picture(5), "test/dog/6.png", picture(6),
	)
	type label struct{ Status, Class, Origin string }
	labels := func(split winnow.Split) map[string]label {
		out := map[string]label{}
		for path, r := range b.records(t, split) {
			out[path] = label{r.Status, r.Class, string(r.Origin)}
		}
		return out
	}
	import1 := func(split winnow.Split, labeled bool, prefix string) {
		t.Helper()
		req := b.request(source)
		req.Split, req.Labeled, req.Prefix = split, labeled, prefix
		if _, err := b.importer.Import(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}

	import1(winnow.SplitTest, true, "test")
	if diff := cmp.Diff(map[string]label{"test/dog/6.png": {"known", "dog", "import"}}, labels(winnow.SplitTest)); diff != "" {
		t.Errorf("test (-want +got):\n%s", diff)
	}
	import1(winnow.SplitPool, false, "train/")
	want := map[string]label{
		"train/cat/1.png": {Status: "unlabeled"}, "train/Dog/2.png": {Status: "unlabeled"},
		"train/emu/3.png": {Status: "unlabeled"}, "train/unknown/4.png": {Status: "unlabeled"},
	}
	if diff := cmp.Diff(want, labels(winnow.SplitPool)); diff != "" {
		t.Errorf("unlabeled (-want +got):\n%s", diff)
	}
	// The labels can come later; what has no folder stays unlabeled, and what is in
	// the test split stays there.
	import1(winnow.SplitPool, true, "")
	want = map[string]label{
		"train/cat/1.png": {"known", "cat", "import"}, "train/Dog/2.png": {"known", "dog", "import"},
		"train/emu/3.png": {"unknown", "", "import"}, "train/unknown/4.png": {"unknown", "", "import"},
		"5.png": {Status: "unlabeled"},
	}
	if diff := cmp.Diff(want, labels(winnow.SplitPool)); diff != "" {
		t.Errorf("labeled (-want +got):\n%s", diff)
	}
}

// stopping cancels the import when a batch is in.
type stopping struct {
	*db.Store
	cancel context.CancelFunc
}

func (s stopping) AddImages(ctx context.Context, project winnow.ProjectID, imp winnow.ImportID, by winnow.UserID, images []winnow.NewImage) ([]bool, error) {
	defer s.cancel()
	return s.Store.AddImages(ctx, project, imp, by, images)
}

func TestImportStoppedHalfWayIsContinued(t *testing.T) {
	t.Parallel()
	b := newImportBundle(t, "cat")
	dir := t.TempDir()
	const total = 700
	for i := range total {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.png", i)), picture(i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	source, err := imaging.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()

	ctx, cancel := context.WithCancel(t.Context())
	report, err := jobs.NewImporter(stopping{b.store, cancel}, imaging.DefaultLimits()).Import(ctx, b.request(source))
	if winnow.ErrorCode(err) != winnow.CodeCanceled {
		t.Errorf("error %v", err)
	}
	if report.State != winnow.ImportInterrupted || report.Added == 0 || report.Added == total {
		t.Errorf("%s with %d added", report.State, report.Added)
	}
	if got := b.reload(t, b.project.ID).Counts.Pool; got != report.Added {
		t.Errorf("%d images are in, %d were reported", got, report.Added)
	}
	if stored, err := b.store.Import(t.Context(), b.project.ID, report.ID); err != nil || stored.State != winnow.ImportInterrupted {
		t.Errorf("stored as %v, %v", stored, err)
	}

	rest, err := b.importer.Import(t.Context(), b.request(source))
	if err != nil || rest.Added != total-report.Added || rest.Duplicates != report.Added {
		t.Errorf("continued: %d added, %d duplicates, %v", rest.Added, rest.Duplicates, err)
	}
}

// failing is a store whose disk is full.
type failing struct{ *db.Store }

func (failing) AddImages(context.Context, winnow.ProjectID, winnow.ImportID, winnow.UserID, []winnow.NewImage) ([]bool, error) {
	return nil, fmt.Errorf("disk full")
}

func TestImportFails(t *testing.T) {
	t.Parallel()
	b := newImportBundle(t, "cat")
	for _, tt := range []struct {
		name   string
		store  jobs.ImportStore
		source imaging.Source
		prefix string
		code   winnow.Code
	}{
		{"no images", b.store, zipOf(t, "a.txt", []byte("a")), "", winnow.CodeInvalid},
		{"nothing under the prefix", b.store, zipOf(t, "train/1.png", picture(1)), "test/", winnow.CodeInvalid},
		{"the store fails", failing{b.store}, zipOf(t, "1.png", picture(1)), "", winnow.CodeInternal},
	} {
		req := b.request(tt.source)
		req.Prefix = tt.prefix
		report, err := jobs.NewImporter(tt.store, imaging.DefaultLimits()).Import(t.Context(), req)
		if winnow.ErrorCode(err) != tt.code || report.State != winnow.ImportFailed {
			t.Errorf("%s: %s, %v", tt.name, report.State, err)
		}
	}
	req := b.request(zipOf(t, "1.png", picture(1)))
	req.Split = "training"
	if _, err := b.importer.Import(t.Context(), req); winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Errorf("wrong split: %v", err)
	}
}

// BenchmarkImportCIFAR10 imports the 50,000 training images into Postgres.
func BenchmarkImportCIFAR10(b *testing.B) {
	source, err := imaging.Open("../../shared/data/cifar10.zip")
	if err != nil {
		b.Skipf("no data: %v", err)
	}
	defer source.Close()
	for b.Loop() {
		bundle := newImportBundle(b, "ship", "bird", "horse", "deer")
		bundle.project.Settings.InputSize = 32
		req := bundle.request(source)
		req.Prefix = "train/"
		report, err := bundle.importer.Import(b.Context(), req)
		if err != nil || report.Added != 50_000 {
			b.Fatalf("%d added, %v", report.Added, err)
		}
	}
}
