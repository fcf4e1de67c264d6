// Package e2e tests Winnow as people meet it: the built program, a real Postgres,
// real training, and Chromium.
package e2e

import (
	"os"
	"sync"
	"testing"
)

var (
	exitsLock sync.Mutex
	exits     []func()
)

// atExit runs f after the last test, latest first.
func atExit(f func()) {
	exitsLock.Lock()
	defer exitsLock.Unlock()
	exits = append(exits, f)
}

func TestMain(m *testing.M) {
	code := m.Run()
	for i := len(exits) - 1; i >= 0; i-- {
		exits[i]()
	}
	os.Exit(code)
}
