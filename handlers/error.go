package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-chi/chi/v5"

	"winnow"
	"winnow/views"
)

// answer is how a code is told: its status and the heading of its page.
type answer struct {
	status  int
	heading string
}

// answers maps each code to its status: the only place that does.
func answers(code winnow.Code) answer {
	switch code {
	case winnow.CodeInvalid:
		return answer{http.StatusUnprocessableEntity, "That cannot be used as it is"}
	case winnow.CodeUnauthenticated:
		return answer{http.StatusUnauthorized, "Sign in first"}
	case winnow.CodeForbidden:
		return answer{http.StatusForbidden, "Your role does not allow this"}
	case winnow.CodeNotFound:
		return answer{http.StatusNotFound, "There is nothing here"}
	case winnow.CodeMethod:
		return answer{http.StatusMethodNotAllowed, "This does not work this way"}
	case winnow.CodeConflict, winnow.CodeCanceled:
		return answer{http.StatusConflict, "This is not possible right now"}
	case winnow.CodeGone:
		return answer{http.StatusGone, "This link no longer works"}
	case winnow.CodeTooLarge:
		return answer{http.StatusRequestEntityTooLarge, "This is too large"}
	case winnow.CodeUnsupported:
		return answer{http.StatusUnsupportedMediaType, "This format is not read"}
	case winnow.CodeRateLimited:
		return answer{http.StatusTooManyRequests, "Too many attempts"}
	case winnow.CodeUnavailable:
		return answer{http.StatusServiceUnavailable, "Not available for the moment"}
	default:
		return answer{http.StatusInternalServerError, "Something went wrong"}
	}
}

// Status returns the HTTP status of an error, 200 for nil.
func Status(err error) int {
	if err == nil {
		return http.StatusOK
	}
	return answers(winnow.ErrorCode(err)).status
}

// Problem is the JSON form of an error (RFC 9457).
type Problem struct {
	Type   string      `json:"type"`
	Title  string      `json:"title"`
	Status int         `json:"status"`
	Detail string      `json:"detail"`
	Code   winnow.Code `json:"code"`
	Field  string      `json:"field,omitempty"`
}

// NewProblem describes an error for a program. Causes are not shown.
func NewProblem(err error) Problem {
	code := winnow.ErrorCode(err)
	a := answers(code)
	p := Problem{Type: "about:blank", Title: http.StatusText(a.status), Status: a.status, Code: code, Detail: winnow.ErrorMessage(err)}
	var e *winnow.Error
	if errors.As(err, &e) {
		p.Field, p.Detail = e.Field, e.Message
	}
	return p
}

// Handle makes an http.HandlerFunc of f: its error is logged once, here, and told
// as a page or as problem JSON.
func (b *Base) Handle(f Func) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := f(w, r); err != nil {
			b.Fail(w, r, err)
		}
	}
}

// NotFound answers addresses that are not ours.
func (b *Base) NotFound(w http.ResponseWriter, r *http.Request) {
	b.Fail(w, b.recognize(r), winnow.Errorf(winnow.CodeNotFound, "This page does not exist. The link may be old, or mistyped."))
}

// MethodNotAllowed answers requests whose address is ours, but only for other
// methods.
func (b *Base) MethodNotAllowed(w http.ResponseWriter, r *http.Request, allowed []string) {
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	b.Fail(w, b.recognize(r), winnow.Errorf(winnow.CodeMethod, "This address takes %s, not %s. Go back and use the page's own buttons.", strings.Join(allowed, " and "), r.Method))
}

// recognize says who asks, if it is known, so that the error page has its frame.
func (b *Base) recognize(r *http.Request) *http.Request {
	if user, err := b.signedIn(r.Context()); err == nil {
		return withScope(r, &Scope{User: user})
	}
	return r
}

// Fail tells the error to whoever asked.
func (b *Base) Fail(w http.ResponseWriter, r *http.Request, err error) {
	err = bodyError(err)
	b.logError(r, err)
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the browser has gone
	}
	problem := NewProblem(err)
	if wantsJSON(r) {
		_ = writeJSON(w, problem.Status, "application/problem+json", problem)
		return
	}
	if problem.Code == winnow.CodeUnauthenticated {
		next := "/signin"
		if r.Method == http.MethodGet {
			next += "?next=" + url.QueryEscape(r.URL.RequestURI())
		}
		_ = seeOther(w, r, next)
		return
	}
	props := views.ErrorProps{
		Page: b.page(r, answers(problem.Code).heading), Status: problem.Status,
		Heading: answers(problem.Code).heading, Message: winnow.ErrorMessage(err), Back: "/", BackTo: "To the sign-in page",
	}
	props.Width = "narrow"
	switch s := scopeOf(r.Context()); {
	case s == nil:
	case s.Project == nil:
		props.Back, props.BackTo = "/projects", "To the projects"
	default:
		props.Back, props.BackTo = views.ProjectURL(s.Project.ID, ""), "To "+s.Project.Name
	}
	if err := render(w, r, problem.Status, views.Error(props)); err != nil {
		b.Log.ErrorContext(r.Context(), "error page", "error", err)
		http.Error(w, problem.Detail, problem.Status)
	}
}

// FailPlain tells an error where there is no session to make a page of.
func (b *Base) FailPlain(w http.ResponseWriter, r *http.Request, err error) {
	b.logError(r, err)
	problem := NewProblem(err)
	if wantsJSON(r) {
		_ = writeJSON(w, problem.Status, "application/problem+json", problem)
		return
	}
	http.Error(w, problem.Detail, problem.Status)
}

func (b *Base) logError(r *http.Request, err error) {
	level := slog.LevelInfo
	if Status(err) >= 500 && r.Context().Err() == nil {
		level = slog.LevelError
	}
	// Paths hold the secrets of invitations and sign-in links: the log names the route.
	route := r.URL.Path
	if rc := chi.RouteContext(r.Context()); rc != nil && rc.RoutePattern() != "" {
		route = rc.RoutePattern()
	}
	b.Log.Log(r.Context(), level, "request refused",
		"method", r.Method, "route", route, "code", string(winnow.ErrorCode(err)), "error", err)
}

// bodyError gives the code to errors of reading a request's body.
func bodyError(err error) error {
	var big *http.MaxBytesError
	if errors.As(err, &big) {
		return &winnow.Error{
			Code:    winnow.CodeTooLarge,
			Message: "What was sent is larger than the limit of " + views.Bytes(big.Limit) + ". Nothing of it was kept.", Err: err,
		}
	}
	return err
}

// writeJSON answers with a JSON value.
func writeJSON(w http.ResponseWriter, status int, mediaType string, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n'))
	return nil
}

// respondJSON answers 200 with a JSON value.
func respondJSON(w http.ResponseWriter, v any) error {
	return writeJSON(w, http.StatusOK, "application/json", v)
}
