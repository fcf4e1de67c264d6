package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"winnow"
	"winnow/app/demo"
	"winnow/db"
	"winnow/db/local"
)

const (
	// devAdmin is who the sign-in link of winnow dev signs in.
	devAdmin = "admin@localhost"

	devLinkLife = 15 * time.Minute
)

func (c *cli) newDevCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run everything in one process, with a database of its own and a demo project",
		Long: `Run everything in one process: a private Postgres in the data directory (unless
DATABASE_URL names one), the web server, a worker, and a demo project. Prints where
to sign in. Ctrl-C stops all of it; the next start has all the data.`,
		Example: `  winnow dev
  winnow dev --port 9000 --data-dir ./data --demo=false`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.dev(cmd.Context(), cmd.OutOrStdout())
		},
	}
	return c.withOptions(cmd, optionsDatabase, optionsWeb, optionsBackend, optionsWorker, optionsDev, optionsLog)
}

func (c *cli) dev(ctx context.Context, out io.Writer) error {
	unlock, err := lockDataDir(c.cfg.DataDir)
	if err != nil {
		return err
	}
	defer unlock()
	// The port first: it is what most often goes wrong, and costs nothing to try.
	listener, err := listen(&c.cfg)
	if err != nil {
		return err
	}
	defer listener.Close()

	databaseURL, stopDatabase, err := c.startDatabase(ctx)
	if err != nil {
		return err
	}
	defer stopDatabase()
	if err := db.Migrate(ctx, databaseURL); err != nil {
		return unreachable(databaseURL, err)
	}
	store, err := c.connect(ctx, databaseURL)
	if err != nil {
		return err
	}
	defer store.Close()
	if c.cfg.DatabaseURL == "" {
		// Nobody else works on the private database: what is in training was left
		// behind by a process that was killed.
		if _, err := store.RequeueStaleRounds(ctx, 0); err != nil {
			return err
		}
	}
	admin, err := ensureAdmin(ctx, store)
	if err != nil {
		return err
	}
	link, err := signInLink(ctx, store, c.cfg.baseURL(), admin, devLinkLife)
	if err != nil {
		return err
	}
	seed, err := c.wantsDemo(ctx, store, admin)
	if err != nil {
		return err
	}
	c.banner(out, link, seed)
	err = c.runDev(ctx, store, listener, admin, seed)
	fmt.Fprintln(out, "Stopped. All data is kept.")
	return err
}

// runDev runs the server, the worker and perhaps the making of the demo project,
// until ctx ends or one of the first two fails.
func (c *cli) runDev(ctx context.Context, store *db.Store, listener net.Listener, admin winnow.UserID, seed bool) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(ctx, &c.cfg, c.log, store, listener) })
	g.Go(func() error { return work(ctx, &c.cfg, c.log, store) })
	if seed {
		g.Go(func() error { c.seedDemo(ctx, store, admin); return nil })
	}
	return g.Wait()
}

// wantsDemo reports whether the demo project is to be made: there is no project, or
// only a demo project whose making was interrupted before its first round.
func (c *cli) wantsDemo(ctx context.Context, store *db.Store, admin winnow.UserID) (bool, error) {
	if !c.cfg.Demo {
		return false, nil
	}
	projects, _, err := store.Projects(ctx, winnow.User{ID: admin, SiteAdmin: true}, winnow.Page{Limit: 2})
	if err != nil {
		return false, err
	}
	return len(projects) == 0 ||
		len(projects) == 1 && projects[0].Name == demo.ProjectName && projects[0].Latest == nil, nil
}

// seedDemo makes the demo project beside the server. If that fails, everything else
// goes on.
func (c *cli) seedDemo(ctx context.Context, store *db.Store, admin winnow.UserID) {
	start := time.Now()
	switch p, err := demo.Seed(ctx, store, admin, nil); {
	case ctx.Err() != nil:
		c.log.Info("the demo project is not finished; the next start goes on with it")
	case err != nil:
		c.log.Error("cannot make the demo project", "error", err)
	default:
		c.log.Info("demo project made, its first round begins", "project", p.ID, "seconds", time.Since(start).Round(100*time.Millisecond).Seconds())
	}
}

func (c *cli) banner(out io.Writer, link string, seed bool) {
	fmt.Fprintf(out, `
  Winnow is running.

  Open      %s
  Sign in   %s
            (works once, within %d minutes; a restart prints a new one)
  Data      %s
  Stop      Ctrl-C
`, c.cfg.baseURL(), link, int(devLinkLife.Minutes()), c.dataPlace())
	if seed {
		fmt.Fprintln(out, "\n  The demo project is being made; its first images to label come in about a minute.")
	}
	fmt.Fprintln(out)
}

// dataPlace says where the data is kept.
func (c *cli) dataPlace() string {
	if c.cfg.DatabaseURL != "" {
		return redactDatabaseURL(c.cfg.DatabaseURL)
	}
	return c.cfg.DataDir
}

// ensureAdmin returns the site admin of winnow dev, made at the first start.
func ensureAdmin(ctx context.Context, store *db.Store) (winnow.UserID, error) {
	u, _, err := store.UserByEmail(ctx, devAdmin)
	if err == nil {
		return u.ID, nil
	}
	if winnow.ErrorCode(err) != winnow.CodeNotFound {
		return 0, err
	}
	return store.CreateUser(ctx, winnow.User{Email: devAdmin, Name: "Admin", SiteAdmin: true}, "")
}

// lockDataDir makes sure that one winnow dev uses the directory.
func lockDataDir(dir string) (unlock func(), err error) {
	if err := makeDataDir(dir); err != nil {
		return nil, err
	}
	lock, err := local.TryLock(filepath.Join(dir, "dev.lock"))
	if err != nil {
		return nil, err
	}
	if lock == nil {
		return nil, winnow.Errorf(winnow.CodeConflict,
			"Another winnow dev uses the data directory %s. Stop it, or choose another one with --data-dir (WINNOW_DATA_DIR).", dir)
	}
	return lock.Release, nil
}

// makeDataDir makes the data directory. Others may pass through it: Postgres may have
// a user of its own. What Postgres keeps is closed to everybody else.
func makeDataDir(dir string) error {
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = probe(dir)
	}
	if err != nil {
		return &winnow.Error{
			Code: winnow.CodeInvalid, Err: err,
			Message: fmt.Sprintf("Cannot write to the data directory %s. Choose another one with --data-dir (WINNOW_DATA_DIR).", dir),
		}
	}
	return nil
}

// probe writes a file and removes it.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
