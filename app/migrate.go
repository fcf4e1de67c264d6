package app

import (
	"fmt"

	"github.com/spf13/cobra"

	"winnow/db"
)

func (c *cli) newMigrateCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the database's schema up to date",
		Example: `  winnow migrate status
  winnow migrate up`,
	}
	up := &cobra.Command{
		Use:     "up",
		Short:   "Apply the migrations that the database lacks",
		Example: "  winnow migrate up",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			databaseURL, stop, err := c.startDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			before, _, err := db.MigrationStatus(cmd.Context(), databaseURL)
			if err != nil {
				return unreachable(databaseURL, err)
			}
			if err := db.Migrate(cmd.Context(), databaseURL); err != nil {
				return unreachable(databaseURL, err)
			}
			after, _, err := db.MigrationStatus(cmd.Context(), databaseURL)
			if err != nil {
				return unreachable(databaseURL, err)
			}
			if before == after {
				fmt.Fprintf(cmd.OutOrStdout(), "The schema is up to date: version %d.\n", after)
			} else {
				fmt.Fprintf(cmd.OutOrStdout(), "The schema went from version %d to %d.\n", before, after)
			}
			return nil
		},
	}
	status := &cobra.Command{
		Use:     "status",
		Short:   "Say which schema the database has, and which this program needs",
		Long:    "Say which schema the database has, and which this program needs.\nThe exit code is 1 if they differ.",
		Example: "  winnow migrate status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			databaseURL, stop, err := c.startDatabase(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			current, target, err := db.MigrationStatus(cmd.Context(), databaseURL)
			if err != nil {
				return unreachable(databaseURL, err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The database has schema version %d; this program needs %d.\n", current, target)
			if current != target {
				return schemaMismatch(current, target)
			}
			return nil
		},
	}
	for _, sub := range []*cobra.Command{up, status} {
		cmd.AddCommand(c.withOptions(sub, optionsDatabase, optionsLog))
	}
	return cmd
}
