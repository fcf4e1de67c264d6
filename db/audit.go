package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// detail is what an audit event says beside who, what and when.
type detail map[string]any

// audit records what by did, in the transaction that does it. A project or user
// of 0 is none.
func (s *Store) audit(ctx context.Context, tx pgx.Tx, by winnow.UserID, project winnow.ProjectID, action string, d detail) error {
	if d == nil {
		d = detail{}
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO audit_events (project_id, user_id, action, detail, at)
		VALUES (nullif(@project::bigint, 0), nullif(@by::bigint, 0), @action, @detail, @now)`,
		pgx.NamedArgs{"project": project, "by": by, "action": action, "detail": d, "now": s.now()})
	return err
}
