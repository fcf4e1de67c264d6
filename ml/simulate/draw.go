package simulate

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"

	"winnow"
)

// strategyColours are of the Okabe-Ito set, in the order of winnow.Strategies;
// markers tell the lines apart in black and white.
var strategyColours = []color.NRGBA{
	{0x00, 0x72, 0xb2, 0xff},
	{0x55, 0x55, 0x55, 0xff},
	{0xd5, 0x5e, 0x00, 0xff},
	{0x00, 0x9e, 0x73, 0xff},
	{0xcc, 0x79, 0xa7, 0xff},
	{0xb8, 0x7b, 0x00, 0xff},
}

var strategyMarkers = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{},
}

// series is one line of a figure.
type series struct {
	label    string
	strategy int // index into winnow.Strategies
	dashed   bool
	x        []float64
	y        []figure
}

// level is a horizontal line that the eye compares with.
type level struct {
	label string
	y     float64
}

// draw writes accuracy.svg and precision.svg.
func (e *Experiment) draw(curves []curve) error {
	var accuracy, precision []series
	add := func(curves []curve, suffix string) {
		for _, c := range curves {
			s := series{label: c.strategy + suffix, strategy: slices.Index(winnow.Strategies, c.strategy), dashed: suffix != ""}
			a, p := s, s
			for _, q := range c.points {
				a.x, a.y = append(a.x, q.labeled()), append(a.y, q.accuracy)
				p.x, p.y = append(p.x, float64(q.round+1)), append(p.y, q.precision)
			}
			accuracy, precision = append(accuracy, a), append(precision, p)
		}
	}
	add(curves, "")
	if len(e.Compare) > 0 {
		add(summarize(e.Compare, e.Settings.Budget, 0), ", "+e.CompareLabel)
	}
	seeds := 0
	for _, c := range curves {
		seeds = max(seeds, c.seeds)
	}
	of := fmt.Sprintf("mean of %d seeds, band: ± 1 standard deviation", seeds)
	if seeds == 1 {
		of = "one seed"
	}
	if err := saveFigure(filepath.Join(e.Out, "accuracy.svg"), "Test accuracy on the known classes", of, "labeled images", "%", accuracy, nil); err != nil {
		return err
	}
	target := []level{{fmt.Sprintf("target %.2g", e.Settings.TargetPrecision), e.Settings.TargetPrecision}}
	return saveFigure(filepath.Join(e.Out, "precision.svg"), "Query precision", of, "query", "share of known classes", precision, target)
}

const (
	figureWidth  = 15 * vg.Centimeter
	figureHeight = 9 * vg.Centimeter
)

// sans is the figures' font.
func sans(size float64) font.Font {
	return font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
}

var quiet = color.Gray{Y: 0x66}

// saveFigure draws lines with their deviation as bands and their names at their ends.
func saveFigure(file, title, subtitle, xLabel, yLabel string, lines []series, levels []level) error {
	p := plot.New()
	p.Title.Text = title + "\n" + subtitle
	p.Title.TextStyle.Font = sans(10)
	p.Title.TextStyle.XAlign = draw.XCenter
	p.Title.Padding = vg.Points(8)
	p.BackgroundColor = color.White
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Label.TextStyle.Font, a.Tick.Label.Font = sans(9), sans(8)
		a.Label.TextStyle.Color, a.Tick.Label.Color = quiet, quiet
		a.LineStyle.Color, a.Tick.LineStyle.Color = quiet, quiet
		a.LineStyle.Width, a.Tick.LineStyle.Width = vg.Points(0.5), vg.Points(0.5)
		a.Padding = vg.Points(4)
	}
	p.X.Label.Text, p.Y.Label.Text = xLabel, yLabel
	p.Y.LineStyle.Width, p.Y.Tick.LineStyle.Width = 0, 0
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal = draw.LineStyle{Color: color.Gray{Y: 0xe0}, Width: vg.Points(0.5)}
	p.Add(grid)

	var ends []endLabel
	lastX := 0.0
	for _, s := range lines {
		if err := addSeries(p, s); err != nil {
			return fmt.Errorf("draw %s: %w", s.label, err)
		}
		ends = append(ends, endLabel{text: s.label, y: s.y[len(s.y)-1].mean, colour: strategyColours[s.strategy]})
		lastX = max(lastX, s.x[len(s.x)-1])
	}
	for _, l := range levels {
		line := plotter.NewFunction(func(float64) float64 { return l.y })
		line.XMin, line.XMax = p.X.Min, lastX
		line.LineStyle = draw.LineStyle{Color: quiet, Width: vg.Points(0.6), Dashes: []vg.Length{vg.Points(1), vg.Points(2)}}
		p.Add(line)
		ends = append(ends, endLabel{text: l.label, y: l.y, colour: color.NRGBA{0x66, 0x66, 0x66, 0xff}})
	}
	if p.X.Min == p.X.Max {
		p.X.Min, p.X.Max = p.X.Min-1, p.X.Max+1
	}
	if p.Y.Min == p.Y.Max {
		p.Y.Min, p.Y.Max = p.Y.Min-1, p.Y.Max+1
	}
	for _, l := range levels {
		p.Y.Min, p.Y.Max = min(p.Y.Min, l.y), max(p.Y.Max, l.y)
	}
	if err := addEndLabels(p, ends, lastX); err != nil {
		return fmt.Errorf("draw labels: %w", err)
	}
	p.X.Tick.Marker, p.Y.Tick.Marker = evenTicks(lastX), evenTicks(math.Inf(1))

	canvas, err := draw.NewFormattedCanvas(figureWidth, figureHeight, "svg")
	if err != nil {
		return fmt.Errorf("draw %s: %w", file, err)
	}
	margin := vg.Points(8)
	p.Draw(draw.Crop(draw.New(canvas), margin, -margin, margin, -margin))
	f, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("draw %s: %w", file, err)
	}
	if _, err := canvas.WriteTo(f); err != nil {
		f.Close()
		return fmt.Errorf("draw %s: %w", file, err)
	}
	return f.Close()
}

