package winnow_test

import (
	"strings"
	"testing"
	"unicode"

	"winnow"
)

func TestRoleAllows(t *testing.T) {
	t.Parallel()
	const admin, annotator, viewer = winnow.RoleAdmin, winnow.RoleAnnotator, winnow.RoleViewer
	want := map[[2]winnow.Role]bool{
		{admin, admin}: true, {admin, annotator}: true, {admin, viewer}: true,
		{annotator, admin}: false, {annotator, annotator}: true, {annotator, viewer}: true,
		{viewer, admin}: false, {viewer, annotator}: false, {viewer, viewer}: true,
		{"", viewer}: false, {"owner", viewer}: false, // no role, and one that does not exist
		{admin, ""}: false, {admin, "owner"}: false, // a need that does not exist is no open door
	}
	for pair, allows := range want {
		if got := pair[0].Allows(pair[1]); got != allows {
			t.Errorf("%q allows %q: %v", pair[0], pair[1], got)
		}
	}
}

func TestNormalizeEmail(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"ann@example.org":     "ann@example.org",
		"  Ann@Example.ORG\n": "ann@example.org",
		"admin@localhost":     "admin@localhost",
		"ann+tag@example.org": "ann+tag@example.org",
		"børn@example.org":    "børn@example.org",
	}
	for in, want := range good {
		if got, err := winnow.NormalizeEmail(in); got != want || err != nil {
			t.Errorf("NormalizeEmail(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	bad := []string{
		"", "ann", "@example.org", "ann@", "a b@example.org", "Ann <ann@example.org>", "<ann@example.org>",
		"ann@example.org, bob@example.org", "ann@example.org\r\nBcc: x@y", "a\x00@example.org", "a\u0085b@example.org",
		"a\u202eb@example.org", strings.Repeat("a", 245) + "@localhost",
	}
	for _, in := range bad {
		_, err := winnow.NormalizeEmail(in)
		wantInvalid(t, err, "email", "is not an e-mail address")
	}
}

func FuzzNormalizeEmail(f *testing.F) {
	for _, s := range []string{"Ann@Example.org", "İ@x", "a@b@c", `"a b"@c`, "a(b)@c", "=?utf-8?q?a?=@b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		email, err := winnow.NormalizeEmail(s)
		if err != nil {
			wantInvalid(t, err, "email", "")
			return
		}
		if again, err := winnow.NormalizeEmail(email); err != nil || again != email {
			t.Errorf("%q is stored as %q, which becomes %q, %v", s, email, again, err)
		}
		if len(email) > 254 || strings.Count(email, "@") != 1 || strings.ContainsFunc(email, unicode.IsSpace) || strings.ContainsFunc(email, unicode.IsControl) {
			t.Errorf("accepted %q", email)
		}
	})
}

func TestValidatePassword(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"ten signs!", "пароль1234", strings.Repeat("x", 1024)} {
		if err := winnow.ValidatePassword(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "nine sign", "äöüäöüäöü", strings.Repeat("x", 1025)} {
		wantInvalid(t, winnow.ValidatePassword(bad), "password", "A password has at")
	}
}

func TestValidateUserName(t *testing.T) {
	t.Parallel()
	for _, good := range []string{"Ann", "Ånn Ø'Hara-Müller", "安娜"} {
		if err := winnow.ValidateUserName(good); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	for _, bad := range []string{"", "  ", "a\nb", strings.Repeat("x", 81)} {
		wantInvalid(t, winnow.ValidateUserName(bad), "name", "Name ")
	}
}
