package password

import (
	"context"
	"errors"
	"sync"
	"testing"
)

func TestHasherTakesTurns(t *testing.T) {
	t.Parallel()
	h := NewHasher(1)
	hash, err := h.Hash(t.Context(), "correct horse battery")
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := h.Verify(t.Context(), hash, "correct horse battery"); !ok || err != nil {
		t.Errorf("Verify = %v, %v", ok, err)
	}

	// Somebody has the only place: nobody else gets one, and who gives up is told so.
	if err := h.enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	for range 3 {
		waiting.Go(func() {
			if _, err := h.Hash(ctx, "x"); !errors.Is(err, context.Canceled) {
				t.Errorf("Hash without a place: %v", err)
			}
			if _, err := h.Verify(ctx, hash, "x"); !errors.Is(err, context.Canceled) {
				t.Errorf("Verify without a place: %v", err)
			}
		})
	}
	cancel()
	waiting.Wait()
	h.leave()
	if _, err := h.Hash(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("Hash for somebody who has gone: %v", err)
	}
	if _, err := h.Hash(t.Context(), "x"); err != nil {
		t.Errorf("after the place is free again: %v", err)
	}
}
