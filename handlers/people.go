package handlers

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"winnow"
	"winnow/views"
)

// PeopleStore is what the people page and invitations need of the store.
type PeopleStore interface {
	Members(ctx context.Context, project winnow.ProjectID, page winnow.Page) ([]winnow.Member, string, error)
	SetMemberRole(ctx context.Context, by winnow.UserID, project winnow.ProjectID, user winnow.UserID, role winnow.Role) error
	RemoveMember(ctx context.Context, by winnow.UserID, project winnow.ProjectID, user winnow.UserID) error
	CreateInvite(ctx context.Context, by winnow.UserID, inv winnow.Invite) (string, error)
	Invites(ctx context.Context, project winnow.ProjectID) ([]winnow.Invite, error)
	RevokeInvite(ctx context.Context, by winnow.UserID, project winnow.ProjectID, id winnow.InviteID) error
}

// InviteStore is what accepting an invitation needs of the store.
type InviteStore interface {
	Invite(ctx context.Context, token string) (*winnow.Invite, error)
	AcceptInvite(ctx context.Context, token, name, passwordHash string) (winnow.UserID, error)
	JoinByInvite(ctx context.Context, token string, user winnow.UserID) (winnow.ProjectID, error)
}

// TokenStore is what making and revoking API tokens needs of the store.
type TokenStore interface {
	CreateToken(ctx context.Context, t winnow.Token) (string, error)
	Tokens(ctx context.Context, project winnow.ProjectID) ([]winnow.Token, error)
	RevokeToken(ctx context.Context, by winnow.UserID, project winnow.ProjectID, id winnow.TokenID) error
}

// People serves a project's members, invitations and API tokens.
type People struct {
	*Base
	People PeopleStore
	Tokens TokenStore
}

const (
	membersPerPage = 100
	inviteLife     = 7 * 24 * time.Hour
	maxTokenDays   = 365
)

// Page lists the members.
func (h *People) Page(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, http.StatusOK, views.PeopleProps{})
}

// Invite makes an invitation and shows its link, once.
func (h *People) Invite(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	s := scopeOf(r.Context())
	props := views.PeopleProps{Form: "invite", InviteEmail: r.PostForm.Get("email"), InviteRole: winnow.Role(r.PostForm.Get("role"))}
	token, err := h.invite(r, s, props.InviteEmail, props.InviteRole)
	if e, ok := refused(err); ok {
		props.Error = e
		return h.render(w, r, Status(err), props)
	}
	if err != nil {
		return err
	}
	props.InviteLink = h.absolute(r, "/invite/"+token)
	return h.render(w, r, http.StatusCreated, props)
}

func (h *People) invite(r *http.Request, s *Scope, email string, role winnow.Role) (string, error) {
	email, err := winnow.NormalizeEmail(email)
	if err != nil {
		return "", err
	}
	if !role.Allows(winnow.RoleViewer) {
		return "", winnow.Invalid("role", "A role is admin, annotator or viewer.")
	}
	return h.People.CreateInvite(r.Context(), s.User.ID, winnow.Invite{
		ProjectID: s.Project.ID, Email: email, Role: role, ExpiresAt: h.Now().Add(inviteLife),
	})
}

// RevokeInvite takes an invitation back.
func (h *People) RevokeInvite(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "invite")
	if err != nil {
		return err
	}
	s := scopeOf(r.Context())
	if err := h.People.RevokeInvite(r.Context(), s.User.ID, s.Project.ID, winnow.InviteID(id)); err != nil {
		return err
	}
	h.done(r, "The invitation is revoked. Its link lets nobody in from now on.")
	return seeOther(w, r, views.ProjectURL(s.Project.ID, "/people"))
}

// ChangeMember gives a member another role, or removes them.
func (h *People) ChangeMember(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	id, err := pathID(r, "user")
	if err != nil {
		return err
	}
	s, user := scopeOf(r.Context()), winnow.UserID(id)
	switch action := r.PostForm.Get("action"); action {
	case "remove":
		err = h.People.RemoveMember(r.Context(), s.User.ID, s.Project.ID, user)
	case "role":
		role := winnow.Role(r.PostForm.Get("role"))
		if !role.Allows(winnow.RoleViewer) {
			return winnow.Invalid("role", "A role is admin, annotator or viewer.")
		}
		err = h.People.SetMemberRole(r.Context(), s.User.ID, s.Project.ID, user, role)
	default:
		return winnow.Invalid("action", "An action is role or remove.")
	}
	if e, ok := refused(err); ok {
		return h.render(w, r, Status(err), views.PeopleProps{Error: e})
	}
	if err != nil {
		return err
	}
	h.done(r, "Saved.")
	return seeOther(w, r, views.ProjectURL(s.Project.ID, "/people"))
}

