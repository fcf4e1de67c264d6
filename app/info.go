package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func (c *cli) newConfigCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print the configuration, without its secrets",
		Example: `  winnow config
  PORT=9000 winnow config`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, o := range c.cfg.options() {
				source := c.cfg.sources[o.flag]
				if source == "" {
					source = "default"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%-46s # --%s, %s\n", o.env+"="+o.value.String(), o.flag, source)
			}
			return nil
		},
	}
	return c.withOptions(cmd, optionsDatabase, optionsWeb, optionsBackend, optionsWorker, optionsDev, optionsLog)
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  winnow version",
		Args:    cobra.NoArgs,
		Run: func(cmd *cobra.Command, _ []string) {
			fmt.Fprintln(cmd.OutOrStdout(), version())
		},
	}
}

// version says what was built, from what, and with which compiler: the figures of
// a round depend on all three.
func version() string {
	v, commit, experiment := "unknown", "", ""
	if info, ok := debug.ReadBuildInfo(); ok {
		v = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				commit = " " + s.Value[:min(12, len(s.Value))]
			case "GOEXPERIMENT":
				experiment = " " + s.Value
			}
		}
	}
	return fmt.Sprintf("winnow %s%s %s %s/%s%s", v, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH, experiment)
}

func newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:       "completion bash|zsh|fish|powershell",
		Short:     "Print the completion script of a shell",
		Example:   "  winnow completion bash > /etc/bash_completion.d/winnow",
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(cmd *cobra.Command, args []string) error {
			root, out := cmd.Root(), cmd.OutOrStdout()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(out, true)
			case "zsh":
				return root.GenZshCompletion(out)
			case "fish":
				return root.GenFishCompletion(out, true)
			default:
				return root.GenPowerShellCompletionWithDesc(out)
			}
		},
	}
}
