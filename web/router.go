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
	"winnow/handlers/api"
	"winnow/static"
)

// maxForm bounds every request that is not an upload.
const maxForm = 1 << 20

// routes is the whole of the site. Each route says who may use it.
func (s *Server) routes() chi.Router {
	const (
		viewer = winnow.RoleViewer
		admin  = winnow.RoleAdmin
	)
	b := s.base
	account := &handlers.Account{Base: b, Accounts: s.deps.Accounts}
	uploads := &handlers.Uploads{Importer: s.deps.Importer, Dir: s.cfg.UploadDir, Limit: s.cfg.MaxUpload, Go: s.goWork}
	projects := &handlers.Projects{Base: b, Store: s.deps.Projects, Uploads: uploads}
	people := &handlers.People{Base: b, People: s.deps.People, Tokens: s.deps.Tokens}
	invites := &handlers.Invites{Base: b, Invites: s.deps.Invites}
	images := &handlers.Images{Base: b, Store: s.deps.Images}
	imports := &handlers.Imports{Base: b, Store: s.deps.Imports, Uploads: uploads}
	rounds := &handlers.Rounds{Base: b, Store: s.deps.Rounds}
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

	// Programs: everything here has a bearer token, and no session.
	r.Group(func(r chi.Router) {
		r.Use(recoverPanics(b), limitBody(maxForm))
		api.Mount(r, s.deps.API, s.deps.Log)
	})

	// Pages: everything below has a session.
	r.Group(func(r chi.Router) {
		r.Use(s.loadSession, recoverPanics(b), sameOrigin(b))
		r.NotFound(b.Handle(notFound))

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

			r.Get("/invite/{token}", b.Handle(invites.Page))
			r.With(s.limitAttempts).Post("/invite/{token}", b.Handle(invites.Accept))

			r.Get("/projects", b.SignedIn(projects.List))
			r.Get("/projects/new", b.SignedIn(projects.New))

			r.Route("/projects/{project}", func(r chi.Router) {
				r.Get("/", b.InProject(viewer, projects.Page))
				r.Get("/events", b.InProject(viewer, projects.Events))
				r.Get("/settings", b.InProject(admin, projects.Settings))
				r.Post("/settings", b.InProject(admin, projects.SaveSettings))

				r.Get("/images", b.InProject(viewer, images.Gallery))
				r.Get("/images/{image}", b.InProject(viewer, images.Page))
				r.Get("/images/{image}/{rendition}", b.InProject(viewer, images.Bytes))

				r.Get("/import", b.InProject(admin, imports.Form))
				r.Get("/imports/{import}", b.InProject(admin, imports.Page))
				r.Get("/imports/{import}/events", b.InProject(admin, imports.Events))

				r.Get("/people", b.InProject(admin, people.Page))
				r.Post("/people/invites", b.InProject(admin, people.Invite))
				r.Post("/people/invites/{invite}/revoke", b.InProject(admin, people.RevokeInvite))
				r.Post("/people/members/{user}", b.InProject(admin, people.ChangeMember))
				r.Post("/people/tokens", b.InProject(admin, people.CreateToken))
				r.Post("/people/tokens/{token}/revoke", b.InProject(admin, people.RevokeToken))

				r.Post("/rounds", b.InProject(admin, rounds.Start))
				r.Get("/rounds/{number}", b.InProject(viewer, rounds.Page))
				r.Get("/rounds/{number}/events", b.InProject(viewer, rounds.Events))
				r.Post("/rounds/{number}/cancel", b.InProject(admin, rounds.Cancel))
				r.Post("/rounds/{number}/retry", b.InProject(admin, rounds.Retry))
				r.Post("/rounds/{number}/close", b.InProject(admin, rounds.Close))

				annotate := func(f handlers.Func) http.HandlerFunc { return b.InProject(winnow.RoleAnnotator, f) }
				r.Get("/label", annotate(label.Page))
				r.Post("/label", annotate(label.Submit))
				r.Get("/label/state", annotate(label.State))
				r.Post("/label/claim", annotate(label.Claim))
				r.Post("/label/decide", annotate(label.Decide))
				r.Post("/label/undo", annotate(label.Undo))
				r.Post("/label/renew", annotate(label.Renew))
				r.Post("/label/release", annotate(label.Release))
			})
		})

		// Uploads bound themselves.
		r.Post("/projects", b.SignedIn(projects.Create))
		r.Post("/projects/{project}/imports", b.InProject(admin, imports.Create))
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
		// Our proxy added the last entry; what is before is hearsay.
		forwarded := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if last := strings.TrimSpace(forwarded[len(forwarded)-1]); last != "" {
			addr = last
		}
	}
	return httprate.CanonicalizeIP(addr), nil
}

// Routes lists the site's routes as "METHOD /pattern".
func (s *Server) Routes() []string {
	var routes []string
	// The walk fails only where its function does.
	_ = chi.Walk(s.router, func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		if route != "/" {
			route = strings.TrimSuffix(route, "/")
		}
		routes = append(routes, method+" "+route)
		return nil
	})
	return routes
}

// Public reports whether a route has no session: health, metrics, files and the API,
// which has tokens.
func Public(route string) bool {
	_, path, _ := strings.Cut(route, " ")
	for _, prefix := range []string{"/healthz", "/readyz", "/metrics", "/favicon.ico", static.Prefix, "/api"} {
		if strings.HasPrefix(path, prefix) {
			return true
		}
	}
	return false
}
