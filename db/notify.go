package db

import (
	"context"
	"encoding/json"

	"github.com/jackc/pgx/v5"

	"winnow"
)

const channel = "winnow"

// notify tells the listeners of n once the transaction commits.
func notify(ctx context.Context, tx pgx.Tx, n winnow.Notice) error {
	payload, err := json.Marshal(n)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, "SELECT pg_notify(@channel, @payload)",
		pgx.NamedArgs{"channel": channel, "payload": string(payload)})
	return err
}

// queueNotice is notify as a part of a batch.
func queueNotice(batch *pgx.Batch, n winnow.Notice) {
	payload, _ := json.Marshal(n) // numbers only: cannot fail
	batch.Queue("SELECT pg_notify(@channel, @payload)", pgx.NamedArgs{"channel": channel, "payload": string(payload)})
}

// Listen calls fn for every notice until ctx ends, when it returns nil, or the
// connection is lost, when it returns CodeUnavailable: the caller listens again. The
// first notice is empty and says that listening has begun; what moved before it went
// unheard, and is to be read. fn must be quick.
func (s *Store) Listen(ctx context.Context, fn func(winnow.Notice)) error {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return wrap(err, "listen")
	}
	// A connection that has listened is not for others.
	c := conn.Hijack()
	defer c.Close(context.WithoutCancel(ctx))
	if _, err := c.Exec(ctx, "LISTEN "+channel); err != nil {
		return wrap(err, "listen")
	}
	fn(winnow.Notice{})
	for {
		n, err := c.WaitForNotification(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return unavailable(err)
		}
		var notice winnow.Notice
		if json.Unmarshal([]byte(n.Payload), &notice) == nil {
			fn(notice)
		}
	}
}
