#!/usr/bin/env bash
# need.sh THING...: makes sure that each thing is on this machine.
#
#   go         the Go toolchain that go.mod asks for
#   cc         a C compiler: the race detector and the optional backends are built with it
#   postgres   PostgreSQL's server programs (initdb, pg_ctl, postgres); no server is started
#   browser    Chromium or Chrome, for the browser tests
#
# On Debian and Ubuntu, what is missing is installed with apt when this may be done without
# asking: as root, or with sudo that wants no password. Everywhere else the script says what
# to install and exits 1. It changes nothing when everything is there.
set -euo pipefail

fail() {
	printf '\n%s\n' "$*" >&2
	exit 1
}

# first_of prints the first of the given programs or paths that can be executed.
first_of() {
	local program
	for program in "$@"; do
		if command -v "$program" 2>/dev/null; then return 0; fi
	done
	return 1
}

# The places where package db/local looks too: Debian keeps the programs off PATH, one folder a
# version, and so do others.
have_postgres() {
	first_of ${WINNOW_POSTGRES_BIN:+"$WINNOW_POSTGRES_BIN/pg_ctl"} pg_ctl /usr/lib/postgresql/*/bin/pg_ctl /usr/pgsql-*/bin/pg_ctl \
		/opt/homebrew/opt/postgresql@*/bin/pg_ctl /usr/local/opt/postgresql@*/bin/pg_ctl \
		/Applications/Postgres.app/Contents/Versions/*/bin/pg_ctl >/dev/null
}

have_browser() {
	first_of chromium chromium-browser google-chrome google-chrome-stable >/dev/null
}

# as_root runs a command as root, or fails when that would need a password.
as_root() {
	if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

can_apt() {
	command -v apt-get >/dev/null || return 1
	[ "$(id -u)" = 0 ] || { command -v sudo >/dev/null && sudo -n true 2>/dev/null; }
}

# apt_install installs packages and shows apt's output only when it failed.
apt_install() {
	local log
	log=$(mktemp)
	printf 'Installing %s with apt ... ' "$*"
	# A list that cannot be refreshed (one broken third-party source) need not stop the install.
	as_root env DEBIAN_FRONTEND=noninteractive apt-get update >"$log" 2>&1 || true
	if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "$@" >>"$log" 2>&1; then
		printf 'failed\n' >&2
		tail -n 40 "$log" >&2
		rm -f "$log"
		fail "apt could not install: $*"
	fi
	rm -f "$log"
	printf 'done\n'
}

# The package would create a cluster and start a server on port 5432. Winnow wants only the
# programs, so a setting that is there during the installation, and not after it, says no.
apt_install_postgres() (
	dir=/etc/postgresql-common/createcluster.d
	file=$dir/zz-winnow-no-cluster.conf
	as_root mkdir -p "$dir"
	trap 'as_root rm -f "$file"' EXIT
	echo 'create_main_cluster = false' | as_root tee "$file" >/dev/null
	apt_install postgresql
)

need_go() {
	command -v go >/dev/null || fail "Go is missing. Install Go 1.26 or newer: https://go.dev/doc/install"
	# go reads go.mod here, and fetches a newer toolchain itself where GOTOOLCHAIN lets it.
	go version >/dev/null || fail "This Go is older than go.mod asks for: $(sed -n 's/^go //p' go.mod) or newer, from https://go.dev/doc/install"
}

need_cc() {
	first_of "${CC:-cc}" gcc clang >/dev/null && return
	if can_apt; then
		apt_install gcc libc6-dev
		return
	fi
	fail "A C compiler is missing; Go's race detector is built with it. Install one and run make again:

    Debian, Ubuntu   sudo apt-get install gcc libc6-dev
    Fedora, RHEL     sudo dnf install gcc
    Arch             sudo pacman -S gcc
    macOS            xcode-select --install"
}

need_postgres() {
	have_postgres && return
	if can_apt; then
		apt_install_postgres
		have_postgres || fail "apt installed postgresql, but no pg_ctl was found in /usr/lib/postgresql/*/bin."
		return
	fi
	fail "PostgreSQL's server programs are missing (pg_ctl was not found). Install them and run make again:

    Debian, Ubuntu   sudo apt-get install postgresql
    Fedora, RHEL     sudo dnf install postgresql-server
    Arch             sudo pacman -S postgresql
    macOS            brew install postgresql@17

They may also be anywhere else: WINNOW_POSTGRES_BIN=/path/to/bin names the folder that holds pg_ctl.
To use a server that is already running instead: DATABASE_URL=postgres://user:password@host/database make run"
}

need_browser() {
	have_browser && return
	if can_apt; then
		# Ubuntu's chromium package is a stub that wants snap; there the message below is the answer.
		if grep -qx 'ID=debian' /etc/os-release; then
			apt_install chromium
			have_browser || fail "apt installed chromium, but no chromium is on PATH."
			return
		fi
	fi
	fail "The browser tests need Chromium or Chrome. Install one and run make again:

    Debian           sudo apt-get install chromium
    Ubuntu           sudo snap install chromium
    Fedora           sudo dnf install chromium
    Arch             sudo pacman -S chromium
    macOS            brew install --cask chromium (and put chromium on PATH)"
}

[ $# -gt 0 ] || fail "usage: scripts/need.sh go|cc|postgres|browser ..."
for thing in "$@"; do
	case $thing in
	go | cc | postgres | browser) "need_$thing" ;;
	*) fail "need.sh knows go, cc, postgres and browser; not $thing" ;;
	esac
done
