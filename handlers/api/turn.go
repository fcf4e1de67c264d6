package api

import (
	"time"

	"github.com/danielgtaylor/huma/v2"

	"winnow"
)

// An export holds a connection to the database until its reader has all of it, so
// that it shows one moment. Slow readers must not keep annotators from theirs: at most
// maxExports run at a time, and who comes then waits for exportWait.
const (
	maxExports = 3
	exportWait = 10 * time.Second
)

// inTurn is the middleware of operations that export.
func (s *service) inTurn(ctx huma.Context, next func(huma.Context)) {
	timer := time.NewTimer(exportWait)
	defer timer.Stop()
	select {
	case s.exports <- struct{}{}:
		defer func() { <-s.exports }()
		next(ctx)
	case <-ctx.Context().Done():
	case <-timer.C:
		ctx.SetHeader("Retry-After", "60")
		s.fail(ctx, winnow.Errorf(winnow.CodeUnavailable, "Other exports are running, as many as may at a time. Try again in a minute."))
	}
}
