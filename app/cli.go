package app

import (
	"errors"
	"fmt"
	"io"
	"log/slog"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// cli is what the commands of one invocation share.
type cli struct {
	getenv  func(string) string
	stderr  io.Writer
	cfg     Config       // complete and valid once a command's RunE is called
	log     *slog.Logger // as cfg says
	started bool         // the command line was understood; later errors are failures
}

func (c *cli) newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "winnow",
		Short: "Label images when the pool also holds classes nobody asked for",
		Long: `Winnow trains on what people have labeled, picks the images worth their time,
and keeps apart what nobody asked for.

Every flag of a command can be given as the environment variable beside it.`,
		Example: `  winnow dev                     try it: everything in one process, with a demo project
  winnow serve                   the web server
  winnow worker                  trains and queries; run as many as you have GPUs`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return c.flagError(err) })
	root.AddGroup(
		&cobra.Group{ID: groupRun, Title: "Run:"},
		&cobra.Group{ID: groupData, Title: "Data:"},
		&cobra.Group{ID: groupAdmin, Title: "Administer:"},
		&cobra.Group{ID: groupMethod, Title: "Method:"},
	)
	for _, g := range c.commands() {
		for _, cmd := range g.commands {
			cmd.GroupID = g.id
			root.AddCommand(cmd)
		}
	}
	root.SetHelpCommand(&cobra.Command{Hidden: true})
	c.prepare(root)
	return root
}

// The groups under which `winnow --help` lists the commands.
const (
	groupRun    = "run"
	groupData   = "data"
	groupAdmin  = "admin"
	groupMethod = "method"
)

type commandGroup struct {
	id       string
	commands []*cobra.Command
}

func (c *cli) commands() []commandGroup {
	return []commandGroup{
		{groupRun, []*cobra.Command{c.newDevCommand(), c.newServeCommand(), c.newWorkerCommand(), c.newHealthcheckCommand()}},
		{groupData, []*cobra.Command{c.newImportCommand(), c.newExportCommand(), c.newSeedCommand()}},
		{groupAdmin, []*cobra.Command{
			c.newMigrateCommand(), c.newUserCommand(), c.newTokenCommand(),
			c.newBackendCommand(), c.newConfigCommand(), newVersionCommand(), newCompletionCommand(),
		}},
		{groupMethod, []*cobra.Command{c.newSimulateCommand(), newSelectCommand()}},
	}
}

// prepare makes every command below cmd read the configuration that it has flags
// for before it runs.
func (c *cli) prepare(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		c.prepare(sub)
	}
	if run := cmd.Run; run != nil {
		cmd.Run, cmd.RunE = nil, func(cmd *cobra.Command, args []string) error { run(cmd, args); return nil }
	}
	if cmd.RunE == nil {
		// A command that only has others below it.
		cmd.Args = cobra.NoArgs
		cmd.RunE = func(cmd *cobra.Command, _ []string) error {
			return usagef("%q needs one of its commands", cmd.CommandPath())
		}
	}
	runE := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := c.loadEnvironment(cmd.Flags()); err != nil {
			return err
		}
		c.log = newLogger(c.stderr, c.cfg.LogLevel, c.cfg.LogFormat)
		c.started = true
		return runE(cmd, args)
	}
}

// withOptions adds the flags of the option groups to cmd.
func (c *cli) withOptions(cmd *cobra.Command, groups ...optionGroup) *cobra.Command {
	for _, o := range c.cfg.options() {
		for _, g := range groups {
			if o.group == g {
				cmd.Flags().Var(o.value, o.flag, fmt.Sprintf("%s (%s)", o.help, o.env))
			}
		}
	}
	return cmd
}

// loadEnvironment takes from the environment what the flags did not say, for the
// options that the command has, and checks the whole.
func (c *cli) loadEnvironment(flags *pflag.FlagSet) error {
	for _, o := range c.cfg.options() {
		f := flags.Lookup(o.flag)
		if f == nil {
			continue
		}
		if f.Changed {
			c.cfg.sources[o.flag] = "flag"
			continue
		}
		if err := o.fromEnvironment(c.getenv, &c.cfg); err != nil {
			return err
		}
	}
	return nil
}

// flagError words a mistake in a flag like one in its environment variable.
func (c *cli) flagError(err error) error {
	var bad *pflag.InvalidValueError
	if !errors.As(err, &bad) {
		return err
	}
	for _, o := range c.cfg.options() {
		if o.flag == bad.GetFlag().Name {
			return o.invalid(bad.GetValue(), errors.Unwrap(bad))
		}
	}
	return err
}
