package winnow

import (
	"net/mail"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Role is what a person may do in a project.
type Role string

const (
	RoleAdmin     Role = "admin"     // everything in the project
	RoleAnnotator Role = "annotator" // label, and see the project's figures
	RoleViewer    Role = "viewer"    // see figures and images
)

// Roles in order of power, strongest first.
var Roles = []Role{RoleAdmin, RoleAnnotator, RoleViewer}

// Allows reports whether a holder of r may do what asks for need.
func (r Role) Allows(need Role) bool {
	rank := map[Role]int{RoleViewer: 1, RoleAnnotator: 2, RoleAdmin: 3}
	return rank[need] > 0 && rank[r] >= rank[need]
}

// User is a person who signs in. SiteAdmin may make projects and is admin of all.
type User struct {
	ID        UserID
	Email     string // lower case; the sign-in name
	Name      string
	SiteAdmin bool
	CreatedAt time.Time
	// SessionEpoch grows when the password changes: sessions that began before end.
	SessionEpoch int64
}

// Member is a person's role in a project.
type Member struct {
	User
	Role    Role
	Labels  int64 // label events that stand
	LastAt  time.Time
	Pending bool // invited, not yet signed up
}

// Invite is a link that makes whoever opens it a member.
type Invite struct {
	ID        InviteID
	ProjectID ProjectID
	Email     string
	Role      Role
	ExpiresAt time.Time
}

// Token is an API token, without its secret.
type Token struct {
	ID        TokenID
	ProjectID ProjectID
	UserID    UserID
	Name      string
	CreatedAt time.Time
	ExpiresAt time.Time
	LastUsed  time.Time
}

// MinPassword is the shortest password accepted.
const MinPassword = 10

// MaxUserName is the longest name of a person.
const MaxUserName = 80

// ValidateUserName says what is wrong with a person's name, if anything.
func ValidateUserName(name string) error {
	return validName("name", "Name", name, MaxUserName)
}

// NormalizeEmail checks an address and returns it in the form that is stored.
func NormalizeEmail(s string) (string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 || strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == ' ' }) {
		return "", Invalid("email", "%q is not an e-mail address.", clip(s, 60))
	}
	return s, nil
}

// ValidatePassword says what is wrong with a new password, if anything.
func ValidatePassword(p string) error {
	if n := utf8.RuneCountInString(p); n < MinPassword {
		return Invalid("password", "A password has at least %d characters; this one has %d.", MinPassword, n)
	}
	if len(p) > 1024 {
		return Invalid("password", "A password has at most 1,024 bytes.")
	}
	return nil
}
