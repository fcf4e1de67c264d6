package web_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"winnow"
	"winnow/db"
	"winnow/web"
)

// TestExportsLeaveConnections starts more exports than may run at a time: those that
// run are never more, the others get their turn, and pages are answered meanwhile.
func TestExportsLeaveConnections(t *testing.T) {
	t.Parallel()
	const asked, atOnce = 8, 3
	slow := &slowExports{entered: make(chan struct{}, asked), leave: make(chan struct{})}
	w := newWorldWith(t, func(_ *web.Config, d *web.Deps) {
		slow.Store = d.API.(*db.Store)
		d.API = slow
	})
	token := w.token(t, w.people["viewer"], time.Hour)
	var readers sync.WaitGroup
	for range asked {
		readers.Go(func() {
			got := w.anonymous(t).call(fmt.Sprintf("/api/v1/projects/%d/labels", w.project.ID), token)
			if got.status != 200 {
				t.Errorf("status %d: %s", got.status, got.body)
			}
		})
	}
	for range atOnce {
		<-slow.entered
	}
	if got := w.role(t, "annotator").get(fmt.Sprintf("/projects/%d/label", w.project.ID)); got.status != 200 {
		t.Errorf("the labeling page: status %d", got.status)
	}
	close(slow.leave)
	readers.Wait()
	if n := slow.most.Load(); n != atOnce {
		t.Errorf("%d exports ran at once, want %d", n, atOnce)
	}
}

// slowExports are exports that wait for their readers.
type slowExports struct {
	*db.Store
	entered, leave chan struct{}
	now, most      atomic.Int64
}

func (s *slowExports) ExportLabels(ctx context.Context, p winnow.ProjectID, f winnow.LabelFilter, fn func(winnow.LabelRecord) error) error {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.entered <- struct{}{}
	<-s.leave
	return s.Store.ExportLabels(ctx, p, f, fn)
}
