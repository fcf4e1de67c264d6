package app

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"winnow/ml/backend"
)

func (c *cli) newBackendCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backend",
		Short: "Show, install or time what trains the networks",
		Example: `  winnow backend list
  winnow backend install xla:cpu`,
	}
	list := c.withOptions(&cobra.Command{
		Use:   "list",
		Short: "Say which compute backends are here, and which is in use",
		Example: `  winnow backend list
  WINNOW_BACKEND=xla:cuda winnow backend list`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tPRESENT\tIN USE\tWHAT IT IS")
			listed := false
			for _, b := range backend.List() {
				inUse := b.Name == c.cfg.Backend
				listed = listed || inUse
				what := b.Description
				if b.Version != "" {
					what += ", version " + b.Version
				}
				if !b.Present {
					what += ". " + b.Remedy
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", b.Name, yesNo(b.Present), yesNo(inUse), what)
			}
			if !listed {
				fmt.Fprintf(w, "%s\t?\tyes\tfrom the configuration\n", c.cfg.Backend)
			}
			return w.Flush()
		},
	}, optionsBackend)
	install := &cobra.Command{
		Use:   "install NAME",
		Short: "Download what a backend needs: xla:cpu, xla:cuda or onnx",
		Long: `Download what a backend needs: xla:cpu, xla:cuda or onnx.

The program must have been built with the backend (-tags xla, -tags onnx). Where there
is no network, name the library instead: --backend xla:/path/to/plugin.so or
onnx:/path/to/libonnxruntime.so, or set ONNXRUNTIME_SHARED_LIBRARY_PATH. The npm package
onnxruntime-node holds one; docs/gpu.md has the steps.`,
		Example: "  winnow backend install xla:cuda",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return backend.Install(cmd.Context(), args[0], cmd.ErrOrStderr())
		},
	}
	cmd.AddCommand(list, install, c.newBackendBenchCommand())
	return cmd
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
