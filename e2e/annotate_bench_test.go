package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"winnow"
	"winnow/db/dbtest"
)

// watchPaint records, for each key press, which image came next and when that was
// painted: the browser's own time of the press, and its own time of the image's first
// paint (Element Timing), in milliseconds.
const watchPaint = `
	window.presses = [];
	// The page listens below the window: when the event comes here, it has its image.
	addEventListener("keydown", (event) => presses.push({ pressed: event.timeStamp, src: document.querySelector("#label-canvas img")?.src ?? "", painted: 0 }));
	new PerformanceObserver((list) => {
		for (const entry of list.getEntries()) {
			const press = presses.findLast((p) => p.src === entry.url);
			if (press?.painted === 0) press.painted = entry.renderTime;
		}
	}).observe({ type: "element" });
	true`

// BenchmarkKeypressToNextImage labels JPEGs of 640 x 480 pixels by key, one every
// tenth of a second, and prints the distribution as JSON. Run it with a number of
// images, at most 400: -benchtime 300x.
func BenchmarkKeypressToNextImage(bench *testing.B) {
	w := newWorld(bench)
	admin := w.person("admin", true)
	p := w.project(admin, "Photographs", func(s *winnow.Settings) { s.Budget = 400 })
	dbtest.AddImages(bench, w.store, p.ID, photographs(400))
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
		"benchmark": "keypress", "what": "key press to next image painted, JPEGs of 640x480", "images": bench.N, "paints": len(latencies),
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

// photographs are n JPEGs of the size that cameras give for the web, each with shapes
// of its own and enough grain to weigh what a photograph does.
func photographs(n int) []winnow.NewImage {
	const width, height, side = 640, 480, 16
	images := make([]winnow.NewImage, n)
	for i := range images {
		r := rand.New(rand.NewPCG(640, uint64(i)))
		picture := image.NewRGBA(image.Rect(0, 0, width, height))
		cx, cy, radius := r.Float64()*width, r.Float64()*height, 60+r.Float64()*120
		base, grain := r.Uint32(), r.Uint64()
		for y := range height {
			for x := range width {
				grain = grain*6364136223846793005 + 1442695040888963407
				shade := uint32(x+y)/8 + uint32(grain>>60)
				if math.Hypot(float64(x)-cx, float64(y)-cy) < radius {
					shade += 90
				}
				picture.SetRGBA(x, y, color.RGBA{uint8(base&63 + shade), uint8(base>>8&63 + shade), uint8(base>>16&63 + shade), 255})
			}
		}
		var original, thumbnail bytes.Buffer
		// Neither can fail: the picture is small and the buffers grow.
		_ = jpeg.Encode(&original, picture, &jpeg.Options{Quality: 85})
		_ = jpeg.Encode(&thumbnail, picture.SubImage(image.Rect(0, 0, 128, 96)), nil)
		images[i] = winnow.NewImage{
			Image: winnow.Image{
				SHA256: sha256.Sum256(original.Bytes()), MediaType: "image/jpeg", Width: width, Height: height,
				Bytes: int64(original.Len()), Split: winnow.SplitPool, Class: -1, SourcePath: fmt.Sprintf("photographs/%d.jpg", i),
			},
			Original: original.Bytes(), Thumbnail: thumbnail.Bytes(), Pixels: make([]byte, 3*side*side), PixelSize: side,
		}
	}
	return images
}

func round1(v float64) json.Number { return json.Number(fmt.Sprintf("%.1f", v)) }