// addSeries adds a band, a line and its markers.
func addSeries(p *plot.Plot, s series) error {
	c := strategyColours[s.strategy]
	points := make(plotter.XYs, len(s.x))
	band := make(plotter.XYs, 2*len(s.x))
	wide := false
	for i, y := range s.y {
		points[i] = plotter.XY{X: s.x[i], Y: y.mean}
		band[i] = plotter.XY{X: s.x[i], Y: y.mean + y.sd}
		band[len(band)-1-i] = plotter.XY{X: s.x[i], Y: y.mean - y.sd}
		wide = wide || y.sd > 0
	}
	if wide && !s.dashed && len(points) > 1 {
		area, err := plotter.NewPolygon(band)
		if err != nil {
			return err
		}
		fill := c
		fill.A = 0x24
		area.Color, area.LineStyle.Width = fill, 0
		p.Add(area)
	}
	line, markers, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.LineStyle = draw.LineStyle{Color: c, Width: vg.Points(1.4)}
	markers.GlyphStyle = draw.GlyphStyle{Color: c, Radius: vg.Points(2.4), Shape: strategyMarkers[s.strategy]}
	if s.dashed {
		line.LineStyle.Width, line.LineStyle.Dashes = vg.Points(1), []vg.Length{vg.Points(4), vg.Points(3)}
		markers.Radius = vg.Points(1.2)
	}
	p.Add(line, markers)
	return nil
}

type endLabel struct {
	text   string
	y      float64
	colour color.NRGBA
}

// addEndLabels writes the lines' names to the right of their ends, moved apart where
// they would touch, and makes room for them.
func addEndLabels(p *plot.Plot, ends []endLabel, x float64) error {
	slices.SortStableFunc(ends, func(a, b endLabel) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	gap := 0.055 * (p.Y.Max - p.Y.Min)
	for i := 1; i < len(ends); i++ {
		ends[i].y = max(ends[i].y, ends[i-1].y+gap)
	}
	longest := 0
	var l plotter.XYLabels
	for _, e := range ends {
		l.XYs = append(l.XYs, plotter.XY{X: x, Y: e.y})
		l.Labels = append(l.Labels, e.text)
		longest = max(longest, len(e.text))
	}
	labels, err := plotter.NewLabels(l)
	if err != nil {
		return err
	}
	for i, e := range ends {
		labels.TextStyle[i] = text.Style{Color: e.colour, Font: sans(9), YAlign: draw.YCenter, Handler: p.TextHandler}
	}
	labels.Offset = vg.Point{X: vg.Points(6)}
	p.Add(labels)
	p.X.Max = max(p.X.Max, x+(x-p.X.Min)*0.02*float64(longest))
	p.Y.Max = max(p.Y.Max, ends[len(ends)-1].y)
	return nil
}

// evenTicks are ticks at about five multiples of 1, 2, 2.5 or 5 times a power of ten,
// none beyond last.
func evenTicks(last float64) plot.TickerFunc {
	return func(lo, hi float64) []plot.Tick {
		hi = min(hi, last)
		step := math.Pow(10, math.Floor(math.Log10((hi-lo)/5)))
		for _, by := range []float64{1, 2, 2.5, 5, 10} {
			if (hi-lo)/(step*by) <= 6 {
				step *= by
				break
			}
		}
		var ticks []plot.Tick
		for i := math.Ceil(lo / step); i*step <= hi+step*1e-9; i++ {
			v := i * step
			ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(math.Round(v*1e6)/1e6, 'g', -1, 64)})
		}
		return ticks
	}
}
