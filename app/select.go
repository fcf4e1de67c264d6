package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"winnow"
	"winnow/ml/eaoa"
	"winnow/ml/npy"
)

// selectFlags are the flags of `winnow select`.
type selectFlags struct {
	dir     string
	classes int
	round   int
	options eaoa.Options
}

func newSelectCommand() *cobra.Command {
	d := winnow.DefaultSettings()
	var f selectFlags
	cmd := &cobra.Command{
		Use:   "select --case DIR",
		Short: "Query with EAOA from logits and features that another program computed",
		Long: `Query with EAOA from logits and features that another program computed.

DIR holds little-endian .npy files in C order: detector_logits (N x C+1, the last
column is the unknown class), detector_features (N x d), classifier_logits (N x C),
labeled_features (M x d, the detector's) and labels (M integers: 0 to C-1, or C for
unknown). A case.json beside them may set classes, budget, k, neighbours and round;
flags win over it.

A budget larger than the pool queries the whole pool; more neighbours than the pool
has images count them all; a class without a labeled example sends no arrows. Each
is said on the standard error. Round 0 means that no unknown is labeled yet; without
--round and case.json it is taken from the labels.`,
		Example: `  winnow select --case ./round3 --budget 1500 --k 5
  winnow select --case ./round3 --variant global | jq .selected`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			in, err := f.load(cmd)
			if err != nil {
				return err
			}
			f.note(cmd.ErrOrStderr(), in)
			r, err := eaoa.Query(cmd.Context(), in, f.options)
			if err != nil {
				return fmt.Errorf("select: %w", err)
			}
			return writeSelection(cmd.OutOrStdout(), r)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.dir, "case", "", "folder with the .npy files")
	flags.IntVar(&f.classes, "classes", 0, "known classes, C (default: the columns of classifier_logits)")
	flags.IntVar(&f.round, "round", 0, "number of the round; 0 while no unknown is labeled")
	flags.IntVar(&f.options.Budget, "budget", d.Budget, "images to select, b")
	flags.IntVar(&f.options.Neighbours, "neighbours", d.Neighbours, "pool images each labeled one points at, K")
	flags.Float64Var(&f.options.K, "k", d.K, "candidates for each image selected")
	flags.StringVar(&f.options.Variant, "variant", d.Variant, "per-class or global")
	flags.StringVar(&f.options.EUD, "eu-d", d.EUD, "data-driven score: reference, paper or smoothed")
	flags.StringVar(&f.options.Ablation, "ablation", d.Ablation, "leave out a part: none, no-eu-d, eu-only or au-only")
	flags.BoolVar(&f.options.Monotone, "monotone", d.Monotone, "make posteriors monotone in their scores")
	flags.Int64Var(&f.options.Seed, "seed", d.Seed, "of the random drop when the classes' shares exceed the budget")
	if err := cmd.MarkFlagRequired("case"); err != nil {
		panic(err) // the flag is defined above
	}
	return cmd
}

// load reads the case, and what its case.json says where no flag does.
func (f *selectFlags) load(cmd *cobra.Command) (eaoa.Input, error) {
	var in eaoa.Input
	if info, err := os.Stat(f.dir); err != nil || !info.IsDir() {
		return in, winnow.Invalid("case", "%q is not a folder.", f.dir)
	}
	for _, m := range []struct {
		name string
		to   *eaoa.Matrix
	}{
		{"detector_logits", &in.DetectorLogits},
		{"detector_features", &in.DetectorFeatures},
		{"classifier_logits", &in.ClassifierLogits},
		{"labeled_features", &in.LabeledFeatures},
	} {
		a, err := readArray[float32](f.dir, m.name, 2)
		if err != nil {
			return in, err
		}
		*m.to = eaoa.Matrix{Rows: a.Shape[0], Cols: a.Shape[1], Data: a.Data}
	}
	labels, err := readArray[int64](f.dir, "labels", 1)
	if err != nil {
		return in, err
	}
	for _, l := range labels.Data {
		in.Labels = append(in.Labels, int(l))
	}

	given := cmd.Flags().Changed
	if !given("classes") {
		f.classes = in.ClassifierLogits.Cols
	}
	if !given("round") && slices.Contains(in.Labels, f.classes) {
		f.round = 1
	}
	if err := f.readCase(given); err != nil {
		return in, err
	}
	if f.round < 0 {
		return in, winnow.Invalid("round", "%d is not the number of a round.", f.round)
	}
	in.Classes, in.Round = f.classes, f.round
	return in, nil
}

