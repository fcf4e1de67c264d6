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
		viewer  = winnow.RoleViewer
		admin   = winnow.RoleAdmin
		project = "/projects/{project}"
	)
	b, passwords := s.base, handlers.NewPasswords()
	account := &handlers.Account{Base: b, Accounts: s.deps.Accounts, Passwords: passwords}
	uploads := s.uploads
	projects := &handlers.Projects{Base: b, Store: s.deps.Projects, Uploads: uploads}
	people := &handlers.People{Base: b, People: s.deps.People, Tokens: s.deps.Tokens}
	invites := &handlers.Invites{Base: b, Invites: s.deps.Invites, Passwords: passwords}
	images := &handlers.Images{Base: b, Store: s.deps.Images}
	imports := &handlers.Imports{Base: b, Store: s.deps.Imports, Uploads: uploads}
	rounds := &handlers.Rounds{Base: b, Store: s.deps.Rounds}
	label := &handlers.Label{Base: b, Labels: s.deps.Labels, Keys: s.deps.Accounts}
	review := &handlers.Review{Base: b, Store: s.deps.Reviews}
	annotators := &handlers.Annotators{Base: b, Store: s.deps.Annotate}
	grid := &handlers.Grid{Base: b, Labels: s.deps.Grid, Groups: s.deps.Groups, Keys: s.deps.Accounts}

	r := chi.NewRouter()
	r.Use(logRequests(s.deps.Log, s.metrics), securityHeaders(s.cfg.SecureCookies), middleware.StripSlashes, middleware.GetHead)
	r.Get("/healthz", healthz)
	r.Get("/readyz", s.readyz)
	r.Get("/metrics", s.forMetrics(s.metrics.handler()))
	r.Get("/favicon.ico", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, static.URL("icon/winnow.svg"), http.StatusFound)
	})
	r.Handle(static.Prefix+"*", static.Handler(s.loadSession(http.HandlerFunc(b.NotFound))))

	// Programs: everything here has a bearer token, and no session.
	r.Group(func(r chi.Router) {
		r.Use(recoverPanics(b), limitBody(maxForm))
		api.Mount(r, s.deps.API, s.deps.Log)
	})

	// Pages: everything below has a session.
	r.Group(func(r chi.Router) {
		r.Use(s.loadSession, recoverPanics(b), sameOrigin(b))
		r.NotFound(b.NotFound)
		r.MethodNotAllowed(s.methodNotAllowed)

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
			r.Post("/account/keys", b.SignedIn(account.SetKeys))

			r.Get("/invite/{token}", b.Handle(invites.Page))
			r.With(s.limitAttempts).Post("/invite/{token}", b.Handle(invites.Accept))

			r.Get("/projects", b.SignedIn(projects.List))
			r.Get("/projects/new", b.SignedIn(projects.New))

			r.Get(project, b.InProject(viewer, projects.Page))
			r.Get(project+"/events", b.InProject(viewer, projects.Events))
			r.Get(project+"/settings", b.InProject(admin, projects.Settings))
			r.Post(project+"/settings", b.InProject(admin, projects.SaveSettings))

			r.Get(project+"/images", b.InProject(viewer, images.Gallery))
			r.Get(project+"/images/{image}", b.InProject(viewer, images.Page))
			r.Get(project+"/images/{image}/{rendition}", b.InProject(viewer, images.Bytes))

			r.Post(project+"/images/{image}/correct", b.InProject(admin, review.Correct))
			r.Post(project+"/images/{image}/gold", b.InProject(admin, review.Gold))
			r.Get(project+"/review", b.InProject(admin, review.Page))
			r.Post(project+"/review", b.InProject(admin, review.Submit))

			r.Get(project+"/annotators", b.InProject(admin, annotators.List))
			r.Get(project+"/annotators/me", b.InProject(winnow.RoleAnnotator, annotators.Own))
			r.Get(project+"/annotators/{user}", b.InProject(admin, annotators.Person))

			r.Get(project+"/import", b.InProject(admin, imports.Form))
			r.Get(project+"/imports/{import}", b.InProject(admin, imports.Page))
			r.Get(project+"/imports/{import}/events", b.InProject(admin, imports.Events))

			r.Get(project+"/people", b.InProject(admin, people.Page))
			r.Post(project+"/people/invites", b.InProject(admin, people.Invite))
			r.Post(project+"/people/invites/{invite}/revoke", b.InProject(admin, people.RevokeInvite))
			r.Post(project+"/people/members/{user}", b.InProject(admin, people.ChangeMember))
			r.Post(project+"/people/tokens", b.InProject(admin, people.CreateToken))
			r.Post(project+"/people/tokens/{token}/revoke", b.InProject(admin, people.RevokeToken))

			r.Post(project+"/rounds", b.InProject(admin, rounds.Start))
			r.Get(project+"/rounds/{number}", b.InProject(viewer, rounds.Page))
			r.Get(project+"/rounds/{number}/events", b.InProject(viewer, rounds.Events))
			r.Post(project+"/rounds/{number}/cancel", b.InProject(admin, rounds.Cancel))
			r.Post(project+"/rounds/{number}/retry", b.InProject(admin, rounds.Retry))
			r.Post(project+"/rounds/{number}/close", b.InProject(admin, rounds.Close))

			annotate := func(f handlers.Func) http.HandlerFunc { return b.InProject(winnow.RoleAnnotator, f) }
			r.Get(project+"/label", annotate(label.Page))
			r.Post(project+"/label", annotate(label.Submit))
			r.Get(project+"/label/state", annotate(label.State))
			r.Post(project+"/label/claim", annotate(label.Claim))
			r.Post(project+"/label/decide", annotate(label.Decide))
			r.Post(project+"/label/undo", annotate(label.Undo))
			r.Post(project+"/label/renew", annotate(label.Renew))
			r.Post(project+"/label/release", annotate(label.Release))
			r.Post(project+"/label/flag", annotate(label.Flag))
			r.Post(project+"/label/theme", annotate(label.Theme))
			r.Get(project+"/label/grid", annotate(grid.Page))
			r.Post(project+"/label/grid", annotate(grid.Submit))
			r.Post(project+"/label/grid/undo", annotate(grid.SubmitUndo))
			r.Get(project+"/label/alike", annotate(grid.Offer))
			r.Post(project+"/label/alike", annotate(grid.Alike))
			r.Post(project+"/label/decide-all", annotate(grid.DecideAll))
			r.Post(project+"/label/undo-all", annotate(grid.UndoAll))
		})

		// Uploads bound themselves.
		r.Post("/projects", b.SignedIn(projects.Create))
		r.Post(project+"/imports", b.InProject(admin, imports.Create))
	})
	return r
}

