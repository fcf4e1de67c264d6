package handlers

import (
	"context"
	"net/http"
	"strings"

	"winnow"
	"winnow/views"

	"github.com/go-chi/chi/v5"
)

// AccountStore is what signing in and an account's page need of the store.
type AccountStore interface {
	UserByEmail(ctx context.Context, email string) (winnow.User, string, error)
	SetPassword(ctx context.Context, id winnow.UserID, hash string) error
	RedeemSignInLink(ctx context.Context, token string) (winnow.UserID, error)
	KeyStore
}

// Account serves signing in and out, and a person's own page.
type Account struct {
	*Base
	Accounts  AccountStore
	Passwords *Passwords
}

// Home leads to the projects, or to the sign-in page.
func (h *Account) Home(w http.ResponseWriter, r *http.Request) error {
	if h.Sessions.GetInt64(r.Context(), sessionUser) == 0 {
		return seeOther(w, r, "/signin")
	}
	return seeOther(w, r, "/projects")
}

// SignInForm asks for e-mail and password.
func (h *Account) SignInForm(w http.ResponseWriter, r *http.Request) error {
	return h.renderSignIn(w, r, http.StatusOK, views.SignInProps{Next: localPath(r.URL.Query().Get("next"))})
}

// SignIn checks them and starts a session. It does not tell whether the address or
// the password was wrong.
func (h *Account) SignIn(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	props := views.SignInProps{Email: r.PostForm.Get("email"), Next: localPath(r.PostForm.Get("next"))}
	user, ok, err := h.verify(r.Context(), props.Email, r.PostForm.Get("password"))
	if err != nil {
		return err
	}
	if !ok {
		props.Error.Message = "This e-mail address and password do not go together. Try again, or ask an admin for a sign-in link."
		return h.renderSignIn(w, r, http.StatusUnauthorized, props)
	}
	if err := h.startSession(r, user); err != nil {
		return err
	}
	return seeOther(w, r, orElse(props.Next, "/projects"))
}

func (h *Account) verify(ctx context.Context, email, secret string) (winnow.User, bool, error) {
	var user winnow.User
	var hash string
	email, err := winnow.NormalizeEmail(email)
	if err == nil {
		user, hash, err = h.Accounts.UserByEmail(ctx, email)
	}
	switch winnow.ErrorCode(err) {
	case "":
	case winnow.CodeNotFound, winnow.CodeInvalid:
		hash = "" // and verify all the same, so that it takes as long
	default:
		return winnow.User{}, false, err
	}
	ok, err := h.Passwords.verify(ctx, hash, secret)
	return user, ok, err
}

// LinkForm shows the button that uses a one-time link. The link is not used by
// merely opening it: mail scanners and previews open links too.
func (h *Account) LinkForm(w http.ResponseWriter, r *http.Request) error {
	p := h.page(r, "Sign in")
	p.Width = "slim"
	return render(w, r, http.StatusOK, views.SignInLink(views.SignInLinkProps{Page: p, Token: chi.URLParam(r, "token")}))
}

// Link signs in by a one-time link.
func (h *Account) Link(w http.ResponseWriter, r *http.Request) error {
	id, err := h.Accounts.RedeemSignInLink(r.Context(), chi.URLParam(r, "token"))
	if err != nil {
		return err
	}
	if err := h.startSessionOf(r, id); err != nil {
		return err
	}
	return seeOther(w, r, "/projects")
}

// SignOut ends the session.
func (h *Account) SignOut(w http.ResponseWriter, r *http.Request) error {
	if err := h.Sessions.Destroy(r.Context()); err != nil {
		return err
	}
	return seeOther(w, r, "/signin")
}

// Page shows the account of whoever is signed in.
func (h *Account) Page(w http.ResponseWriter, r *http.Request) error {
	return h.renderAccount(w, r, http.StatusOK, views.FormError{}, nil)
}

// SetPassword changes the password. Who has one must give it; who came by a link
// and has none sets the first. The person's other sessions end: whoever changes a
// password may do so because somebody else has it.
func (h *Account) SetPassword(w http.ResponseWriter, r *http.Request) error {
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	user := scopeOf(r.Context()).User
	err := h.setPassword(r.Context(), user, r.PostForm.Get("current"), r.PostForm.Get("password"))
	if e, ok := refused(err); ok {
		return h.renderAccount(w, r, Status(err), e, nil)
	}
	if err != nil {
		return err
	}
	if err := h.startSessionOf(r, user.ID); err != nil {
		return err
	}
	h.done(r, "Your password is changed. Wherever else you were signed in, you no longer are.")
	return seeOther(w, r, "/account")
}

func (h *Account) setPassword(ctx context.Context, user winnow.User, current, next string) error {
	_, old, err := h.Accounts.UserByEmail(ctx, user.Email)
	if err != nil {
		return err
	}
	if old != "" {
		ok, err := h.Passwords.verify(ctx, old, current)
		if err != nil {
			return err
		}
		if !ok {
			return winnow.Invalid("current", "This is not your current password.")
		}
	}
	if err := winnow.ValidatePassword(next); err != nil {
		return err
	}
	hash, err := h.Passwords.hash(ctx, next)
	if err != nil {
		return err
	}
	return h.Accounts.SetPassword(ctx, user.ID, hash)
}

func (h *Account) renderAccount(w http.ResponseWriter, r *http.Request, status int, e views.FormError, typed map[string]string) error {
	user := scopeOf(r.Context()).User
	_, hash, err := h.Accounts.UserByEmail(r.Context(), user.Email)
	if err != nil {
		return err
	}
	keys, err := h.Accounts.Keys(r.Context(), user.ID)
	if err != nil {
		return err
	}
	p := h.page(r, "Account")
	p.Width = "narrow"
	return render(w, r, status, views.Account(views.AccountProps{
		Page: p, User: user, HasPassword: hash != "", Keys: keyFields(keys, typed), Error: e,
	}))
}

func (h *Account) renderSignIn(w http.ResponseWriter, r *http.Request, status int, props views.SignInProps) error {
	props.Page = h.page(r, "Sign in")
	props.Width = "slim"
	return render(w, r, status, views.SignIn(props))
}

// startSession makes the session that of the user, under a new token.
func (b *Base) startSession(r *http.Request, user winnow.User) error {
	if err := b.Sessions.RenewToken(r.Context()); err != nil {
		return err
	}
	b.Sessions.Put(r.Context(), sessionUser, int64(user.ID))
	b.Sessions.Put(r.Context(), sessionEpoch, user.SessionEpoch)
	return nil
}

// startSessionOf does so for somebody of whom only the number is known.
func (b *Base) startSessionOf(r *http.Request, id winnow.UserID) error {
	user, err := b.Access.User(r.Context(), id)
	if err != nil {
		return err
	}
	return b.startSession(r, user)
}

// localPath lets only addresses of this site through: what follows signing in must
// not lead elsewhere.
func localPath(s string) string {
	if !strings.HasPrefix(s, "/") || strings.HasPrefix(s, "//") || strings.ContainsAny(s, "\\\r\n\t") {
		return ""
	}
	return s
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}
