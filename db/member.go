package db

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

// errNoProject hides whether the project exists from who may not see it.
func errNoProject() error { return winnow.Errorf(winnow.CodeNotFound, "There is no such project.") }

// Role returns what a person may do in a project; a site admin is admin everywhere.
// CodeNotFound if they may not see it, or it does not exist.
func (s *Store) Role(ctx context.Context, project winnow.ProjectID, user winnow.User) (winnow.Role, error) {
	role, err := value[winnow.Role](ctx, s.pool, `
		SELECT CASE WHEN @site_admin::boolean THEN 'admin' ELSE m.role END
		FROM projects p
		LEFT JOIN members m ON m.project_id = p.id AND m.user_id = @user
		WHERE p.id = @project AND (@site_admin::boolean OR m.role IS NOT NULL)`,
		pgx.NamedArgs{"project": project, "user": user.ID, "site_admin": user.SiteAdmin})
	return role, wrap(missing(err, "There is no such project."), "read role in project %d", project)
}

// Members lists the people of a project in the order in which they signed up.
func (s *Store) Members(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Member, string, error) {
	w, err := newWindow(page, 0)
	if err != nil {
		return nil, "", err
	}
	members, err := collect(ctx, s.pool, func(row pgx.CollectableRow) (m winnow.Member, err error) {
		err = row.Scan(append(userFields(&m.User), &m.Role, &m.Labels, (*zeronull.Timestamptz)(&m.LastAt))...)
		return m, err
	}, `
		SELECT `+userColumns+`, m.role, coalesce(a.label_count, 0), a.last_label_at
		FROM members m
		JOIN users u ON u.id = m.user_id
		LEFT JOIN annotators a ON a.project_id = m.project_id AND a.user_id = m.user_id
		WHERE m.project_id = @project AND m.user_id > @after
		ORDER BY m.user_id
		LIMIT @limit`,
		pgx.NamedArgs{"project": project, "after": w.after, "limit": w.limit + 1})
	if err != nil {
		return nil, "", wrap(err, "list members of project %d", project)
	}
	members, next := cut(w, members, func(m winnow.Member) int64 { return int64(m.ID) })
	return members, next, nil
}

// SetMemberRole changes what a member may do. CodeConflict if the project would be
// left without an admin.
func (s *Store) SetMemberRole(ctx context.Context, by winnow.UserID, project winnow.ProjectID, user winnow.UserID, role winnow.Role) error {
	if err := validRole(role); err != nil {
		return err
	}
	err := s.tx(ctx, func(tx pgx.Tx) error {
		if role != winnow.RoleAdmin {
			if err := s.revokeInvitesBy(ctx, tx, project, user); err != nil {
				return err
			}
		}
		if err := s.checkAdminStays(ctx, tx, project, user, role); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `UPDATE members SET role = @role WHERE project_id = @project AND user_id = @user`,
			pgx.NamedArgs{"project": project, "user": user, "role": role})
		if err != nil {
			return err
		}
		return s.audit(ctx, tx, by, project, "member.role", detail{"user": user, "role": role})
	})
	return wrap(err, "set role of user %d in project %d", user, project)
}

// RemoveMember takes a person out of a project; their labels stay, their leases,
// tokens and the invitations they made end. CodeConflict if the project would be left without an admin.
func (s *Store) RemoveMember(ctx context.Context, by winnow.UserID, project winnow.ProjectID, user winnow.UserID) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		args := pgx.NamedArgs{"project": project, "user": user, "now": s.now()}
		if err := s.releaseAll(ctx, tx, project, user); err != nil {
			return err
		}
		if err := s.revokeInvitesBy(ctx, tx, project, user); err != nil {
			return err
		}
		if err := s.checkAdminStays(ctx, tx, project, user, ""); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM members WHERE project_id = @project AND user_id = @user`, args); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `
			UPDATE api_tokens SET revoked_at = @now
			WHERE project_id = @project AND user_id = @user AND revoked_at IS NULL`, args); err != nil {
			return err
		}
		return s.audit(ctx, tx, by, project, "member.remove", detail{"user": user})
	})
	return wrap(err, "remove user %d from project %d", user, project)
}

// checkAdminStays locks the project's admins and the member, and refuses to let the
// last admin become anything else.
func (s *Store) checkAdminStays(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID, becomes winnow.Role) error {
	type member struct {
		ID   winnow.UserID
		Role winnow.Role
	}
	members, err := collect(ctx, tx, pgx.RowToStructByPos[member], `
		SELECT user_id, role FROM members
		WHERE project_id = @project AND (user_id = @user OR role = 'admin')
		ORDER BY user_id
		FOR UPDATE`, // every admin: two admins who leave at once must see each other
		pgx.NamedArgs{"project": project, "user": user})
	if err != nil {
		return err
	}
	found, admins := false, 0
	for _, m := range members {
		found = found || m.ID == user
		if m.Role == winnow.RoleAdmin && m.ID != user {
			admins++
		}
	}
	if !found {
		return winnow.Errorf(winnow.CodeNotFound, "This person is not a member of the project.")
	}
	if admins == 0 && becomes != winnow.RoleAdmin {
		return winnow.Errorf(winnow.CodeConflict, "This is the project's last admin. Make somebody else an admin first.")
	}
	return nil
}

// addMember makes a person a member, or gives a member the stronger of both roles.
func (s *Store) addMember(ctx context.Context, tx pgx.Tx, project winnow.ProjectID, user winnow.UserID, role winnow.Role) error {
	_, err := tx.Exec(ctx, `
		INSERT INTO members AS m (project_id, user_id, role, created_at)
		VALUES (@project, @user, @role, @now)
		ON CONFLICT (project_id, user_id) DO UPDATE SET role = excluded.role
		WHERE array_position(@roles::text[], excluded.role) < array_position(@roles::text[], m.role)`,
		pgx.NamedArgs{"project": project, "user": user, "role": role, "roles": winnow.Roles, "now": s.now()})
	return err
}

func validRole(role winnow.Role) error {
	if !role.Allows(winnow.RoleViewer) {
		return winnow.Invalid("role", "A role is admin, annotator or viewer.")
	}
	return nil
}
