package app

import (
	"context"
	"log/slog"
	"runtime/debug"

	"github.com/spf13/cobra"

	"winnow/db"
	"winnow/jobs"
	"winnow/ml/backend"
)

func (c *cli) newWorkerCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "worker",
		Short: "Train and query rounds",
		Long: `Train and query rounds, until it is stopped. Any number of workers may share a
database: each round is led by one, which trains, and all of the same backend help to
score its pool. What a worker leaves behind when it dies, others take over.`,
		Example: `  DATABASE_URL=postgres://winnow:secret@db/winnow winnow worker
  DATABASE_URL_FILE=/run/secrets/db winnow worker --backend xla:cuda`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx := cmd.Context()
			store, closeStore, err := c.openShared(ctx, "worker")
			if err != nil {
				return err
			}
			defer closeStore()
			return work(ctx, &c.cfg, c.log, store)
		},
	}
	return c.withOptions(cmd, optionsDatabase, optionsBackend, optionsWorker, optionsLog)
}

// work trains rounds until ctx ends.
func work(ctx context.Context, cfg *Config, log *slog.Logger, store *db.Store) error {
	// Training makes garbage by the hundred megabytes; left alone, the heap grows to
	// twice what is in use before any of it is collected.
	debug.SetMemoryLimit(cfg.Memory)
	be, err := backend.Open(cfg.Backend)
	if err != nil {
		return err
	}
	defer be.Close()
	runner, err := jobs.NewRunner(store.Pool(), jobs.Options{
		Store: store, Trainer: jobs.NewTrainer(be),
		Concurrency: cfg.Rounds, RoundTimeout: cfg.RoundTimeout, Log: log,
	})
	if err != nil {
		return err
	}
	log.Info("waiting for rounds", "backend", be.Name(), "at_a_time", cfg.Rounds)
	return runner.Run(ctx)
}