// CreateToken makes an API token for the project and shows it, once.
func (h *People) CreateToken(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	s := scopeOf(r.Context())
	props := views.PeopleProps{Form: "token", TokenName: strings.TrimSpace(r.PostForm.Get("name"))}
	days, err := strconv.Atoi(r.PostForm.Get("days"))
	if err != nil || days < 1 || days > maxTokenDays {
		err = winnow.Invalid("days", "A token lasts 1 to %d days.", maxTokenDays)
	} else {
		props.Secret, err = h.Tokens.CreateToken(r.Context(), winnow.Token{
			ProjectID: s.Project.ID, UserID: s.User.ID, Name: props.TokenName, ExpiresAt: h.Now().AddDate(0, 0, days),
		})
	}
	if e, ok := refused(err); ok {
		props.Error = e
		return h.render(w, r, Status(err), props)
	}
	if err != nil {
		return err
	}
	props.TokenName = ""
	return h.render(w, r, http.StatusCreated, props)
}

// RevokeToken ends a token.
func (h *People) RevokeToken(w http.ResponseWriter, r *http.Request) error {
	id, err := pathID(r, "token")
	if err != nil {
		return err
	}
	s := scopeOf(r.Context())
	if err := h.Tokens.RevokeToken(r.Context(), s.User.ID, s.Project.ID, winnow.TokenID(id)); err != nil {
		return err
	}
	h.done(r, "The token is revoked. Programs that use it are refused from now on.")
	return seeOther(w, r, views.ProjectURL(s.Project.ID, "/people"))
}

func (h *People) render(w http.ResponseWriter, r *http.Request, status int, props views.PeopleProps) error {
	s, ctx := scopeOf(r.Context()), r.Context()
	props.Page = h.projectPage(r, "People", views.TabPeople)
	props.Project, props.Now = s.Project, h.Now()
	var next string
	var err error
	if props.Members, next, err = h.People.Members(ctx, s.Project.ID, winnow.Page{After: r.URL.Query().Get("after"), Limit: membersPerPage}); err != nil {
		return err
	}
	props.First, props.Next = firstURL(r), nextURL(r, next)
	if props.Invites, err = h.People.Invites(ctx, s.Project.ID); err != nil {
		return err
	}
	if props.Tokens, err = h.Tokens.Tokens(ctx, s.Project.ID); err != nil {
		return err
	}
	return render(w, r, status, views.People(props))
}

// Invites serves the links that invitations lead to.
type Invites struct {
	*Base
	Invites   InviteStore
	Passwords *Passwords
}

// Page shows an invitation to whoever opens its link.
func (h *Invites) Page(w http.ResponseWriter, r *http.Request) error {
	return h.render(w, r, http.StatusOK, "", views.FormError{})
}

// Accept makes whoever opened the link a member: who is signed in joins as
// themselves, anybody else makes an account for the invited address.
func (h *Invites) Accept(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	name := strings.TrimSpace(r.PostForm.Get("name"))
	project, err := h.accept(r, name, r.PostForm.Get("password"))
	if e, ok := refused(err); ok {
		return h.render(w, r, Status(err), name, e)
	}
	if err != nil {
		return err
	}
	h.done(r, "Welcome. You are a member of this project now.")
	return seeOther(w, r, views.ProjectURL(project, ""))
}

func (h *Invites) accept(r *http.Request, name, secret string) (winnow.ProjectID, error) {
	token := chi.URLParam(r, "token")
	if user, err := h.signedIn(r.Context()); err == nil {
		return h.Invites.JoinByInvite(r.Context(), token, user.ID)
	}
	invite, err := h.Invites.Invite(r.Context(), token)
	if err != nil {
		return 0, err
	}
	if err := winnow.ValidatePassword(secret); err != nil {
		return 0, err
	}
	hash, err := h.Passwords.hash(r.Context(), secret)
	if err != nil {
		return 0, err
	}
	user, err := h.Invites.AcceptInvite(r.Context(), token, name, hash)
	if err != nil {
		return 0, err
	}
	return invite.ProjectID, h.startSessionOf(r, user)
}

func (h *Invites) render(w http.ResponseWriter, r *http.Request, status int, name string, e views.FormError) error {
	token := chi.URLParam(r, "token")
	invite, err := h.Invites.Invite(r.Context(), token)
	if err != nil {
		return err
	}
	project, err := h.Access.Project(r.Context(), invite.ProjectID)
	if err != nil {
		return err
	}
	if user, err := h.signedIn(r.Context()); err == nil {
		r = withScope(r, &Scope{User: user})
	}
	p := h.page(r, "Invitation")
	p.Width = "slim"
	return render(w, r, status, views.Invite(views.InviteProps{
		Page: p, Project: project.Name, Invite: invite, Token: token, Name: name, SignIn: "/signin?next=/invite/" + token, Error: e,
	}))
}
