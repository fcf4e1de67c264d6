package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// Keys returns a person's own keys of the labeling page.
func (s *Store) Keys(ctx context.Context, user winnow.UserID) (winnow.Keys, error) {
	keys, err := value[winnow.Keys](ctx, s.pool, `SELECT keys FROM users WHERE id = @user`, pgx.NamedArgs{"user": user})
	return keys, wrap(missing(err, "This person does not exist."), "read keys of user %d", user)
}

// SetKeys replaces them. CodeInvalid, with the action as field, if two actions would
// have one key or a key may not be chosen.
func (s *Store) SetKeys(ctx context.Context, user winnow.UserID, keys winnow.Keys) error {
	if err := keys.Validate(); err != nil {
		return err
	}
	own := keys.Own()
	if own == nil {
		own = winnow.Keys{}
	}
	_, err := s.pool.Exec(ctx, `UPDATE users SET keys = @keys WHERE id = @user`, pgx.NamedArgs{"user": user, "keys": own})
	return wrap(err, "set keys of user %d", user)
}
