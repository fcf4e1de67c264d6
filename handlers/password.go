package handlers

import (
	"context"
	"errors"
	"time"

	"winnow"
	"winnow/password"
)

// passwordWait is how long somebody waits for their turn when many sign in at once.
const passwordWait = 10 * time.Second

// Passwords hashes and checks passwords, as many at a time as there are cores. All
// handlers share one.
type Passwords struct{ hasher *password.Hasher }

// NewPasswords returns what the handlers share.
func NewPasswords() *Passwords { return &Passwords{password.NewHasher(0)} }

func (p *Passwords) hash(ctx context.Context, secret string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, passwordWait)
	defer cancel()
	hash, err := p.hasher.Hash(ctx, secret)
	return hash, tooMany(err)
}

func (p *Passwords) verify(ctx context.Context, hash, secret string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, passwordWait)
	defer cancel()
	ok, err := p.hasher.Verify(ctx, hash, secret)
	return ok, tooMany(err)
}

func tooMany(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &winnow.Error{
			Code: winnow.CodeUnavailable, Message: "Many people are signing in at this moment. Try again in a few seconds.", Err: err,
		}
	}
	return err
}
