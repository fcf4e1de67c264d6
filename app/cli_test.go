package app

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Every command must say what it is for and show how it is called.
func TestCommandsHaveExamples(t *testing.T) {
	t.Parallel()
	e := env{}
	c := &cli{getenv: e.get, cfg: newConfig(e.get)}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: Short is %q, want a sentence without its full stop", cmd.CommandPath(), cmd.Short)
		}
		if !strings.HasPrefix(cmd.Example, "  ") || !strings.Contains(cmd.Example, cmd.CommandPath()) {
			t.Errorf("%s: Example is %q, want the command, indented by two blanks", cmd.CommandPath(), cmd.Example)
		}
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(c.newRootCommand())
}

func TestExitCodes(t *testing.T) {
	t.Parallel()
	tests := []struct {
		args []string
		code int
	}{
		{nil, exitDone},
		{[]string{"--help"}, exitDone},
		{[]string{"version"}, exitDone},
		{[]string{"completion", "zsh"}, exitDone},
		{[]string{"completion", "tcsh"}, exitUsage},
		{[]string{"nonsense"}, exitUsage},
		{[]string{"version", "--nonsense"}, exitUsage},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			t.Parallel()
			code, _, stderr := runWinnow(t, nil, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d: %s", code, tt.code, stderr)
			}
			if (code == exitDone) != (stderr == "") {
				t.Errorf("exit code %d with standard error %q", code, stderr)
			}
		})
	}
}
