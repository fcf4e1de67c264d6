package db

import (
	"context"

	"github.com/jackc/pgx/v5"

	"winnow"
)

// maxInvites bounds the list of a project's open invitations.
const maxInvites = 200

func scanInvite(row pgx.CollectableRow) (i winnow.Invite, err error) {
	err = row.Scan(&i.ID, &i.ProjectID, &i.Email, &i.Role, &i.ExpiresAt)
	return i, err
}

// Invites lists a project's open invitations, the newest 200 of them.
func (s *Store) Invites(ctx context.Context, project winnow.ProjectID) ([]winnow.Invite, error) {
	invites, err := collect(ctx, s.pool, scanInvite, `
		SELECT id, project_id, email, role, expires_at FROM invites
		WHERE project_id = @project AND accepted_by IS NULL AND revoked_at IS NULL AND expires_at > @now
		ORDER BY id DESC
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "now": s.now(), "limit": maxInvites})
	return invites, wrap(err, "list invites of project %d", project)
}

// CreateInvite returns the secret of a link that makes whoever opens it a member.
// It replaces an open invitation of the same address.
func (s *Store) CreateInvite(ctx context.Context, by winnow.UserID, inv winnow.Invite) (string, error) {
	email, err := winnow.NormalizeEmail(inv.Email)
	if err != nil {
		return "", err
	}
	if err := validRole(inv.Role); err != nil {
		return "", err
	}
	secret, hash := newSecret("")
	err = s.tx(ctx, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `
			INSERT INTO invites (project_id, email, role, token_hash, created_by, created_at, expires_at)
			VALUES (@project, @email, @role, @hash, nullif(@by::bigint, 0), @now, @expires)
			ON CONFLICT (project_id, email) WHERE accepted_by IS NULL AND revoked_at IS NULL DO UPDATE
			SET role = excluded.role, token_hash = excluded.token_hash, created_by = excluded.created_by,
			    created_at = excluded.created_at, expires_at = excluded.expires_at`,
			pgx.NamedArgs{
				"project": inv.ProjectID, "email": email, "role": inv.Role, "hash": hash,
				"by": by, "now": s.now(), "expires": inv.ExpiresAt,
			})
		if violates(err, "invites_project_id_fkey") {
			return errNoProject()
		}
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, by, inv.ProjectID, "invite.create", detail{"email": email, "role": inv.Role})
	})
	if err != nil {
		return "", wrap(err, "invite to project %d", inv.ProjectID)
	}
	return secret, nil
}

// RevokeInvite makes an open invitation's link useless. CodeNotFound if the project
// has no such invitation that is still open.
func (s *Store) RevokeInvite(ctx context.Context, by winnow.UserID, project winnow.ProjectID, id winnow.InviteID) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		email, err := value[string](ctx, tx, `
			UPDATE invites SET revoked_at = @now
			WHERE id = @id AND project_id = @project AND accepted_by IS NULL AND revoked_at IS NULL
			RETURNING email`,
			pgx.NamedArgs{"id": id, "project": project, "now": s.now()})
		if err != nil {
			return missing(err, "There is no such invitation, or it has been used or revoked already.")
		}
		return s.audit(ctx, tx, by, project, "invite.revoke", detail{"invite": id, "email": email})
	})
	return wrap(err, "revoke invite %d", id)
}

// revokeInvitesBy takes back the open invitations that a person made who may no
// longer invite: one may be for themselves.
func (s *Store) revokeInvitesBy(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID) error {
	_, err := tx.Exec(ctx, `
		UPDATE invites SET revoked_at = @now
		WHERE project_id = @project AND created_by = @user AND accepted_by IS NULL AND revoked_at IS NULL`,
		pgx.NamedArgs{"project": project, "user": user, "now": s.now()})
	return err
}

// Invite returns the open invitation of a link. CodeNotFound if there is none of
// that secret, CodeGone if it was used, was revoked or has expired.
func (s *Store) Invite(ctx context.Context, token string) (*winnow.Invite, error) {
	inv, err := s.openInvite(ctx, s.pool, token)
	if err != nil {
		return nil, wrap(err, "read invite")
	}
	return &inv, nil
}

func (s *Store) openInvite(ctx context.Context, q querier, token string) (winnow.Invite, error) {
	var used, revoked bool
	inv, err := one(ctx, q, func(row pgx.CollectableRow) (i winnow.Invite, err error) {
		err = row.Scan(&i.ID, &i.ProjectID, &i.Email, &i.Role, &i.ExpiresAt, &used, &revoked)
		return i, err
	}, `
		SELECT id, project_id, email, role, expires_at, accepted_by IS NOT NULL, revoked_at IS NOT NULL FROM invites
		WHERE token_hash = @hash
		FOR UPDATE`, pgx.NamedArgs{"hash": hashSecret(token)})
	switch {
	case err != nil:
		err = missing(err, "This invitation does not exist, or a newer one has replaced it.")
	case used:
		err = winnow.Errorf(winnow.CodeGone, "This invitation has been used. Sign in instead.")
	case revoked:
		err = winnow.Errorf(winnow.CodeGone, "This invitation has been taken back. If that was a mistake, ask for a new one.")
	case !inv.ExpiresAt.After(s.now()):
		err = winnow.Errorf(winnow.CodeGone, "This invitation has expired. Ask for a new one.")
	}
	return inv, err
}

// AcceptInvite makes an account for the invited address and makes it a member.
// CodeConflict if the address has an account: its owner signs in and uses
// JoinByInvite, because a link made by one project's admin must not open an account
// that has rights elsewhere.
func (s *Store) AcceptInvite(ctx context.Context, token, name, passwordHash string) (winnow.UserID, error) {
	var user winnow.UserID
	err := s.tx(ctx, func(tx pgx.Tx) error {
		inv, err := s.openInvite(ctx, tx, token)
		if err != nil {
			return err
		}
		user, err = s.insertUser(ctx, tx, winnow.User{Email: inv.Email, Name: name}, passwordHash)
		if winnow.ErrorCode(err) == winnow.CodeConflict {
			return winnow.Errorf(winnow.CodeConflict, "%s has an account already. Sign in, then open this invitation again.", inv.Email)
		}
		if err != nil {
			return err
		}
		return s.useInvite(ctx, tx, inv, user)
	})
	return user, wrap(err, "accept invite")
}

// JoinByInvite makes a person who is signed in a member of the invitation's project.
func (s *Store) JoinByInvite(ctx context.Context, token string, user winnow.UserID) (winnow.ProjectID, error) {
	var project winnow.ProjectID
	err := s.tx(ctx, func(tx pgx.Tx) error {
		inv, err := s.openInvite(ctx, tx, token)
		if err != nil {
			return err
		}
		project = inv.ProjectID
		return s.useInvite(ctx, tx, inv, user)
	})
	return project, wrap(err, "join by invite")
}

func (s *Store) useInvite(ctx context.Context, tx pgx.Tx, inv winnow.Invite, user winnow.UserID) error {
	if err := s.addMember(ctx, tx, inv.ProjectID, user, inv.Role); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `UPDATE invites SET accepted_by = @user WHERE id = @id`,
		pgx.NamedArgs{"id": inv.ID, "user": user}); err != nil {
		return err
	}
	return s.audit(ctx, tx, user, inv.ProjectID, "invite.accept", detail{"role": inv.Role})
}
