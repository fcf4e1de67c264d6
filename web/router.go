package web

import (
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"
	"github.com/go-chi/chi/v5/middleware"
	"github.com/go-chi/httprate"

	"winnow"
	"winnow/handlers"
	"winnow/static"
)

// maxForm bounds every request that is not an upload.
const maxForm = 1 << 20

// routes is the whole of the site. Each route says who may use it.
func (s *Server) routes() http.Handler {
	b := s.base
	account := &handlers.Account{Base: b, Accounts: s.deps.Accounts}
	projects := &handlers.Projects{Base: b, Store: s.deps.Projects}
	label := &handlers.Label{Base: b, Labels: s.deps.Labels}

	r := chi.NewRouter()
	r.Use(logRequests(s.deps.Log, s.metrics), securityHeaders(s.cfg.SecureCookies), middleware.StripSlashes)
	r.Get("/healthz", healthz)
	r.Get("/readyz", s.readyz)
	r.Get("/metrics", s.metrics.handler().ServeHTTP)
	r.Get("/favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, static.URL("icon/winnow.svg"), http.StatusFound)
	})
	r.Handle(static.Prefix+"*", static.Handler())

	// Pages: everything below has a session.
	r.Group(func(r chi.Router) {
		r.Use(s.loadSession, recoverPanics(b), sameOrigin(b))
		r.NotFound(b.Handle(notFound))
		r.MethodNotAllowed(b.Handle(notFound))

		r.Group(func(r chi.Router) {
			r.Use(limitBody(maxForm))

			r.Get("/", b.Handle(account.Home))
			r.Get("/signin", b.Handle(account.SignInForm))
			r.With(s.limitAttempts).Post("/signin", b.Handle(account.SignIn))
			r.Get("/signin/link/{token}", b.Handle(account.LinkForm))
			r.With(s.limitAttempts).Post("/signin/link/{token}", b.Handle(account.Link))
			r.Post("/signout", b.Handle(account.SignOut))
			r.Get("/account", b.SignedIn(account.Page))
			r.With(s.limitAttempts).Post("/account", b.SignedIn(account.SetPassword))

			r.Get("/projects", b.SignedIn(projects.List))

			r.Route("/projects/{project}/label", func(r chi.Router) {
				annotate := func(f handlers.Func) http.HandlerFunc { return b.InProject(winnow.RoleAnnotator, f) }
				r.Get("/", annotate(label.Page))
				r.Post("/", annotate(label.Submit))
				r.Get("/state", annotate(label.State))
				r.Post("/claim", annotate(label.Claim))
				r.Post("/decide", annotate(label.Decide))
				r.Post("/undo", annotate(label.Undo))
				r.Post("/renew", annotate(label.Renew))
				r.Post("/release", annotate(label.Release))
			})
		})
	})
	return r
}

func notFound(http.ResponseWriter, *http.Request) error {
	return winnow.Errorf(winnow.CodeNotFound, "This page does not exist. The link may be old, or mistyped.")
}

// loadSession gives the request its session. When the store does not answer, that
// is said as such: it is not the same as not being signed in.
func (s *Server) loadSession(next http.Handler) http.Handler {
	s.session.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		s.deps.Log.ErrorContext(r.Context(), "session", "error", err)
		w.Header().Set("Retry-After", "5")
		http.Error(w, "The database does not answer. Nothing you saved is lost; try again in a moment.", http.StatusServiceUnavailable)
	}
	return s.session.LoadAndSave(next)
}

// limitAttempts slows down who guesses passwords or links.
func (s *Server) limitAttempts(next http.Handler) http.Handler {
	return httprate.LimitBy(s.cfg.SignInAttempts, time.Minute, s.clientAddress,
		httprate.WithLimitHandler(s.base.Handle(func(w http.ResponseWriter, _ *http.Request) error {
			w.Header().Set("Retry-After", "60")
			return winnow.Errorf(winnow.CodeRateLimited, "Too many attempts from your address. Wait a minute, then try again.")
		})))(next)
}

// clientAddress is the address of who asks, shortened to the network for IPv6. Only
// a proxy of ours may say that it is somebody else's.
func (s *Server) clientAddress(r *http.Request) (string, error) {
	addr := r.RemoteAddr
	if host, _, err := net.SplitHostPort(addr); err == nil {
		addr = host
	}
	if s.cfg.TrustProxy {
		// The last entry is the one our proxy wrote; the others are hearsay.
		forwarded := r.Header.Values("X-Forwarded-For")
		if len(forwarded) > 0 {
			all := strings.Split(forwarded[len(forwarded)-1], ",")
			addr = strings.TrimSpace(all[len(all)-1])
		}
	}
	return httprate.CanonicalizeIP(addr), nil
}
