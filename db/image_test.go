package db_test

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"winnow"
	"winnow/db/dbtest"
)

func TestAddImagesOnce(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	images := dbtest.Images(7, 4, 8)
	images[3] = images[1] // the same twice in one batch
	added, err := b.AddImages(ctx, b.project, 0, b.admin.ID, images)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, true, true, false}, added); diff != "" {
		t.Error("first:", diff)
	}
	if added, err = b.AddImages(ctx, b.project, 0, b.admin.ID, images); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{false, false, false, false}, added); diff != "" {
		t.Error("again:", diff)
	}
	if added, err = b.AddImages(ctx, b.project, 0, b.admin.ID, nil); err != nil || len(added) != 0 {
		t.Errorf("none: %v, %v", added, err)
	}
	b.checkPool(winnow.PoolCounts{Pool: 3})
	_, err = b.AddImages(ctx, 1e9, 0, b.admin.ID, images)
	wantCode(t, err, winnow.CodeNotFound)

	stored, _, err := b.Images(ctx, b.project, winnow.ImageFilter{}, winnow.Page{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(stored, func(i winnow.Image) bool { return i.SHA256 == images[0].SHA256 })
	want := images[0].Image
	want.ProjectID, want.CreatedAt = b.project, b.clock.Now()
	if diff := cmp.Diff(want, stored[i], cmpopts.IgnoreFields(winnow.Image{}, "ID")); diff != "" {
		t.Error(diff)
	}
}

func TestAddImagesWithLabels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	images := dbtest.Images(7, 5, 8)
	dbtest.AddImages(t, b.Store, b.project, images) // without labels
	again := dbtest.Images(7, 5, 8)
	again[0].Verdict, again[0].Class = winnow.VerdictKnown, 2
	again[1].Verdict = winnow.VerdictUnknown
	again = append(again, again[0]) // the same in another class folder: the first counts
	again[5].Class = 1
	added, err := b.AddImages(ctx, b.project, 0, b.admin.ID, again)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(added, true) {
		t.Errorf("images were added twice: %v", added)
	}
	b.checkPool(winnow.PoolCounts{Pool: 5, Known: 1, Unknown: 1})

	// A label that stands is not changed by an import.
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(7, 5, 8), 0))
	b.checkPool(winnow.PoolCounts{Pool: 5, Known: 4, Unknown: 1})
	two := 2
	stored, _, err := b.Images(ctx, b.project, winnow.ImageFilter{Class: &two}, winnow.Page{})
	if err != nil || len(stored) != 1 || stored[0].SHA256 != images[0].SHA256 {
		t.Fatalf("of class 2: %v, %v", stored, err)
	}
	history, err := b.ImageHistory(ctx, b.project, stored[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	want := []winnow.HistoryEntry{{LabelEvent: winnow.LabelEvent{
		ID: history[0].ID, ProjectID: b.project, ImageID: stored[0].ID, UserID: b.admin.ID, Kind: winnow.EventImport,
		Verdict: winnow.VerdictKnown, Class: 2, ClassVersion: 1, At: b.clock.Now(),
	}, User: "admin", Round: -1, Stands: true}}
	if diff := cmp.Diff(want, history); diff != "" {
		t.Error("history:", diff)
	}
	_, err = b.AddImages(ctx, b.project, 0, 0, dbtest.Labeled(dbtest.Images(8, 1, 8), 3))
	wantCode(t, err, winnow.CodeInvalid)
	b.checkPool(winnow.PoolCounts{Pool: 5, Known: 4, Unknown: 1})
	b.checkInvariants()
}

func TestAddImagesFromTwoImportsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, 0, nil)
	images := dbtest.Labeled(dbtest.Images(7, 200, 8), 1)
	total := make([]int, 4)
	var wg sync.WaitGroup
	for i := range total {
		wg.Go(func() {
			mine := slices.Clone(images)
			if i%2 == 1 {
				slices.Reverse(mine)
			}
			for batch := range slices.Chunk(mine, 20) {
				added, err := b.AddImages(t.Context(), b.project, 0, 0, batch)
				if err != nil {
					t.Error(err)
				}
				for _, a := range added {
					if a {
						total[i]++
					}
				}
			}
		})
	}
	wg.Wait()
	if n := total[0] + total[1] + total[2] + total[3]; n != len(images) {
		t.Errorf("%d images were added, want each of %d once", n, len(images))
	}
	b.checkPool(winnow.PoolCounts{Pool: 200, Known: 200})
	b.checkInvariants()
}

