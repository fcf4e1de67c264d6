package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// counts are how many labels of each verdict come or go.
type counts struct {
	known, unknown, skipped, unreadable int
}

func scanCounts(row pgx.CollectableRow) (c counts, err error) {
	return c, row.Scan(&c.known, &c.unknown, &c.skipped, &c.unreadable)
}

// add counts n labels of a verdict; the empty verdict is no label.
func (c *counts) add(v winnow.Verdict, n int) {
	switch v {
	case winnow.VerdictKnown:
		c.known += n
	case winnow.VerdictUnknown:
		c.unknown += n
	case winnow.VerdictSkip:
		c.skipped += n
	case winnow.VerdictUnreadable:
		c.unreadable += n
	}
}

func (c counts) args() pgx.NamedArgs {
	return pgx.NamedArgs{"known": c.known, "unknown": c.unknown, "skipped": c.skipped, "unreadable": c.unreadable}
}

// addToPool keeps the counts of a project's pool.
func addToPool(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, c counts) error {
	if c == (counts{}) {
		return nil
	}
	args := c.args()
	args["project"] = project
	_, err := tx.Exec(ctx, `
		UPDATE projects
		SET known_count = known_count + @known, unknown_count = unknown_count + @unknown,
		    skipped_count = skipped_count + @skipped, unreadable_count = unreadable_count + @unreadable
		WHERE id = @project`, args)
	return err
}
