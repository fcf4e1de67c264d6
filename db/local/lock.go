package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"winnow"
)

// Lock is a hold on a file that ends with the process that has it, however that ends.
type Lock struct{ file *os.File }

// TryLock takes the file for itself alone. It returns nil when somebody else has it.
func TryLock(path string) (*Lock, error) {
	l, err := openLock(path)
	if err != nil {
		return nil, err
	}
	ok, err := l.try(syscall.LOCK_EX)
	if err != nil || !ok {
		l.Release()
		return nil, err
	}
	return l, nil
}

// Release lets others have the file.
func (l *Lock) Release() { _ = l.file.Close() }

func openLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, &winnow.Error{
			Code: winnow.CodeInvalid, Err: err,
			Message: fmt.Sprintf("The file %s cannot be written. Choose another data directory.", path),
		}
	}
	return &Lock{f}, nil
}

// try takes the lock if that is possible at once.
func (l *Lock) try(how int) (bool, error) {
	switch err := syscall.Flock(int(l.file.Fd()), how|syscall.LOCK_NB); {
	case err == nil:
		return true, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		return false, nil
	default:
		return false, fmt.Errorf("local postgres: lock %s: %w", l.file.Name(), err)
	}
}

// share waits until nobody starts or stops the server, and then keeps others from
// stopping it.
func (l *Lock) share(ctx context.Context) error {
	for {
		ok, err := l.try(syscall.LOCK_SH)
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
