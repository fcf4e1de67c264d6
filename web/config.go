// Package web is Winnow's HTTP server: its life from listening to draining, the
// routes, the middleware around them, sessions, event streams, health and metrics.
package web

import (
	"context"
	"log/slog"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/prometheus/client_golang/prometheus"

	"winnow"
	"winnow/handlers"
	"winnow/handlers/api"
)

// Config is what an operator may choose. The zero value of a field takes its
// default from WithDefaults.
type Config struct {
	Addr           string        // listen address, "127.0.0.1:8080"
	BaseURL        string        // where people reach the site, for links; "" to go by each request
	SecureCookies  bool          // the site is reached by HTTPS only
	TrustProxy     bool          // a proxy of ours is in front, whose X-Forwarded-For is believed
	MaxUpload      int64         // bytes of one upload
	UploadDir      string        // where uploads wait for their import; "" for the system's temporary folder
	SessionLife    time.Duration // a session ends after this
	SignInAttempts int           // per address and minute
	ShutdownGrace  time.Duration // how long requests may take to finish at the end
	Metrics        string        // who may read /metrics: MetricsPrivate, MetricsAll or MetricsOff
}

// WithDefaults fills what was left empty.
func (c Config) WithDefaults() Config {
	if c.Addr == "" {
		c.Addr = "127.0.0.1:8080"
	}
	if c.MaxUpload == 0 {
		c.MaxUpload = 8 << 30
	}
	if c.SessionLife == 0 {
		c.SessionLife = 30 * 24 * time.Hour
	}
	if c.SignInAttempts == 0 {
		c.SignInAttempts = 20
	}
	if c.ShutdownGrace == 0 {
		c.ShutdownGrace = 10 * time.Second
	}
	if c.Metrics == "" {
		c.Metrics = MetricsPrivate
	}
	return c
}

// Deps are the parts the server works with. One *db.Store fills all the stores.
type Deps struct {
	Log      *slog.Logger
	Now      winnow.Clock // nil for time.Now
	Sessions scs.Store    // nil keeps sessions in memory

	Access   handlers.Access
	Accounts handlers.AccountStore
	Projects handlers.ProjectStore
	People   handlers.PeopleStore
	Invites  handlers.InviteStore
	Tokens   handlers.TokenStore
	Images   handlers.ImageStore
	Imports  handlers.ImportStore
	Rounds   handlers.RoundStore
	Labels   handlers.LabelStore
	Reviews  handlers.ReviewStore
	Annotate handlers.AnnotatorStore
	Grid     handlers.GridStore
	Groups   handlers.GroupStore
	API      api.Store

	Importer handlers.Importer // reads an uploaded ZIP into a project

	// Ready says whether the server can do its work: the database answers and its
	// schema is current.
	Ready func(ctx context.Context) error
	// Listen calls fn for every notice until ctx ends or the connection is lost.
	Listen func(ctx context.Context, fn func(winnow.Notice)) error

	Metrics *prometheus.Registry // nil for one of its own
}
