package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-chi/chi/v5"

	"winnow/handlers"
)

// Server answers Winnow's pages. Make it with New, run it with Serve.
type Server struct {
	cfg     Config
	deps    Deps
	base    *handlers.Base
	uploads *handlers.Uploads
	hub     *hub
	metrics *metrics
	session *scs.SessionManager
	router  chi.Router

	// Work that outlives its request, such as an import, runs until ctx ends and is
	// waited for.
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup
}

// New wires a server; it does nothing before Serve.
func New(cfg Config, deps Deps) *Server {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Log == nil {
		deps.Log = slog.Default()
	}
	s := &Server{cfg: cfg.WithDefaults(), deps: deps, hub: newHub(), metrics: newMetrics(deps.Metrics)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.session = newSessions(s.cfg, deps)
	s.base = &handlers.Base{Log: deps.Log, Sessions: s.session, Access: deps.Access, Events: s.hub, Waiting: deps.Reviews, Now: deps.Now, BaseURL: s.cfg.BaseURL}
	s.uploads = &handlers.Uploads{Importer: deps.Importer, Dir: s.cfg.UploadDir, Limit: s.cfg.MaxUpload, Go: s.goWork}
	s.router = s.routes()
	return s
}

// ServeHTTP lets tests drive the server without a listener.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.router.ServeHTTP(w, r) }

// ListenAndServe listens on the configured address and serves until ctx ends.
func (s *Server) ListenAndServe(ctx context.Context) error {
	l, err := net.Listen("tcp", s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.cfg.Addr, err)
	}
	return s.Serve(ctx, l)
}

// Serve answers on l until ctx ends. Then it takes no new connections, ends the
// event streams, lets requests finish for the grace period, stops the work they
// left behind, and returns nil.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.router,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.deps.Log.Handler(), slog.LevelDebug),
	}
	srv.RegisterOnShutdown(s.hub.close)
	if n := s.uploads.Sweep(s.deps.Now()); n > 0 {
		s.deps.Log.Info("removed uploads that were left behind when a server was killed", "files", n)
	}
	if s.deps.Listen != nil {
		s.goWork(func(ctx context.Context) { s.hub.listen(ctx, s.deps.Log, s.deps.Listen) })
	}

	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	return errors.Join(ignoreClosed(err), s.shutdown(srv))
}

func (s *Server) shutdown(srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.ShutdownGrace)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		s.deps.Log.Warn("some requests did not finish in time and were cut off", "grace", s.cfg.ShutdownGrace)
		err = srv.Close()
	}
	s.Close()
	return err
}

// Close ends the event streams and the work behind requests, and waits for them.
// Serve calls it; who uses ServeHTTP alone calls it at the end.
func (s *Server) Close() {
	s.hub.close()
	s.cancel()
	s.work.Wait()
	if c, ok := s.deps.Sessions.(interface{ StopCleanup() }); ok {
		c.StopCleanup()
	}
}

// goWork runs fn apart from any request, until it returns or the server ends.
func (s *Server) goWork(fn func(ctx context.Context)) {
	s.work.Go(func() { fn(s.ctx) })
}

func ignoreClosed(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

func newSessions(cfg Config, deps Deps) *scs.SessionManager {
	m := scs.New()
	if deps.Sessions != nil {
		m.Store = deps.Sessions
	}
	m.Lifetime = cfg.SessionLife
	m.HashTokenInStore = true
	m.Cookie.Name = "winnow_session"
	m.Cookie.HttpOnly = true
	m.Cookie.Secure = cfg.SecureCookies
	m.Cookie.SameSite = http.SameSiteLaxMode
	return m
}