func TestImagesFilterAndPage(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 7, nil)
	held := dbtest.Labeled(dbtest.Images(3, 2, 8), 2)
	for i := range held {
		held[i].Split = winnow.SplitTest
	}
	dbtest.AddImages(t, b.Store, b.project, held)
	b.open()
	items := b.claim(b.admin.ID, 3)
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 2, "a"))
	b.decide(b.admin.ID, decision(items[1].ID, winnow.VerdictSkip, -1, "b"))
	zero, two := 0, 2
	for name, tc := range map[string]struct {
		filter winnow.ImageFilter
		want   int
	}{
		"all":                   {winnow.ImageFilter{}, 9},
		"pool":                  {winnow.ImageFilter{Split: winnow.SplitPool}, 7},
		"test":                  {winnow.ImageFilter{Split: winnow.SplitTest}, 2},
		"unlabeled":             {winnow.ImageFilter{Verdict: winnow.Unlabeled}, 5},
		"known":                 {winnow.ImageFilter{Verdict: "known"}, 3},
		"known of the pool":     {winnow.ImageFilter{Verdict: "known", Split: winnow.SplitPool}, 1},
		"of a class":            {winnow.ImageFilter{Class: &two}, 3},
		"of no class":           {winnow.ImageFilter{Class: &zero}, 0},
		"of a round":            {winnow.ImageFilter{Round: &zero}, 5},
		"skipped in a round":    {winnow.ImageFilter{Round: &zero, Verdict: "skip"}, 1},
		"of a round that isn't": {winnow.ImageFilter{Round: &two}, 0},
	} {
		var all []winnow.ImageID
		for page := (winnow.Page{Limit: 2}); ; {
			images, next, err := b.Images(ctx, b.project, tc.filter, page)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if len(images) > 2 {
				t.Errorf("%s: a page of %d", name, len(images))
			}
			for _, i := range images {
				all = append(all, i.ID)
			}
			if page.After = next; next == "" {
				break
			}
		}
		if len(all) != tc.want || !slices.IsSorted(all) || len(slices.Compact(all)) != tc.want {
			t.Errorf("%s: %v, want %d images in order", name, all, tc.want)
		}
	}
	_, _, err := b.Images(ctx, b.project, winnow.ImageFilter{Split: "train"}, winnow.Page{})
	wantCode(t, err, winnow.CodeInvalid)
	_, _, err = b.Images(ctx, b.project, winnow.ImageFilter{Verdict: "nice"}, winnow.Page{})
	wantCode(t, err, winnow.CodeInvalid)
	_, err = b.Image(ctx, b.project+1, items[0].ImageID)
	wantCode(t, err, winnow.CodeNotFound)
}

func TestImageBytes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	images := dbtest.Images(1, 2, 8)
	images[1].MediaType, images[1].Display = "image/tiff", []byte("\x89PNG\r\n\x1a\nfor browsers")
	dbtest.AddImages(t, b.Store, b.project, images)
	pool, err := b.PoolSet(ctx, b.project, math.MaxInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range pool {
		stored, err := b.Image(ctx, b.project, id)
		if err != nil {
			t.Fatal(err)
		}
		image := images[slices.IndexFunc(images, func(i winnow.NewImage) bool { return i.SHA256 == stored.SHA256 })]
		display := image.Display
		if display == nil {
			display = image.Original
		}
		for rendition, want := range map[string]struct {
			data      []byte
			mediaType string
		}{
			"original": {image.Original, image.MediaType},
			"display":  {display, "image/png"},
			"thumb":    {image.Thumbnail, "image/jpeg"},
		} {
			data, mediaType, sha, err := b.ImageBytes(ctx, b.project, id, rendition)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(data, want.data) || mediaType != want.mediaType || sha != image.SHA256 {
				t.Errorf("%s of %s: %d bytes of %s, want %d of %s", rendition, image.MediaType, len(data), mediaType, len(want.data), want.mediaType)
			}
		}
		if _, mediaType, err := b.Original(ctx, id); err != nil || mediaType != image.MediaType {
			t.Errorf("original: %s, %v", mediaType, err)
		}
	}
	_, _, _, err = b.ImageBytes(ctx, b.project, pool[0], "huge")
	wantCode(t, err, winnow.CodeNotFound)
	_, _, _, err = b.ImageBytes(ctx, b.project+1, pool[0], "thumb")
	wantCode(t, err, winnow.CodeNotFound)
}

