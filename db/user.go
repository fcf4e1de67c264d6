package db

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype/zeronull"

	"winnow"
)

const userColumns = `u.id, u.email, u.name, u.site_admin, u.created_at, u.session_epoch`

// userFields are where userColumns go.
func userFields(u *winnow.User) []any {
	return []any{&u.ID, &u.Email, &u.Name, &u.SiteAdmin, &u.CreatedAt, &u.SessionEpoch}
}

func scanUser(row pgx.CollectableRow) (u winnow.User, err error) {
	err = row.Scan(userFields(&u)...)
	return u, err
}

// CreateUser adds a person. Without a password hash they sign in by link until they
// set a password. CodeConflict if the address is taken.
func (s *Store) CreateUser(ctx context.Context, u winnow.User, passwordHash string) (winnow.UserID, error) {
	var id winnow.UserID
	err := s.tx(ctx, func(tx pgx.Tx) (err error) {
		if id, err = s.insertUser(ctx, tx, u, passwordHash); err != nil {
			return err
		}
		return s.audit(ctx, tx, 0, 0, "user.create", detail{"user": id, "email": u.Email, "site_admin": u.SiteAdmin})
	})
	return id, wrap(err, "create user")
}

func (s *Store) insertUser(ctx context.Context, tx pgx.Tx, u winnow.User, passwordHash string) (winnow.UserID, error) {
	email, err := winnow.NormalizeEmail(u.Email)
	if err != nil {
		return 0, err
	}
	name := strings.TrimSpace(u.Name)
	if name != "" { // without one, people see the address
		if err := winnow.ValidateUserName(name); err != nil {
			return 0, err
		}
	}
	id, err := value[winnow.UserID](ctx, tx, `
		INSERT INTO users (email, name, password_hash, site_admin, created_at)
		VALUES (@email, @name, nullif(@hash, ''), @site_admin, @now)
		RETURNING id`,
		pgx.NamedArgs{"email": email, "name": name, "hash": passwordHash, "site_admin": u.SiteAdmin, "now": s.now()})
	if violates(err, "users_email_key") {
		return 0, &winnow.Error{Code: winnow.CodeConflict, Field: "email", Message: email + " has an account already."}
	}
	return id, err
}

// User returns a person.
func (s *Store) User(ctx context.Context, id winnow.UserID) (winnow.User, error) {
	u, err := one(ctx, s.pool, scanUser, `SELECT `+userColumns+` FROM users u WHERE u.id = @id`, pgx.NamedArgs{"id": id})
	return u, wrap(missing(err, "This person does not exist."), "read user %d", id)
}

// UserByEmail returns a person and the hash of their password, empty if none is set.
func (s *Store) UserByEmail(ctx context.Context, email string) (winnow.User, string, error) {
	email, err := winnow.NormalizeEmail(email)
	if err != nil {
		return winnow.User{}, "", err
	}
	var hash zeronull.Text
	u, err := one(ctx, s.pool, func(row pgx.CollectableRow) (u winnow.User, err error) {
		err = row.Scan(append(userFields(&u), &hash)...)
		return u, err
	}, `SELECT `+userColumns+`, u.password_hash FROM users u WHERE u.email = @email`, pgx.NamedArgs{"email": email})
	return u, string(hash), wrap(missing(err, "No account has the address %s.", email), "read user by e-mail")
}

// SetPassword stores the hash of a person's new password, or takes it away. Whoever
// was signed in as them is so no more, and links that would sign in are used up.
func (s *Store) SetPassword(ctx context.Context, id winnow.UserID, hash string) error {
	err := s.tx(ctx, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE users SET password_hash = nullif(@hash, ''), session_epoch = session_epoch + 1 WHERE id = @id`,
			pgx.NamedArgs{"id": id, "hash": hash})
		if err == nil && tag.RowsAffected() == 0 {
			err = winnow.Errorf(winnow.CodeNotFound, "This person does not exist.")
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE sign_in_links SET used_at = @now WHERE user_id = @id AND used_at IS NULL`,
			pgx.NamedArgs{"id": id, "now": s.now()}); err != nil {
			return err
		}
		return s.audit(ctx, tx, id, 0, "user.password", nil)
	})
	return wrap(err, "set password of user %d", id)
}

// CreateSignInLink returns the secret of a link that signs the person in once,
// within ttl.
func (s *Store) CreateSignInLink(ctx context.Context, user winnow.UserID, ttl time.Duration) (string, error) {
	secret, hash := newSecret("")
	_, err := s.pool.Exec(ctx, `
		INSERT INTO sign_in_links (token_hash, user_id, created_at, expires_at)
		VALUES (@hash, @user, @now, @expires)`,
		pgx.NamedArgs{"hash": hash, "user": user, "now": s.now(), "expires": s.now().Add(ttl)})
	if violates(err, "sign_in_links_user_id_fkey") {
		err = winnow.Errorf(winnow.CodeNotFound, "This person does not exist.")
	}
	if err != nil {
		return "", wrap(err, "create sign-in link for user %d", user)
	}
	return secret, nil
}

// RedeemSignInLink uses a link up and returns whom it signs in. CodeGone if it was
// used or has expired, CodeNotFound if it never was.
func (s *Store) RedeemSignInLink(ctx context.Context, token string) (winnow.UserID, error) {
	args := pgx.NamedArgs{"hash": hashSecret(token), "now": s.now()}
	user, err := value[winnow.UserID](ctx, s.pool, `
		UPDATE sign_in_links SET used_at = @now
		WHERE token_hash = @hash AND used_at IS NULL AND expires_at > @now
		RETURNING user_id`, args)
	if err == nil {
		return user, nil
	}
	if err = missing(err, "This sign-in link is not one of ours."); winnow.ErrorCode(err) != winnow.CodeNotFound {
		return 0, wrap(err, "redeem sign-in link")
	}
	spent, e := value[bool](ctx, s.pool, `SELECT EXISTS (SELECT FROM sign_in_links WHERE token_hash = @hash)`, args)
	if e != nil {
		return 0, wrap(e, "redeem sign-in link")
	}
	if spent {
		err = winnow.Errorf(winnow.CodeGone, "This sign-in link has been used or has expired. Ask for a new one.")
	}
	return 0, wrap(err, "redeem sign-in link")
}

// DeleteExpiredSessions removes the browser sessions that have run out.
func (s *Store) DeleteExpiredSessions(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `DELETE FROM sessions WHERE expiry < @now`, pgx.NamedArgs{"now": s.now()})
	return wrap(err, "delete expired sessions")
}
