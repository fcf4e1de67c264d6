package db

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

const (
	tokenPrefix  = "winnow_" // lets secret scanners find a leaked token
	maxTokens    = 200
	maxTokenName = 120
)

const tokenColumns = `t.id, t.project_id, t.user_id, t.name, t.created_at, t.expires_at, t.last_used_at`

func tokenFields(t *winnow.Token) []any {
	return []any{
		&t.ID, &t.ProjectID, &t.UserID, &t.Name, &t.CreatedAt, &t.ExpiresAt,
		(*zeronull.Timestamptz)(&t.LastUsed),
	}
}

// CreateToken returns the secret of a new API token; it is not stored and cannot be
// shown again.
func (s *Store) CreateToken(ctx context.Context, t winnow.Token) (string, error) {
	name := strings.TrimSpace(t.Name)
	if name == "" || len(name) > maxTokenName {
		return "", winnow.Invalid("name", "A token's name has 1 to %d characters.", maxTokenName)
	}
	if !t.ExpiresAt.After(s.now()) {
		return "", winnow.Invalid("expires_at", "A token expires in the future.")
	}
	secret, hash := newSecret(tokenPrefix)
	err := s.tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO api_tokens (project_id, user_id, name, secret_hash, created_at, expires_at)
			VALUES (@project, @user, @name, @hash, @now, @expires)`,
			pgx.NamedArgs{
				"project": t.ProjectID, "user": t.UserID, "name": name, "hash": hash,
				"now": s.now(), "expires": t.ExpiresAt,
			})
		if violates(err, "api_tokens_project_id_fkey") {
			return errNoProject()
		}
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, t.UserID, t.ProjectID, "token.create", detail{"name": name, "expires_at": t.ExpiresAt})
	})
	if err != nil {
		return "", wrap(err, "create token")
	}
	return secret, nil
}

// Tokens lists the newest 200 tokens of a project that were not revoked.
func (s *Store) Tokens(ctx context.Context, project winnow.ProjectID) ([]winnow.Token, error) {
	tokens, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (t winnow.Token, err error) {
		return t, row.Scan(tokenFields(&t)...)
	}, `
		SELECT `+tokenColumns+` FROM api_tokens t
		WHERE t.project_id = @project AND t.revoked_at IS NULL
		ORDER BY t.id DESC
		LIMIT @limit`, pgx.NamedArgs{"project": project, "limit": maxTokens})
	return tokens, wrap(err, "list tokens of project %d", project)
}

// RevokeToken ends a token of a project at once.
func (s *Store) RevokeToken(ctx context.Context, by winnow.UserID, project winnow.ProjectID, id winnow.TokenID) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `
			UPDATE api_tokens SET revoked_at = @now
			WHERE id = @id AND project_id = @project AND revoked_at IS NULL`,
			pgx.NamedArgs{"id": id, "project": project, "now": s.now()})
		if err == nil && tag.RowsAffected() == 0 {
			err = winnow.Errorf(winnow.CodeNotFound, "There is no such token.")
		}
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, by, project, "token.revoke", detail{"token": id})
	})
	return wrap(err, "revoke token %d", id)
}

// UserByToken returns a token that is good and whose it is. CodeUnauthenticated for
// every other secret, without saying why.
func (s *Store) UserByToken(ctx context.Context, secret string) (t winnow.Token, u winnow.User, err error) {
	args := pgx.NamedArgs{"hash": hashSecret(secret), "now": s.now()}
	_, err = one(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		return struct{}{}, row.Scan(append(tokenFields(&t), userFields(&u)...)...)
	}, `
		SELECT `+tokenColumns+`, `+userColumns+`
		FROM api_tokens t
		JOIN users u ON u.id = t.user_id
		WHERE t.secret_hash = @hash AND t.revoked_at IS NULL AND t.expires_at > @now`, args)
	if winnow.ErrorCode(missing(err, "")) == winnow.CodeNotFound {
		return t, u, winnow.Errorf(winnow.CodeUnauthenticated, "This token is not valid, or has expired.")
	}
	if err != nil {
		return t, u, wrap(err, "read token")
	}
	// Once a minute is enough to see whether a token is in use, and spares a write a request.
	if s.now().Sub(t.LastUsed) > time.Minute {
		_, err = s.pool.Exec(ctx, `UPDATE api_tokens SET last_used_at = @now WHERE secret_hash = @hash`, args)
	}
	return t, u, wrap(err, "touch token")
}
