package winnow

import (
	"errors"
	"fmt"
)

// Code classifies an error for everyone who must react to it: the HTTP layer maps
// it to a status, the command line to an exit code.
type Code string

const (
	CodeInvalid         Code = "invalid"            // the input breaks a rule; Field says where
	CodeUnauthenticated Code = "unauthenticated"    // nobody is signed in, or the token is not good
	CodeForbidden       Code = "forbidden"          // signed in, but the role does not allow it
	CodeNotFound        Code = "not_found"          // no such thing, or not in this project
	CodeMethod          Code = "method_not_allowed" // the address does not take this HTTP method
	CodeConflict        Code = "conflict"           // the state does not allow it now
	CodeGone            Code = "gone"               // the invitation or link was used or revoked, or has expired
	CodeTooLarge        Code = "too_large"          // over a size limit
	CodeUnsupported     Code = "unsupported"        // a media type or format that is not read
	CodeRateLimited     Code = "rate_limited"       // too many attempts; wait
	CodeUnavailable     Code = "unavailable"        // a dependency does not answer; try again
	CodeCanceled        Code = "canceled"           // stopped on request
	CodeInternal        Code = "internal"           // everything else: our fault
)

// Error is an error whose Message is safe to show to whoever caused it. Err, the
// cause, is for the log only.
type Error struct {
	Code    Code
	Field   string // the form field, JSON member, flag, file or row at fault, if any
	Message string // what happened, what was kept, what to do: one sentence or two
	Err     error
}

func (e *Error) Error() string {
	s := e.Message
	if e.Field != "" {
		s = e.Field + ": " + s
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf makes an *Error with a message for the user.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid says that a field breaks a rule.
func Invalid(field, format string, args ...any) *Error {
	return &Error{Code: CodeInvalid, Field: field, Message: fmt.Sprintf(format, args...)}
}

// ErrorCode returns the code of the first *Error in err's chain, CodeInternal when
// there is none, and "" for nil.
func ErrorCode(err error) Code {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return CodeInternal
}

// ErrorMessage returns the message that is safe to show, with its field.
func ErrorMessage(err error) string {
	var e *Error
	if errors.As(err, &e) {
		if e.Field != "" {
			return e.Field + ": " + e.Message
		}
		return e.Message
	}
	return "Something went wrong on our side. Nothing you saved is lost; try again."
}
