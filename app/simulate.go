package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"winnow"
	"winnow/ml/backend"
	"winnow/ml/simulate"
)

// simulateFlags are the flags of `winnow simulate`.
type simulateFlags struct {
	data, out, annotators, compare string
	known, strategies, seeds       []string
	initPercent                    float64
	rounds, perClass               int
	settings                       winnow.Settings
}

func (c *cli) newSimulateCommand() *cobra.Command {
	f := simulateFlags{settings: winnow.DefaultSettings()}
	f.settings.Budget, f.settings.Epochs, f.settings.Batch, f.settings.LRStep = 150, 100, 64, 30
	cmd := &cobra.Command{
		Use:   "simulate --data ZIP|DIR --known a,b,c --out DIR",
		Short: "Run the paper's experiment: strategies compared on data whose labels are known",
		Long: `Run the paper's experiment: strategies compared on data whose labels are known.

The data is a ZIP or a folder with train/<class>/ and test/<class>/, CIFAR-10 or
CIFAR-100 in their binary form, or Tiny-ImageNet. Known classes are named, or given
by their number. An oracle labels each query; with --annotators it errs as the counts
of a table say (row: true class, column: what people chose).

DIR gets rounds.jsonl (one line a round), queries.jsonl (what was labeled),
summary.csv (means and deviations over seeds; the round "all" is the mean over rounds,
the area under the accuracy curve and the ceiling of the mean precision),
accuracy.svg and precision.svg. Stopped, the same command goes on with the next round;
strategies, seeds and rounds may be added.

The defaults are a problem for a CPU. The paper's is --per-class 0 --init-percent 1
--budget 1500 --rounds 10 --epochs 200 --batch 128 --lr-step 60. Ablations: --ablation,
and --energy-weight 0 for the detector without its energy loss.`,
		Example: `  winnow simulate --data cifar10.zip --known ship,bird,horse,deer --out out/small
  winnow simulate --data cifar10.zip --known 8,2,7,4 --strategies eaoa --ablation no-eu-d --out out/no-eu-d`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd, c.cfg.Backend) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.data, "data", "", "ZIP or folder with the images")
	flags.StringSliceVar(&f.known, "known", nil, "known classes, by name or number")
	flags.StringVar(&f.out, "out", "", "folder for the results")
	flags.StringSliceVar(&f.strategies, "strategies", []string{"eaoa", "random"}, "of "+strings.Join(winnow.Strategies, ", "))
	flags.StringSliceVar(&f.seeds, "seeds", []string{"1", "2", "3"}, "one run of each strategy a seed")
	flags.IntVar(&f.rounds, "rounds", 6, "rounds of each run")
	flags.Float64Var(&f.initPercent, "init-percent", 5, "of the known classes' train images, labeled at the start")
	flags.IntVar(&f.perClass, "per-class", 500, "train images of each class, the first by name; 0 for all")
	flags.StringVar(&f.annotators, "annotators", "", "CSV of how people confuse the classes")
	flags.StringVar(&f.compare, "compare", "", "rounds.jsonl of another run, drawn dashed")
	addSettings(flags, &f.settings)
	for _, name := range []string{"data", "known", "out"} {
		if err := cmd.MarkFlagRequired(name); err != nil {
			panic(err) // the flag is defined above
		}
	}
	return c.withOptions(cmd, optionsBackend)
}

// addSettings adds a flag for each setting that an experiment may choose.
func addSettings(flags *pflag.FlagSet, s *winnow.Settings) {
	for _, setting := range s.Fields() {
		if setting.Group == "Labeling" {
			continue // the web application's: an oracle has no colleagues and keeps nothing to itself
		}
		switch setting.Name {
		case "strategy", "seed", "auto_next":
			continue // each run sets the first two; rounds follow each other as it is
		}
		help := setting.Help
		if help == "" {
			help = setting.Label
		}
		if setting.Choice != nil {
			help += " (" + strings.Join(setting.Choices, ", ") + ")"
		}
		flag := flags.VarPF(&settingFlag{setting}, strings.ReplaceAll(setting.Name, "_", "-"), "", help)
		if setting.Bool != nil {
			flag.NoOptDefVal = "true"
		}
	}
}

// settingFlag is a setting as a flag.
type settingFlag struct{ winnow.Setting }

