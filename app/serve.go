package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/alexedwards/scs/pgxstore"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"winnow"
	"winnow/db"
	"winnow/imaging"
	"winnow/jobs"
	"winnow/web"
)

// deadImport is how long an import may be silent before its process is taken for
// dead.
const deadImport = 30 * time.Second

// sessionSweep is how often expired sessions are deleted; nobody can use them before that.
const sessionSweep = 5 * time.Minute

func (c *cli) newServeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the web server",
		Long: `Run the web server. It needs a database (DATABASE_URL) with the current schema
(winnow migrate up), and a worker beside it, here or elsewhere, for rounds to train.`,
		Example: `  DATABASE_URL=postgres://winnow:secret@db/winnow winnow serve --host 0.0.0.0
  DATABASE_URL_FILE=/run/secrets/db WINNOW_BASE_URL=https://winnow.example.org winnow serve`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			store, closeStore, err := c.openShared(ctx, "serve")
			if err != nil {
				return err
			}
			defer closeStore()
			listener, err := listen(&c.cfg)
			if err != nil {
				return err
			}
			c.log.Info("serving", "url", c.cfg.baseURL(), "address", listener.Addr().String())
			return serve(ctx, &c.cfg, c.log, store, listener)
		},
	}
	return c.withOptions(cmd, optionsDatabase, optionsWeb, optionsLog)
}

// openShared opens the database that several processes share: the configuration
// must name it.
func (c *cli) openShared(ctx context.Context, command string) (*db.Store, func(), error) {
	if c.cfg.DatabaseURL == "" {
		return nil, nil, usagef("winnow %s needs --database-url (DATABASE_URL); to try Winnow without a database of your own, run: winnow dev", command)
	}
	return c.openStore(ctx)
}

// listen takes the port, or says how to choose another.
func listen(cfg *Config) (net.Listener, error) {
	address := net.JoinHostPort(cfg.Host, strconv.Itoa(cfg.Port))
	l, err := net.Listen("tcp", address)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, winnow.Errorf(winnow.CodeUnavailable,
			"Another program listens on %s. Stop it, or choose another port with --port (PORT).", address)
	case errors.Is(err, syscall.EACCES):
		return nil, winnow.Errorf(winnow.CodeUnavailable,
			"Listening on %s is not allowed. Choose a port above 1023 with --port (PORT).", address)
	case err != nil:
		return nil, &winnow.Error{
			Code: winnow.CodeUnavailable, Err: err,
			Message: fmt.Sprintf("Cannot listen on %s. Check --host (WINNOW_HOST) and --port (PORT).", address),
		}
	}
	// Port 0 asked for any.
	cfg.Port = l.Addr().(*net.TCPAddr).Port
	return l, nil
}

// serve answers on the listener until ctx ends.
func serve(ctx context.Context, cfg *Config, log *slog.Logger, store *db.Store, listener net.Listener) error {
	server := web.New(web.Config{
		BaseURL:       cfg.BaseURL,
		SecureCookies: cfg.secure(),
		TrustProxy:    cfg.TrustProxy,
		MaxUpload:     cfg.UploadLimit,
		Metrics:       cfg.Metrics,
	}, web.Deps{
		Log: log,
		// The store's own sweeper cannot be stopped without a race; sweepSessions is ours.
		Sessions: pgxstore.NewWithCleanupInterval(store.Pool(), 0),
		Access:   store,
		Accounts: store,
		Projects: store,
		People:   store,
		Invites:  store,
		Tokens:   store,
		Images:   store,
		Imports:  store,
		Rounds:   store,
		Labels:   store,
		Reviews:  store,
		Annotate: store,
		Grid:     store,
		Groups:   store,
		API:      store,
		Importer: uploads{jobs.NewImporter(store, imaging.DefaultLimits()), log},
		Ready:    store.Ping,
		Listen:   store.Listen,
	})
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return server.Serve(ctx, listener) })
	g.Go(func() error { sweepImports(ctx, store, log); return nil })
	g.Go(func() error { sweepSessions(ctx, store, log); return nil })
	return g.Wait()
}

// sweepSessions deletes, until ctx ends, the sessions that have expired.
func sweepSessions(ctx context.Context, store *db.Store, log *slog.Logger) {
	tick := time.NewTicker(sessionSweep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := store.DeleteExpiredSessions(ctx); err != nil && ctx.Err() == nil {
			log.Warn("cannot delete expired sessions; trying again", "error", err)
		}
	}
}

// sweepImports marks, until ctx ends, the imports whose process has died.
func sweepImports(ctx context.Context, store *db.Store, log *slog.Logger) {
	tick := time.NewTicker(deadImport)
	defer tick.Stop()
	for {
		switch n, err := store.InterruptDeadImports(ctx, deadImport); {
		case err != nil && ctx.Err() == nil:
			log.Warn("cannot look for imports left behind; trying again", "error", err)
		case n > 0:
			log.Warn("imports were cut short when their process ended; run them again", "imports", n)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
