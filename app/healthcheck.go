package app

import (
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"winnow"
)

func (c *cli) newHealthcheckCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the server on this machine whether it can do its work",
		Long: `Ask the server on this machine whether it can do its work: it answers and its
database does. The exit code is 0 if so and 1 if not, as containers want it.`,
		Example: "  PORT=8080 winnow healthcheck",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			local := Config{Host: c.cfg.Host, Port: c.cfg.Port}
			url := local.baseURL() + "/readyz"
			req, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			client := http.Client{Timeout: 5 * time.Second}
			resp, err := client.Do(req)
			if err != nil {
				return &winnow.Error{Code: winnow.CodeUnavailable, Message: "The server does not answer.", Err: err}
			}
			defer resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				return winnow.Errorf(winnow.CodeUnavailable, "%s answers %s.", url, resp.Status)
			}
			fmt.Fprintln(cmd.OutOrStdout(), "healthy")
			return nil
		},
	}
	return c.withOptions(cmd, optionsWeb)
}
