package handlers

import (
	"context"
	"net/http"
	"strconv"

	"github.com/go-chi/chi/v5"

	"winnow"
)

// Scope is who asks, and in which project with which role.
type Scope struct {
	User    winnow.User
	Project *winnow.Project // nil outside a project
	Role    winnow.Role     // "" outside a project
}

type scopeKey struct{}

func scopeOf(ctx context.Context) *Scope {
	s, _ := ctx.Value(scopeKey{}).(*Scope)
	return s
}

func withScope(r *http.Request, s *Scope) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), scopeKey{}, s))
}

// SignedIn runs f for people who are signed in, and refuses others.
func (b *Base) SignedIn(f Func) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		user, err := b.signedIn(r.Context())
		if err != nil {
			b.Fail(w, r, err)
			return
		}
		r = withScope(r, &Scope{User: user})
		b.Handle(f)(w, r)
	}
}

// InProject runs f for members of the project in the path whose role allows what
// needs need. A project that somebody may not see does not exist for them.
func (b *Base) InProject(need winnow.Role, f Func) http.HandlerFunc {
	return b.SignedIn(func(w http.ResponseWriter, r *http.Request) error {
		s := scopeOf(r.Context())
		project, role, err := b.project(r, s.User)
		if err != nil {
			return err
		}
		s = &Scope{User: s.User, Project: project, Role: role}
		r = withScope(r, s)
		if !role.Allows(need) {
			// Fail here, so that the error page stands in the project's frame.
			b.Fail(w, r, winnow.Errorf(winnow.CodeForbidden, "This needs the role %s; yours is %s. An admin of the project can change it.", need, role))
			return nil
		}
		b.Handle(f)(w, r)
		return nil
	})
}

func (b *Base) signedIn(ctx context.Context) (winnow.User, error) {
	id := winnow.UserID(b.Sessions.GetInt64(ctx, sessionUser))
	if id == 0 {
		return winnow.User{}, winnow.Errorf(winnow.CodeUnauthenticated, "Sign in to go on. Nothing you saved is lost.")
	}
	user, err := b.Access.User(ctx, id)
	if winnow.ErrorCode(err) == winnow.CodeNotFound {
		return winnow.User{}, &winnow.Error{Code: winnow.CodeUnauthenticated, Message: "This account no longer exists.", Err: err}
	}
	if err != nil {
		return winnow.User{}, err
	}
	if user.SessionEpoch != b.Sessions.GetInt64(ctx, sessionEpoch) {
		return winnow.User{}, winnow.Errorf(winnow.CodeUnauthenticated, "The password of this account has changed. Sign in again; nothing you saved is lost.")
	}
	return user, nil
}

func (b *Base) project(r *http.Request, user winnow.User) (*winnow.Project, winnow.Role, error) {
	id, err := pathID(r, "project")
	if err != nil {
		return nil, "", err
	}
	role, err := b.Access.Role(r.Context(), winnow.ProjectID(id), user)
	if err != nil {
		return nil, "", err
	}
	project, err := b.Access.Project(r.Context(), winnow.ProjectID(id))
	return project, role, err
}

// pathID reads a positive number from the path. Anything else names nothing.
func pathID(r *http.Request, name string) (int64, error) {
	id, err := strconv.ParseInt(chi.URLParam(r, name), 10, 64)
	if err != nil || id <= 0 {
		return 0, winnow.Errorf(winnow.CodeNotFound, "There is no such %s.", name)
	}
	return id, nil
}

// pathNumber reads a round's number, which starts at 0, from the path.
func pathNumber(r *http.Request) (int, error) {
	n, err := strconv.Atoi(chi.URLParam(r, "number"))
	if err != nil || n < 0 {
		return 0, winnow.Errorf(winnow.CodeNotFound, "There is no such round.")
	}
	return n, nil
}
