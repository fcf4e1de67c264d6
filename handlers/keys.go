package handlers

import (
	"context"
	"net/http"

	"winnow"
	"winnow/views"
)

// KeyStore keeps each person's keys of the labeling page.
type KeyStore interface {
	Keys(ctx context.Context, user winnow.UserID) (winnow.Keys, error)
	SetKeys(ctx context.Context, user winnow.UserID, keys winnow.Keys) error
}

// SetKeys changes the keys of whoever is signed in: all of them from the form of the
// account's page, or as JSON from the labeling page.
func (h *Account) SetKeys(w http.ResponseWriter, r *http.Request) error {
	if wantsJSON(r) {
		return h.setKeysJSON(w, r)
	}
	if err := r.ParseForm(); err != nil {
		return formError(err)
	}
	user := scopeOf(r.Context()).User
	keys, typed, err := formKeys(r)
	if err == nil {
		err = h.Accounts.SetKeys(r.Context(), user.ID, keys)
	}
	if e, ok := refused(err); ok {
		return h.renderAccount(w, r, Status(err), e, typed)
	}
	if err != nil {
		return err
	}
	h.done(r, "Your keys are saved.")
	return seeOther(w, r, "/account#keys")
}

// formKeys reads the key of each action as it was typed. An empty field, and the
// button that says so, ask for the default.
func formKeys(r *http.Request) (winnow.Keys, map[string]string, error) {
	keys, typed := winnow.Keys{}, map[string]string{}
	if r.PostForm.Has("defaults") {
		return keys, typed, nil
	}
	var wrong error
	for _, a := range winnow.KeyActions() {
		text := r.PostForm.Get(a.Action)
		typed[a.Action] = text
		if text == "" {
			continue
		}
		key, err := winnow.ParseKey(text)
		if err != nil && wrong == nil {
			wrong = winnow.Invalid(a.Action, "%s cannot have this key. Choose a letter, a digit, a sign, Backspace or Delete, with Shift+ before it or not.", a.Name)
		}
		keys[a.Action] = key
	}
	return keys, typed, wrong
}

func (h *Account) setKeysJSON(w http.ResponseWriter, r *http.Request) error {
	var in struct {
		User winnow.UserID `json:"user"`
		Keys winnow.Keys   `json:"keys"`
	}
	at, err := decodeLabel(w, r, &in, &in.User)
	if err != nil {
		return err
	}
	if err := h.Accounts.SetKeys(r.Context(), at.User.ID, in.Keys); err != nil {
		return err
	}
	return respondJSON(w, struct {
		Keys winnow.Keys `json:"keys"`
	}{in.Keys.Own()})
}

// keyFields are the fields of the account's form: the person's keys, or what they
// typed when that was refused.
func keyFields(keys winnow.Keys, typed map[string]string) []views.KeyField {
	of := keys.Of()
	fields := make([]views.KeyField, 0, len(of))
	for _, a := range winnow.KeyActions() {
		f := views.KeyField{Action: a.Action, Name: a.Name, Value: winnow.KeyLabel(of[a.Action]), Default: winnow.KeyLabel(a.Default)}
		if text, ok := typed[a.Action]; ok {
			f.Value = text
		}
		fields = append(fields, f)
	}
	return fields
}
