package db

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"winnow"
)

// wrap says what was being done, and gives the failures that anybody may meet
// their code. Errors that the user can be told pass through it unchanged.
func wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	err = fmt.Errorf("db: "+format+": %w", append(args, err)...)
	if e := (*winnow.Error)(nil); errors.As(err, &e) {
		return err
	}
	var (
		pg      *pgconn.PgError
		connect *pgconn.ConnectError
		network net.Error
	)
	switch {
	case errors.Is(err, context.Canceled):
		return &winnow.Error{Code: winnow.CodeCanceled, Message: "Stopped before it was done.", Err: err}
	case errors.As(err, &pg):
		// 08: the connection failed; 40: rolled back in favour of another transaction;
		// 53: out of resources; 57: shutting down.
		switch pg.Code[:2] {
		case "08", "40", "53", "57":
			return unavailable(err)
		}
	case errors.As(err, &connect), errors.As(err, &network), errors.Is(err, context.DeadlineExceeded):
		return unavailable(err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, pgconn.ErrConnClosed), errors.Is(err, net.ErrClosed):
		// A server that is killed ends its connections without a word.
		return unavailable(err)
	}
	return err
}

func unavailable(err error) error {
	return &winnow.Error{
		Code: winnow.CodeUnavailable, Err: err,
		Message: "The database does not answer just now. Nothing was changed; try again.",
	}
}

// violates reports whether err says that the constraint or unique index of that
// name forbids what was asked.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}

// missing replaces "no rows" by what the user can be told.
func missing(err error, format string, args ...any) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return winnow.Errorf(winnow.CodeNotFound, format, args...)
	}
	return err
}
