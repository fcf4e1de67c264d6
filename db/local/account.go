package local

import (
	"fmt"
	"os"
	"os/user"
	"strconv"
	"syscall"

	"winnow"
)

// account is the user that the server runs as.
type account struct {
	name     string
	uid, gid int
	drop     bool // we are root, and become this user
}

// unprivileged returns the current user, or, for root, whom Postgres refuses to run
// as, the first of the usual ones that exists.
func unprivileged() (*account, error) {
	if os.Geteuid() != 0 {
		return &account{name: "of this process", uid: os.Getuid(), gid: os.Getgid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.Atoi(u.Uid)
		if err != nil {
			return nil, fmt.Errorf("local postgres: user %s: %w", name, err)
		}
		gid, err := strconv.Atoi(u.Gid)
		if err != nil {
			return nil, fmt.Errorf("local postgres: user %s: %w", name, err)
		}
		return &account{name: name, uid: uid, gid: gid, drop: true}, nil
	}
	return nil, winnow.Errorf(winnow.CodeInvalid,
		"Postgres refuses to run as root, and there is no user postgres. Run this as another user, or set DATABASE_URL.")
}

// own gives a path that we made to the account.
func (a *account) own(path string) error {
	if !a.drop {
		return nil
	}
	return os.Chown(path, a.uid, a.gid)
}

// attributes make a command run as the account, in a process group of its own: Ctrl-C
// is for us, who then end the command in our own way.
func (a *account) attributes() *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if a.drop {
		attributes.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attributes
}