// readCase takes from case.json what no flag gave. There may be none.
func (f *selectFlags) readCase(given func(flag string) bool) error {
	raw, err := os.ReadFile(filepath.Join(f.dir, "case.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the case: %w", err)
	}
	var c struct {
		Classes, Budget, Neighbours, Round *int
		K                                  *float64
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return &winnow.Error{Code: winnow.CodeInvalid, Field: "case.json", Message: "It is not the JSON of a case.", Err: err}
	}
	for flag, v := range map[string]struct{ from, to *int }{
		"classes": {c.Classes, &f.classes}, "budget": {c.Budget, &f.options.Budget},
		"neighbours": {c.Neighbours, &f.options.Neighbours}, "round": {c.Round, &f.round},
	} {
		if v.from != nil && !given(flag) {
			*v.to = *v.from
		}
	}
	if c.K != nil && !given("k") {
		f.options.K = *c.K
	}
	return nil
}

// note says on w where the input asks for more than there is.
func (f *selectFlags) note(w io.Writer, in eaoa.Input) {
	n := in.ClassifierLogits.Rows
	if f.options.Budget > n {
		fmt.Fprintf(w, "winnow: the budget of %d is larger than the pool: all %d images are selected\n", f.options.Budget, n)
	}
	if f.options.Neighbours > n {
		fmt.Fprintf(w, "winnow: %d neighbours are more than the pool has: %d are used\n", f.options.Neighbours, n)
	}
	for c := range in.Classes {
		if !slices.Contains(in.Labels, c) {
			fmt.Fprintf(w, "winnow: class %d has no labeled example: it sends no arrows\n", c)
		}
	}
	if in.Round == 0 && slices.Contains(in.Labels, in.Classes) {
		fmt.Fprintf(w, "winnow: in round 0 the labeled unknowns do not count in the data-driven score\n")
	}
}

func readArray[T npy.Number](dir, name string, dims int) (*npy.Array[T], error) {
	a, err := npy.ReadFile[T](filepath.Join(dir, name+".npy"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, winnow.Invalid(name, "There is no %s.npy in %s.", name, dir)
	}
	if err != nil {
		return nil, &winnow.Error{Code: winnow.CodeInvalid, Field: name, Message: "The array cannot be read.", Err: err}
	}
	if len(a.Shape) != dims {
		return nil, winnow.Invalid(name, "The array has %d dimensions; expected %d.", len(a.Shape), dims)
	}
	return a, nil
}

// selection is what `winnow select` prints.
type selection struct {
	Selected []int      `json:"selected"`
	EUL      *scoreJSON `json:"eu_l,omitempty"`
	EUD      *scoreJSON `json:"eu_d,omitempty"`
	AU       *scoreJSON `json:"au,omitempty"`
}

type scoreJSON struct {
	Scaled    []float64 `json:"scaled"`
	Posterior []float64 `json:"posterior"`
	Means     []float64 `json:"means"`
	Variances []float64 `json:"variances"`
	Weights   []float64 `json:"weights"`
}

func writeSelection(w io.Writer, r *eaoa.Result) error {
	score := func(s *eaoa.Score) *scoreJSON {
		if s == nil {
			return nil
		}
		m := s.Mixture
		return &scoreJSON{s.Scaled, s.Posterior, m.Means[:], m.Variances[:], m.Weights[:]}
	}
	return json.NewEncoder(w).Encode(selection{r.Selected, score(r.EUL), score(r.EUD), score(r.AU)})
}
