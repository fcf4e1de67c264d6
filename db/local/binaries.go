package local

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"winnow"
)

// places are where Postgres lies when its programs are not on the path: Debian,
// Red Hat, Homebrew, Postgres.app.
var places = []string{
	"/usr/lib/postgresql/*/bin",
	"/usr/pgsql-*/bin",
	"/opt/homebrew/opt/postgresql@*/bin",
	"/usr/local/opt/postgresql@*/bin",
	"/Applications/Postgres.app/Contents/Versions/*/bin",
}

// FindBinaries returns the directory of Postgres's programs: the newest there is, or
// that of the pg_ctl on the path. CodeUnavailable, with the remedy, if there is none.
func FindBinaries() (string, error) {
	if path, err := exec.LookPath("pg_ctl"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil && complete(filepath.Dir(path)) {
			return filepath.Dir(path), nil
		}
	}
	for _, place := range places {
		dirs, _ := filepath.Glob(place) // the patterns are good
		slices.SortFunc(dirs, func(a, b string) int { return majorVersion(b) - majorVersion(a) })
		for _, dir := range dirs {
			if complete(dir) {
				return dir, nil
			}
		}
	}
	return "", winnow.Errorf(winnow.CodeUnavailable,
		"Postgres is not installed. Install it (on Debian: apt-get install postgresql), or set DATABASE_URL to a server elsewhere.")
}

// findBinaries returns dir if it has the programs, or looks for them if it is empty.
func findBinaries(dir string) (string, error) {
	if dir == "" {
		return FindBinaries()
	}
	if !complete(dir) {
		return "", winnow.Errorf(winnow.CodeInvalid, "The directory %s has no initdb, pg_ctl and postgres.", dir)
	}
	return dir, nil
}

// complete reports whether a directory has all the programs that are needed.
func complete(dir string) bool {
	for _, program := range []string{"initdb", "pg_ctl", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, program)); err != nil {
			return false
		}
	}
	return true
}

// majorVersion reads the number out of a path of places; 0 if there is none.
func majorVersion(dir string) int {
	digits := strings.Trim(filepath.Base(filepath.Dir(dir)), "abcdefghijklmnopqrstuvwxyz@-")
	major, _, _ := strings.Cut(digits, ".")
	n, _ := strconv.Atoi(major)
	return n
}
