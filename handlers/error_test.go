package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"winnow"
)

// noSession is a session with nothing in it.
type noSession struct{}

func (noSession) RenewToken(context.Context) error         { return nil }
func (noSession) Destroy(context.Context) error            { return nil }
func (noSession) Put(context.Context, string, any)         {}
func (noSession) GetInt64(context.Context, string) int64   { return 0 }
func (noSession) PopString(context.Context, string) string { return "" }

func TestFail(t *testing.T) {
	t.Parallel()
	cause := errors.New("pq: password of the database")
	for _, tc := range []struct {
		err    error
		status int
		says   string
	}{
		{winnow.Invalid("name", "Project name is empty."), 422, "Project name is empty."},
		{winnow.Errorf(winnow.CodeForbidden, "No."), 403, "No."},
		{winnow.Errorf(winnow.CodeNotFound, "Gone <b>astray</b>."), 404, "Gone &lt;b&gt;astray&lt;/b&gt;."},
		{fmt.Errorf("db: close: %w", winnow.Errorf(winnow.CodeConflict, "Closed already.")), 409, "Closed already."},
		{winnow.Errorf(winnow.CodeCanceled, "Stopped."), 409, "Stopped."},
		{winnow.Errorf(winnow.CodeGone, "Expired."), 410, "Expired."},
		{&http.MaxBytesError{Limit: 1000}, 413, "larger than the limit of 1.0 kB"},
		{winnow.Errorf(winnow.CodeUnsupported, "No TIFF."), 415, "No TIFF."},
		{winnow.Errorf(winnow.CodeRateLimited, "Slowly."), 429, "Slowly."},
		{cause, 500, "Something went wrong on our side"},
		{&winnow.Error{Code: winnow.CodeUnavailable, Message: "Later.", Err: cause}, 503, "Later."},
	} {
		b := &Base{Log: slog.New(slog.DiscardHandler), Sessions: noSession{}}
		for _, accept := range []string{"text/html", "application/json"} {
			w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
			r.Header.Set("Accept", accept)
			b.Handle(func(http.ResponseWriter, *http.Request) error { return tc.err })(w, r)
			body := w.Body.String()
			if w.Code != tc.status {
				t.Errorf("%v as %s: status %d, want %d", tc.err, accept, w.Code, tc.status)
			}
			if strings.Contains(body, "password of the database") {
				t.Errorf("%v as %s shows its cause", tc.err, accept)
			}
			if accept == "text/html" {
				if !strings.Contains(body, tc.says) {
					t.Errorf("%v: the page does not say %q", tc.err, tc.says)
				}
				continue
			}
			var p Problem
			if err := json.Unmarshal([]byte(body), &p); err != nil || p.Status != tc.status || p.Detail == "" || w.Header().Get("Content-Type") != "application/problem+json" {
				t.Errorf("%v: problem %+v, %v", tc.err, p, err)
			}
		}
	}
}

func TestLocalPath(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"/projects/1?x=y": "/projects/1?x=y", "": "", "projects": "", "//evil.example": "", `/\evil.example`: "",
		"https://evil.example": "", "/a\r\nSet-Cookie: x": "", "javascript:alert(1)": "",
	} {
		if got := localPath(in); got != want {
			t.Errorf("localPath(%q) = %q, want %q", in, got, want)
		}
	}
}
