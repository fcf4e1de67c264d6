package simulate

import (
	"cmp"
	"encoding/csv"
	"io"
	"math"
	"slices"
	"strconv"

	"winnow"
)

// figure is a mean over seeds and its deviation (of a sample; 0 for one seed).
type figure struct{ mean, sd float64 }

func figureOf(values []float64) figure {
	var f figure
	for _, v := range values {
		f.mean += v / float64(len(values))
	}
	if len(values) > 1 {
		for _, v := range values {
			f.sd += (v - f.mean) * (v - f.mean)
		}
		f.sd = math.Sqrt(f.sd / float64(len(values)-1))
	}
	return f
}

// point is one round of one strategy over all seeds.
type point struct {
	round                        int
	seeds                        int
	labeledKnown, labeledUnknown float64
	accuracy, precision, k       figure
	ceiling                      float64 // of the mean precision up to and with this round
}

func (p point) labeled() float64 { return p.labeledKnown + p.labeledUnknown }

// curve is one strategy over all seeds.
type curve struct {
	strategy  string
	points    []point
	seeds     int
	accuracy  figure // mean over rounds
	area      figure // under the accuracy curve over labels, divided by its width: percent
	precision figure // mean over rounds
	ceiling   float64
}

// summarize groups lines by strategy, in the order of winnow.Strategies. knowns is
// how many images of known classes the pool began with: no strategy finds more, which
// is the ceiling of its mean precision.
func summarize(lines []Line, budget, knowns int) []curve {
	var curves []curve
	for _, strategy := range winnow.Strategies {
		runs := make(map[int64][]Line)
		rounds := make(map[int][]Line)
		last := 0
		for _, l := range lines {
			if l.Strategy == strategy {
				runs[l.Seed] = append(runs[l.Seed], l)
				rounds[l.Round] = append(rounds[l.Round], l)
				last = max(last, l.Round)
			}
		}
		if len(runs) == 0 {
			continue
		}
		ceiling := func(rounds int) float64 {
			if asked := budget * rounds; asked > knowns {
				return float64(knowns) / float64(asked)
			}
			return 1
		}
		c := curve{strategy: strategy, seeds: len(runs), ceiling: ceiling(last + 1)}
		for r := range last + 1 {
			if ls := rounds[r]; len(ls) > 0 {
				c.points = append(c.points, point{
					round: r, seeds: len(ls), ceiling: ceiling(r + 1),
					labeledKnown:   figureOf(values(ls, func(l Line) float64 { return float64(l.LabeledKnown) })).mean,
					labeledUnknown: figureOf(values(ls, func(l Line) float64 { return float64(l.LabeledUnknown) })).mean,
					accuracy:       figureOf(values(ls, func(l Line) float64 { return l.TestAcc })),
					precision:      figureOf(values(ls, func(l Line) float64 { return l.Precision })),
					k:              figureOf(values(ls, func(l Line) float64 { return l.K })),
				})
			}
		}
		var accuracy, precision, areas []float64
		for _, run := range runs {
			accuracy = append(accuracy, figureOf(values(run, func(l Line) float64 { return l.TestAcc })).mean)
			precision = append(precision, figureOf(values(run, func(l Line) float64 { return l.Precision })).mean)
			areas = append(areas, area(run))
		}
		slices.Sort(accuracy) // maps have no order, and sums feel it
		slices.Sort(precision)
		slices.Sort(areas)
		c.accuracy, c.precision, c.area = figureOf(accuracy), figureOf(precision), figureOf(areas)
		curves = append(curves, c)
	}
	return curves
}

func values(lines []Line, of func(Line) float64) []float64 {
	out := make([]float64, len(lines))
	for i, l := range lines {
		out[i] = of(l)
	}
	return out
}

// area is the area under a run's accuracy over the number of labels, by trapezoids,
// divided by the width: the mean height of the curve.
func area(run []Line) float64 {
	run = slices.Clone(run)
	slices.SortFunc(run, func(a, b Line) int { return cmp.Compare(a.Round, b.Round) })
	labeled := func(l Line) float64 { return float64(l.LabeledKnown + l.LabeledUnknown) }
	width := labeled(run[len(run)-1]) - labeled(run[0])
	if width <= 0 {
		return run[0].TestAcc
	}
	sum := 0.0
	for i := 1; i < len(run); i++ {
		sum += (labeled(run[i]) - labeled(run[i-1])) * (run[i].TestAcc + run[i-1].TestAcc) / 2
	}
	return sum / width
}

// writeSummary writes one row for each strategy and round, and one for each strategy
// over all rounds (round "all").
func writeSummary(w io.Writer, curves []curve) error {
	out := csv.NewWriter(w)
	rows := [][]string{{
		"strategy", "round", "seeds", "labeled_known", "labeled_unknown", "test_acc_mean", "test_acc_sd",
		"accuracy_area_mean", "accuracy_area_sd", "precision_mean", "precision_sd", "precision_ceiling", "k_mean",
	}}
	f := func(v float64, decimals int) string { return strconv.FormatFloat(v, 'f', decimals, 64) }
	for _, c := range curves {
		for _, p := range c.points {
			rows = append(rows, []string{
				c.strategy, strconv.Itoa(p.round), strconv.Itoa(p.seeds), f(p.labeledKnown, 1), f(p.labeledUnknown, 1),
				f(p.accuracy.mean, 2), f(p.accuracy.sd, 2), "", "",
				f(p.precision.mean, 4), f(p.precision.sd, 4), f(p.ceiling, 4), f(p.k.mean, 2),
			})
		}
		rows = append(rows, []string{
			c.strategy, "all", strconv.Itoa(c.seeds), "", "", f(c.accuracy.mean, 2), f(c.accuracy.sd, 2),
			f(c.area.mean, 2), f(c.area.sd, 2), f(c.precision.mean, 4), f(c.precision.sd, 4), f(c.ceiling, 4), "",
		})
	}
	if err := out.WriteAll(rows); err != nil {
		return err
	}
	return out.Error()
}
