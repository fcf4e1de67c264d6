package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"winnow"
	"winnow/app/demo"
)

func (c *cli) newSeedCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "seed",
		Short:   "Make example data",
		Example: "  winnow seed demo",
	}
	cmd.AddCommand(c.newSeedDemoCommand())
	return cmd
}

func (c *cli) newSeedDemoCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Make the demo project",
		Long: `Make the demo project: 2,000 small pictures of fourteen things, four of which the
project asks for, 400 more for tests, 40 labels to begin with, and a first round that
waits for a worker. What is there already stays as it is.`,
		Example: "  winnow seed demo",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, closeStore, err := c.openStore(cmd.Context())
			if err != nil {
				return err
			}
			defer closeStore()
			bar := newBar(c.stderr, "demo images")
			p, err := demo.Seed(cmd.Context(), store, 0, func(i winnow.Import) { bar.show(i.Done, i.Total) })
			bar.clear()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The project %q is ready, number %d.\n", p.Name, p.ID)
			return nil
		},
	}
	return c.withOptions(cmd, optionsDatabase, optionsLog)
}
