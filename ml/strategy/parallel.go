package strategy

import (
	"context"
	"fmt"
	"runtime"
	"sync"
)

// parallel calls do for 0..n-1 on all processors, each index once; do may write
// only what belongs to its index.
func parallel(ctx context.Context, n int, do func(i int)) error {
	share := max((n+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0), 1024)
	var wg sync.WaitGroup
	for lo := 0; lo < n; lo += share {
		wg.Go(func() {
			for i := lo; i < min(lo+share, n); i++ {
				if i%4096 == 0 && ctx.Err() != nil {
					return
				}
				do(i)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("query: %w", err)
	}
	return nil
}
