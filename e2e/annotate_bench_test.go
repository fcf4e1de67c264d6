package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"winnow"
	"winnow/app/demo"
	"winnow/db/dbtest"
	"winnow/imaging"
	"winnow/jobs"
)

// watchPaint records, for each key press, when the next image was painted: the
// browser's own time of the press, and its own time of the first paint of the image
// (Element Timing), in milliseconds.
const watchPaint = `
	window.presses = [];
	addEventListener("keydown", (event) => presses.push({ pressed: event.timeStamp, painted: 0 }), true);
	new PerformanceObserver((list) => {
		for (const entry of list.getEntries()) {
			const press = presses.at(-1);
			if (press && press.painted === 0 && entry.renderTime > press.pressed) press.painted = entry.renderTime;
		}
	}).observe({ type: "element" });
	true`

// BenchmarkKeypressToNextImage labels images of the demo project by key, one every
// tenth of a second, and prints the distribution as JSON. Run it with a number of
// images, at most 1,000: -benchtime 300x.
func BenchmarkKeypressToNextImage(bench *testing.B) {
	w := newWorld(bench)
	admin := w.person("admin", true)
	p, err := demo.NewProject()
	if err != nil {
		bench.Fatal(err)
	}
	p.Settings.Budget = 1000
	if p.ID, err = w.store.CreateProject(bench.Context(), admin.ID, p); err != nil {
		bench.Fatal(err)
	}
	_, err = jobs.NewImporter(w.store, imaging.DefaultLimits()).Import(bench.Context(), jobs.ImportRequest{
		Project: p, By: admin.ID, Source: demo.NewSet(1), Prefix: "pool", Split: winnow.SplitPool,
	})
	if err != nil {
		bench.Fatal(err)
	}
	dbtest.OpenRound(bench, w.store, admin.ID, p.ID)

	b := w.signIn(admin)
	b.openLabeling(p)
	src := b.image("")
	eval[bool](b, watchPaint)

	began := time.Now()
	for bench.Loop() {
		time.Sleep(100 * time.Millisecond)
		b.key("1")
		src = b.image(src)
	}
	b.saved()
	took := time.Since(began)

	presses := eval[[]struct{ Pressed, Painted float64 }](b, `window.presses`)
	latencies := make([]float64, 0, len(presses))
	for _, press := range presses {
		if press.Painted > 0 {
			latencies = append(latencies, press.Painted-press.Pressed)
		}
	}
	if len(latencies) < bench.N*9/10 {
		bench.Fatalf("%d of %d paints were seen", len(latencies), bench.N)
	}
	slices.Sort(latencies)
	at := func(q float64) float64 { return latencies[int(q*float64(len(latencies)-1))] }
	lost := bench.N - len(w.decided(p, 0))
	report := map[string]any{
		"benchmark": "keypress to next image painted", "images": bench.N, "paints": len(latencies),
		"p50_ms": round1(at(.5)), "p95_ms": round1(at(.95)), "p99_ms": round1(at(.99)),
		"labels_per_second": round1(float64(bench.N) / took.Seconds()), "lost": lost,
	}
	bench.ReportMetric(at(.95), "p95-ms")
	bench.ReportMetric(float64(lost), "lost")
	line, err := json.Marshal(report)
	if err != nil {
		bench.Fatal(err)
	}
	fmt.Fprintf(os.Stdout, "\n%s\n", line) // on a line of its own
}

func round1(v float64) json.Number { return json.Number(fmt.Sprintf("%.1f", v)) }
