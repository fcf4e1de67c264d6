package web

import (
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"

	"winnow"
	"winnow/handlers"
)

// securityHeaders forbids everything that pages do not need. Scripts and styles
// come from this server's files only: nothing that was typed in can become code.
func securityHeaders(secure bool) func(http.Handler) http.Handler {
	const csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; " +
		"connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Set("Content-Security-Policy", csp)
			h.Set("X-Content-Type-Options", "nosniff")
			h.Set("Referrer-Policy", "same-origin")
			h.Set("X-Frame-Options", "DENY")
			h.Set("Cross-Origin-Opener-Policy", "same-origin")
			h.Set("Cross-Origin-Resource-Policy", "same-origin")
			h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=()")
			if secure {
				h.Set("Strict-Transport-Security", "max-age=31536000")
			}
			next.ServeHTTP(w, r)
		})
	}
}

// limitBody bounds what a request may send. Uploads raise the limit themselves.
func limitBody(limit int64) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, limit)
			next.ServeHTTP(w, r)
		})
	}
}

// logRequests writes one line a request and counts it. Event streams and static
// files are counted but not logged: there are too many to be read.
func logRequests(log *slog.Logger, m *metrics) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began := time.Now()
			id := requestID()
			w.Header().Set("X-Request-Id", id)
			ww := middleware.NewWrapResponseWriter(w, r.ProtoMajor)
			next.ServeHTTP(ww, r)
			took := time.Since(began)
			route := routePattern(r)
			status := ww.Status()
			if status == 0 {
				status = http.StatusOK
			}
			m.observe(r.Method, route, status, took)
			if !strings.HasPrefix(r.URL.Path, "/static/") {
				log.DebugContext(r.Context(), "request", "id", id, "method", r.Method, "route", route,
					"status", status, "bytes", ww.BytesWritten(), "took", took)
			}
		})
	}
}

// routePattern names the route without its identifiers, so that the metrics stay
// few, and links with secrets in their path stay out of the log.
func routePattern(r *http.Request) string {
	if rc := chi.RouteContext(r.Context()); rc != nil {
		if p := rc.RoutePattern(); p != "" {
			return p
		}
	}
	return "unmatched"
}

func requestID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// recoverPanics turns a panic of a handler into an error page and a log entry with
// its stack. A request that was aborted on purpose stays aborted.
func recoverPanics(base *handlers.Base) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() {
				v := recover()
				if v == nil {
					return
				}
				if err, ok := v.(error); ok && err == http.ErrAbortHandler {
					panic(v)
				}
				base.Log.ErrorContext(r.Context(), "panic", "value", v, "stack", string(debug.Stack()))
				base.Fail(w, r, winnow.Errorf(winnow.CodeInternal, "Something went wrong on our side. Nothing you saved is lost; try again."))
			}()
			next.ServeHTTP(w, r)
		})
	}
}

// sameOrigin refuses forms and scripts of other sites that act with a person's
// cookies. Requests with a bearer token carry no cookie and pass.
func sameOrigin(base *handlers.Base) func(http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	protection.SetDenyHandler(base.Handle(func(http.ResponseWriter, *http.Request) error {
		return winnow.Errorf(winnow.CodeForbidden, "This request came from another site and was not carried out. Open the page here and try again.")
	}))
	return protection.Handler
}
