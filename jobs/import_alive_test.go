package jobs_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"winnow"
	"winnow/imaging"
	"winnow/jobs"
)

// lifeSigns remembers the longest silence of an import.
type lifeSigns struct {
	last    time.Time
	silence time.Duration
}

func (l *lifeSigns) sign() {
	l.silence = max(l.silence, time.Since(l.last))
	l.last = time.Now()
}

func (l *lifeSigns) CreateImport(context.Context, winnow.UserID, winnow.Import) (winnow.ImportID, error) {
	l.last = time.Now()
	return 1, nil
}

func (l *lifeSigns) UpdateImport(context.Context, *winnow.Import) error { l.sign(); return nil }
func (l *lifeSigns) FinishImport(context.Context, *winnow.Import) error { l.sign(); return nil }

func (l *lifeSigns) AddImages(_ context.Context, _ winnow.ProjectID, _ winnow.ImportID, _ winnow.UserID, images []winnow.NewImage) ([]bool, error) {
	time.Sleep(time.Minute) // a database that is very busy
	return make([]bool, len(images)), nil
}

// slowDisk takes two minutes to list its files.
type slowDisk struct{ imaging.Source }

func (s slowDisk) Walk(ctx context.Context, prefix string, fn func(imaging.File) error) (int64, error) {
	time.Sleep(2 * time.Minute)
	return s.Source.Walk(ctx, prefix, fn)
}

// TestASlowImportShowsThatItLives has an import wait for its files and its store: who
// is silent for half a minute is taken for dead.
func TestASlowImportShowsThatItLives(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var signs lifeSigns
		project := &winnow.Project{ID: 1, Settings: winnow.DefaultSettings()}
		report, err := jobs.NewImporter(&signs, imaging.DefaultLimits()).Import(t.Context(), jobs.ImportRequest{
			Project: project, Source: slowDisk{zipOf(t, "a.png", picture(1), "b.png", picture(2))}, Split: winnow.SplitPool,
		})
		if err != nil || report.Done != 2 {
			t.Errorf("%d done, %v", report.Done, err)
		}
		if signs.silence > 15*time.Second {
			t.Errorf("the import said nothing for %v", signs.silence)
		}
	})
}
