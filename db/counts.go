package db

import (
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

const addToRoundSQL = `
	UPDATE rounds r
	SET known_count = known_count + @known, unknown_count = unknown_count + @unknown,
	    skipped_count = skipped_count + @skipped, unreadable_count = unreadable_count + @unreadable,
	    audit_known_count = audit_known_count + @audit_known, audit_unknown_count = audit_unknown_count + @audit_unknown
	WHERE id = @round`

// ofRound are the arguments of addToRoundSQL.
func (c *change) ofRound() pgx.NamedArgs {
	args := c.items.args()
	args["any_state"] = c.anyState
	args["round"], args["audit_known"], args["audit_unknown"] = c.round, c.audit.known, c.audit.unknown
	return args
}

const addToPoolSQL = `
	UPDATE projects
	SET known_count = known_count + @known, unknown_count = unknown_count + @unknown,
	    skipped_count = skipped_count + @skipped, unreadable_count = unreadable_count + @unreadable
	WHERE id = @project`

// ofProject are the arguments of addToPoolSQL.
func (c counts) ofProject(project winnow.ProjectID) pgx.NamedArgs {
	args := c.args()
	args["project"] = project
	return args
}