func TestPixels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	images := dbtest.Images(1, 3, 8)
	dbtest.AddImages(t, b.Store, b.project, images)
	ids, err := b.PoolSet(ctx, b.project, math.MaxInt64, math.MaxInt64)
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(ids) // the order asked for is the order given
	dst := make([]byte, len(ids)*8*8*3)
	missing, err := b.Pixels(ctx, ids, 8, dst)
	if err != nil || len(missing) != 0 {
		t.Fatalf("missing %v, %v", missing, err)
	}
	for n, id := range ids {
		stored, err := b.Image(ctx, b.project, id)
		if err != nil {
			t.Fatal(err)
		}
		image := images[slices.IndexFunc(images, func(i winnow.NewImage) bool { return i.SHA256 == stored.SHA256 })]
		if !bytes.Equal(dst[n*192:(n+1)*192], image.Pixels) {
			t.Errorf("the pixels at %d are not those of image %d", n, id)
		}
	}

	small := make([]byte, len(ids)*4*4*3)
	if missing, err = b.Pixels(ctx, ids, 4, small); err != nil || !slices.Equal(missing, ids) {
		t.Errorf("missing at another size: %v, %v, want all", missing, err)
	}
	if err := b.PutPixels(ctx, ids[1], 4, bytes.Repeat([]byte{9}, 48)); err != nil {
		t.Fatal(err)
	}
	if missing, err = b.Pixels(ctx, ids, 4, small); err != nil || len(missing) != 2 || small[48] != 9 || small[0] != 0 {
		t.Errorf("after one was put: missing %v, %v, %v", missing, small[47:50], err)
	}
	if _, err := b.Pixels(ctx, ids, 8, dst[1:]); err == nil {
		t.Error("a buffer of the wrong size was taken")
	}
}

