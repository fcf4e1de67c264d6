package password

import (
	"context"
	"runtime"
)

// Hasher bounds how many passwords are hashed or checked at a time: each takes 19 MiB
// and a core for some hundredths of a second, and whoever asks for many at once must
// not take the machine from everybody else.
type Hasher struct{ places chan struct{} }

// NewHasher returns a hasher that does n at a time; 0 stands for one a core.
func NewHasher(n int) *Hasher {
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	return &Hasher{make(chan struct{}, n)}
}

// Hash is the function of that name, in turn. It gives up with the context's error
// when ctx ends before its turn comes.
func (h *Hasher) Hash(ctx context.Context, password string) (string, error) {
	if err := h.enter(ctx); err != nil {
		return "", err
	}
	defer h.leave()
	return Hash(password)
}

// Verify is the function of that name, in turn. It gives up with the context's error
// when ctx ends before its turn comes.
func (h *Hasher) Verify(ctx context.Context, hash, password string) (bool, error) {
	if err := h.enter(ctx); err != nil {
		return false, err
	}
	defer h.leave()
	return Verify(hash, password)
}

func (h *Hasher) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err // even if a place is free
	}
	select {
	case h.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *Hasher) leave() { <-h.places }