// methodNotAllowed says which methods the address takes.
func (s *Server) methodNotAllowed(w http.ResponseWriter, r *http.Request) {
	path := "/" + strings.Trim(r.URL.Path, "/")
	takes := func(method string) bool { return s.router.Match(chi.NewRouteContext(), method, path) }
	var allowed []string
	if takes(http.MethodGet) {
		allowed = append(allowed, http.MethodGet, http.MethodHead)
	}
	if takes(http.MethodPost) {
		allowed = append(allowed, http.MethodPost)
	}
	if len(allowed) == 0 { // a method that nobody has heard of, at an address that is not ours
		s.base.NotFound(w, r)
		return
	}
	s.base.MethodNotAllowed(w, r, allowed)
}

// loadSession gives the request its session. When the store does not answer, that
// is said as such: it is not the same as not being signed in.
func (s *Server) loadSession(next http.Handler) http.Handler {
	s.session.ErrorFunc = func(w http.ResponseWriter, r *http.Request, err error) {
		w.Header().Set("Retry-After", "5")
		s.base.FailPlain(w, r, &winnow.Error{
			Code: winnow.CodeUnavailable, Message: "The database does not answer. Nothing you saved is lost; try again in a moment.", Err: err,
		})
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

// clientAddress is the address of who asks, shortened to the network for IPv6.
func (s *Server) clientAddress(r *http.Request) (string, error) {
	return httprate.CanonicalizeIP(s.remoteAddress(r)), nil
}

// remoteAddress is the address of who asks. Only a proxy of ours may say that it is
// somebody else's.
func (s *Server) remoteAddress(r *http.Request) string {
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
	return addr
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