func TestExportLabels(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 7, nil)
	dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(2, 1, 8), 1))
	held := dbtest.Labeled(dbtest.Images(3, 1, 8), 2)
	held[0].Split = winnow.SplitTest
	dbtest.AddImages(t, b.Store, b.project, held)
	b.open()
	items := b.claim(b.admin.ID, 5)
	b.decide(b.admin.ID, decision(items[0].ID, winnow.VerdictKnown, 0, "a"))
	b.decide(b.admin.ID, decision(items[1].ID, winnow.VerdictUnknown, -1, "b"))
	b.decide(b.admin.ID, decision(items[2].ID, winnow.VerdictSkip, -1, "c"))

	export := func(f winnow.LabelFilter) (records []winnow.LabelRecord) {
		t.Helper()
		err := b.ExportLabels(ctx, b.project, f, func(r winnow.LabelRecord) error {
			records = append(records, r)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return records
	}
	zero, one := 0, 1
	for name, tc := range map[string]struct {
		filter winnow.LabelFilter
		want   []string
	}{
		"decided":              {winnow.LabelFilter{}, []string{"known", "unknown", "skip", "known"}},
		"test":                 {winnow.LabelFilter{Split: winnow.SplitTest}, []string{"known"}},
		"known":                {winnow.LabelFilter{Statuses: []string{"known"}}, []string{"known", "known"}},
		"skip and unlabeled":   {winnow.LabelFilter{Statuses: []string{"skip", "unlabeled"}}, []string{"skip", "unlabeled", "unlabeled", "unlabeled", "unlabeled"}},
		"unlabeled":            {winnow.LabelFilter{Statuses: []string{"unlabeled"}}, []string{"unlabeled", "unlabeled", "unlabeled", "unlabeled"}},
		"of a round":           {winnow.LabelFilter{Round: &zero}, []string{"known", "unknown", "skip"}},
		"undecided of a round": {winnow.LabelFilter{Round: &zero, Statuses: []string{"unlabeled"}}, []string{"unlabeled", "unlabeled"}},
		"of no round":          {winnow.LabelFilter{Round: &one}, nil},
	} {
		var got []string
		for _, r := range export(tc.filter) {
			got = append(got, r.Status)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}

	image, err := b.Image(ctx, b.project, items[0].ImageID)
	if err != nil {
		t.Fatal(err)
	}
	at := b.clock.Now()
	want := winnow.LabelRecord{
		ImageID: image.ID, SHA256: fmt.Sprintf("%x", image.SHA256), SourcePath: image.SourcePath, Split: winnow.SplitPool,
		Status: "known", Class: "c0", ClassIndex: &zero, ClassVersion: 1, Origin: winnow.EventLabel, Round: &zero,
		Slice: winnow.SliceQuery, Rank: 1, Annotator: "admin@example.org", LabeledAt: &at, DurationMS: 700, Width: 8, Height: 8,
	}
	if diff := cmp.Diff(want, export(winnow.LabelFilter{})[0]); diff != "" {
		t.Error(diff)
	}
	imported := export(winnow.LabelFilter{Statuses: []string{"known"}})[1]
	if imported.Origin != winnow.EventImport || imported.Round != nil || imported.Class != "c1" {
		t.Errorf("the imported one: %+v", imported)
	}

	stop := errors.New("enough")
	err = b.ExportLabels(ctx, b.project, winnow.LabelFilter{}, func(winnow.LabelRecord) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the export ends with %v, want the callback's error", err)
	}
	err = b.ExportLabels(ctx, b.project, winnow.LabelFilter{Statuses: []string{"nice"}}, func(winnow.LabelRecord) error { return nil })
	wantCode(t, err, winnow.CodeInvalid)
}

func TestExportManyInOneSnapshot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	const n = 4001 // three chunks
	images := make([]winnow.NewImage, n)
	for i := range images {
		images[i] = dbtest.Labeled(dbtest.Images(1, 1, 8), i%3)[0]
		images[i].SHA256[0], images[i].SHA256[1] = byte(i>>8), byte(i)
	}
	for batch := range slices.Chunk(images, 500) {
		dbtest.AddImages(t, b.Store, b.project, batch)
	}
	var last winnow.ImageID
	got := 0
	err := b.ExportLabels(ctx, b.project, winnow.LabelFilter{}, func(r winnow.LabelRecord) error {
		if got == 0 { // what comes after the start is not in the export
			dbtest.AddImages(t, b.Store, b.project, dbtest.Labeled(dbtest.Images(9, 5, 8), 0))
		}
		if r.ImageID <= last {
			return fmt.Errorf("image %d comes after %d", r.ImageID, last)
		}
		last = r.ImageID
		got++
		return nil
	})
	if err != nil || got != n {
		t.Errorf("exported %d of %d, %v", got, n, err)
	}
}

func TestImports(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	b := newBench(t, 0, nil)
	begin := func(source string) *winnow.Import {
		t.Helper()
		id, err := b.CreateImport(ctx, b.admin.ID, winnow.Import{ProjectID: b.project, Source: source, Split: winnow.SplitPool, Labeled: true})
		if err != nil {
			t.Fatal(err)
		}
		imp, err := b.Import(ctx, b.project, id)
		if err != nil {
			t.Fatal(err)
		}
		return imp
	}
	done, dead := begin("done.zip"), begin("dead.zip")
	if done.State != winnow.ImportRunning || !done.FinishedAt.IsZero() {
		t.Errorf("a new import is %s, finished at %v", done.State, done.FinishedAt)
	}
	if _, err := b.AddImages(ctx, b.project, done.ID, b.admin.ID, dbtest.Images(1, 2, 8)); err != nil {
		t.Fatal(err)
	}
	b.silence(30 * time.Second)
	done.Total, done.Done, done.Added, done.Failed = 4, 3, 2, 1
	done.Problems = []winnow.ImportProblem{{Path: "a.png", Reason: "It is empty."}}
	if err := b.UpdateImport(ctx, done); err != nil {
		t.Fatal(err)
	}
	b.silence(31 * time.Second)
	b.clock.Advance(time.Hour) // one machine's clock goes wrong
	if n, err := b.InterruptDeadImports(ctx, time.Minute); n != 1 || err != nil {
		t.Errorf("interrupted %d, %v, want the one that is silent", n, err)
	}
	if imp, err := b.Import(ctx, b.project, dead.ID); err != nil || imp.State != winnow.ImportInterrupted || imp.FinishedAt.IsZero() {
		t.Errorf("the dead one: %+v, %v", imp, err)
	}
	wantCode(t, b.UpdateImport(ctx, dead), winnow.CodeConflict)

	done.State, done.Done, done.Duplicates = winnow.ImportDone, 4, 1
	if err := b.FinishImport(ctx, done); err != nil {
		t.Fatal(err)
	}
	done.FinishedAt = b.clock.Now()
	got, _, err := b.Imports(ctx, b.project, winnow.Page{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].ID != dead.ID {
		t.Fatalf("imports: %+v, want the newest first", got)
	}
	if diff := cmp.Diff(*done, got[1]); diff != "" {
		t.Error(diff)
	}
	_, err = b.Import(ctx, b.project+1, done.ID)
	wantCode(t, err, winnow.CodeNotFound)
}
