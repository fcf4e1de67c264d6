package handlers

import (
	"errors"
	"net/http"

	"winnow"
	"winnow/views"
)

// formError gives the code to errors of reading a form.
func formError(err error) error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return bodyError(err)
	}
	return &winnow.Error{Code: winnow.CodeInvalid, Message: "The form could not be read. Go back and send it again.", Err: err}
}

// refused reports whether the user can mend err in the form it came from, and what
// to show there. Other errors have pages of their own.
func refused(err error) (views.FormError, bool) {
	var e *winnow.Error
	if !errors.As(err, &e) || (e.Code != winnow.CodeInvalid && e.Code != winnow.CodeConflict) {
		return views.FormError{}, false
	}
	return views.FormError{Field: e.Field, Message: e.Message}, true
}
