// Package app is the command line of Winnow and the place where its parts are
// put together: it reads the configuration, opens the database, and injects the
// concrete stores into the interfaces that the web server and the round workers
// declare.
package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"winnow"
)

// Exit codes of the command.
const (
	exitDone   = 0
	exitFailed = 1
	exitUsage  = 2
)

// Main runs the command line and returns the exit code: 0 done, 1 failed, 2 usage.
// Errors and the log go to the standard error.
func Main(ctx context.Context, args []string, getenv func(string) string, stdout io.Writer) int {
	return run(ctx, args, getenv, stdout, os.Stderr)
}

func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) int {
	c := &cli{getenv: getenv, stderr: stderr, cfg: newConfig(getenv)}
	root := c.newRootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)

	cmd, err := root.ExecuteContextC(ctx)
	var usage *usageError
	switch {
	case err == nil:
		return exitDone
	case !c.started || errors.As(err, &usage):
		fmt.Fprintf(stderr, "winnow: %s\nSee \"%s --help\".\n", oneLine(err), cmd.CommandPath())
		return exitUsage
	default:
		fmt.Fprintf(stderr, "winnow: %s\n", oneLine(err))
		return exitFailed
	}
}

// usageError is a mistake in how the command was called.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// usagef makes an error that ends the command with exit code 2.
func usagef(format string, args ...any) error {
	return &usageError{fmt.Errorf(format, args...)}
}

// oneLine is what the terminal shows of an error. An error made for people says
// what to do itself; its cause follows, because whoever runs a command is also
// the one who reads its log.
func oneLine(err error) string {
	s := err.Error()
	var e *winnow.Error
	if errors.As(err, &e) && e.Err != nil {
		s = winnow.ErrorMessage(err) + " (" + e.Err.Error() + ")"
	}
	return strings.Join(strings.Fields(s), " ")
}
