package chart_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow/views/chart"
)

var update = flag.Bool("update", false, "write the golden files anew")

func interval(round, known, n int) chart.Point {
	low, high := chart.Wilson(known, n)
	return chart.Point{Round: round, Value: float64(known) / float64(n), Band: true, Low: low, High: high}
}

// rightmost is about where the text that begins furthest right ends, in the larger
// letters of small screens.
func rightmost(t *testing.T, svg string) float64 {
	t.Helper()
	const letter = 15 * .57
	most := 0.0
	for _, m := range regexp.MustCompile(`<text[^>]* x="([0-9.]+)"[^>]* text-anchor="start">([^<]*)<`).FindAllStringSubmatch(svg, -1) {
		x, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, x+letter*float64(len(m[2])))
	}
	return most
}

func TestCharts(t *testing.T) {
	t.Parallel()
	points := []chart.Point{interval(0, 38, 100), interval(1, 51, 100), interval(2, 66, 100)}
	long := make([]chart.Point, 40)
	for i := range long {
		long[i] = interval(i, 50+i, 100)
	}
	for name, svg := range map[string]string{
		"precision":       chart.Precision(points, nil, .6),
		"precision-one":   chart.Precision(points[:1], nil, .6),
		"precision-none":  chart.Precision(nil, nil, .6),
		"precision-long":  chart.Precision(long, nil, .6),
		"precision-equal": chart.Precision([]chart.Point{interval(0, 60, 100)}, nil, .6),
		"precision-audit": chart.Precision(points, []chart.Point{interval(1, 2, 5), interval(2, 1, 5), interval(7, 1, 5)}, .6),
		"standings": chart.Standings("Gold accuracy", []chart.Standing{
			{"ann", .95, .84, .99, "95.0% of 60"}, {"somebody with a name <&> long", .5, .09, .91, "1 of 2"},
		}),
		"standings-none": chart.Standings("Gold accuracy", nil),
		"days":           chart.Days("Labels", []chart.Day{{"1 Mar", 120}, {"2 Mar", 0}, {"3 Mar", 340}}),
		"days-none":      chart.Days("Labels", nil),
		"accuracy":       chart.Accuracy([]chart.Point{{Round: 0, Value: .504}, {Round: 1, Value: .541}, {Round: 2, Value: .644}}),
		"accuracy-none":  chart.Accuracy(nil),
		"accuracy-full":  chart.Accuracy([]chart.Point{{Round: 3, Value: 1}}),
		"outcomes":       chart.Outcomes([]chart.Outcome{{0, 38, 62, 0, 0}, {1, 51, 47, 1, 1}}),
		"outcomes-none":  chart.Outcomes(nil),
		"loss":           chart.Loss([]chart.Curve{{"detector", []float64{2.3, 1.2, .8}}, {"classifier", []float64{1.9, math.NaN(), .4}}}),
		"loss-none":      chart.Loss(nil),
		"bar":            chart.Bar([]chart.Part{{30, "bar-known", "known"}, {70, "bar-unknown", `<"unknown">`}}),
		"bar-none":       chart.Bar(nil),
		"meter":          chart.Meter(.25),
		"meter-over":     chart.Meter(7),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wellFormed(t, svg)
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("a coordinate is not a number: %s", svg)
			}
			if x := rightmost(t, svg); x > 480 {
				t.Errorf("a label reaches to %.0f of 480: it is cut off", x)
			}
			if strings.Contains(svg, "style=") {
				t.Error("style attributes are forbidden by the content security policy")
			}
			path := filepath.Join("testdata", name+".svg")
			if *update {
				if err := os.WriteFile(path, []byte(svg+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.TrimSpace(string(want)), svg); diff != "" {
				t.Errorf("differs from %s (-want +got); run with -update if that is right:\n%s", path, diff)
			}
		})
	}
}

func wellFormed(t *testing.T, svg string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	for {
		if _, err := d.Token(); err != nil {
			if errors.Is(err, io.EOF) {
				return
			}
			t.Fatalf("not well-formed: %v\n%s", err, svg)
		}
	}
}

// The expected values were computed apart, from the textbook's formula.
func TestWilson(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		k, n      int
		low, high float64
	}{
		{0, 0, 0, 1},
		{0, 10, 0, 0.2775328},
		{5, 10, 0.2365931, 0.7634069},
		{71, 100, 0.6145, 0.7899},
		{10, 10, 0.7224672, 1},
	} {
		low, high := chart.Wilson(tc.k, tc.n)
		if math.Abs(low-tc.low) > 2e-4 || math.Abs(high-tc.high) > 2e-4 {
			t.Errorf("Wilson(%d, %d) = %.7f, %.7f; want %.7f, %.7f", tc.k, tc.n, low, high, tc.low, tc.high)
		}
	}
}