// Type names the value in the help.
func (f *settingFlag) Type() string {
	switch {
	case f.Bool != nil:
		return "bool"
	case f.Choice != nil:
		return "name"
	case f.Float != nil:
		return "float"
	default:
		return "int"
	}
}

// run loads the data and runs the experiment.
func (f *simulateFlags) run(cmd *cobra.Command, backendName string) error {
	ctx := cmd.Context()
	e := simulate.Experiment{
		InitPercent: f.initPercent, PerClass: f.perClass, Rounds: f.rounds,
		Strategies: f.strategies, Settings: f.settings, Out: f.out,
	}
	if f.perClass < 0 {
		return winnow.Invalid("per-class", "%d is below 0.", f.perClass)
	}
	for _, s := range f.seeds {
		seed, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
		if err != nil || seed < 0 {
			return winnow.Invalid("seeds", "%q is not a whole number from 0.", s)
		}
		e.Seeds = append(e.Seeds, seed)
	}
	if err := e.Settings.Validate(); err != nil {
		return err
	}
	source, err := simulate.Open(f.data)
	if err != nil {
		return err
	}
	defer source.Close()
	e.Classes = source.Classes
	for _, name := range f.known {
		class, err := source.Class(name)
		if err != nil {
			return err
		}
		e.Known = append(e.Known, class)
	}
	if err := f.readTables(&e); err != nil {
		return err
	}
	be, err := backend.Open(backendName)
	if err != nil {
		return err
	}
	defer be.Close()

	reading := newBar(cmd.ErrOrStderr(), "Reading images")
	e.Data, err = source.Load(ctx, e.Known, f.perClass, f.settings.InputSize, func(done, total int) {
		reading.show(int64(done), int64(total))
	})
	reading.clear()
	if err != nil {
		return err
	}
	bar := newStageBar(cmd.ErrOrStderr())
	defer bar.clear()
	if err := e.Run(ctx, be, func(p simulate.Progress) {
		if p.Line != nil {
			bar.clear()
			fmt.Fprintln(cmd.OutOrStdout(), describeLine(p.Line))
			return
		}
		bar.show(p.Fraction, p.SecondsLeft, describeStage(p))
	}); err != nil {
		return err
	}
	bar.clear()
	fmt.Fprintf(cmd.OutOrStdout(), "Written to %s: rounds.jsonl, queries.jsonl, summary.csv, accuracy.svg, precision.svg\n", f.out)
	return nil
}

// readTables reads what the flags name beside the data.
func (f *simulateFlags) readTables(e *simulate.Experiment) error {
	if f.annotators != "" {
		file, err := os.Open(f.annotators)
		if err != nil {
			return &winnow.Error{Code: winnow.CodeInvalid, Field: "annotators", Message: "The table cannot be read.", Err: err}
		}
		defer file.Close()
		if e.Annotators, err = simulate.ReadConfusion(file, e.Classes); err != nil {
			return err
		}
	}
	if f.compare != "" {
		raw, err := os.ReadFile(f.compare)
		if err != nil {
			return &winnow.Error{Code: winnow.CodeInvalid, Field: "compare", Message: "The rounds cannot be read.", Err: err}
		}
		if e.Compare, err = simulate.ParseLines[simulate.Line](raw, f.compare); err != nil {
			return err
		}
		e.CompareLabel = filepath.Base(filepath.Dir(f.compare))
	}
	return nil
}

func describeLine(l *simulate.Line) string {
	return fmt.Sprintf("%-11s seed %d  round %d  %4d known + %4d unknown labeled  accuracy %5.2f%%  precision %.3f  k %g  %.0f s",
		l.Strategy, l.Seed, l.Round, l.LabeledKnown, l.LabeledUnknown, l.TestAcc, l.Precision, l.K,
		l.TrainSeconds+l.ScoreSeconds+l.QuerySeconds)
}

func describeStage(p simulate.Progress) string {
	s := fmt.Sprintf("%s seed %d round %d %s", p.Strategy, p.Seed, p.Round, p.Stage.Stage)
	if p.Stage.Epochs > 0 {
		s += fmt.Sprintf(" %s %d/%d", p.Stage.Network, p.Stage.Epoch, p.Stage.Epochs)
	}
	return s
}
