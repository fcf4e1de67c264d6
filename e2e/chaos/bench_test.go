package chaos

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"winnow"
)

// How large the measurement is.
var (
	benchPool    = flag.Int("pool", 1_000_000, "images in the pool")
	benchItems   = flag.Int("items", 20_000, "items of the round")
	benchPeople  = flag.Int("people", 100, "annotators")
	benchSeconds = flag.Int("seconds", 30, "of labeling at a person's pace; a third of it follows flat out")
)

// benchPace is how often each annotator presses a key: a label a second.
const benchPace = time.Second

// BenchmarkAnnotators has 100 annotators label over HTTP, each a label a second and
// then as fast as they are answered, while an admin reads every page, and prints the
// figures as JSON: see `make bench-annotate`.
func BenchmarkAnnotators(b *testing.B) {
	s := newSite(b)
	m := newTeam(b, s, teamPlan{people: *benchPeople, items: *benchItems, pool: *benchPool, overlap: 1, lease: 5 * time.Minute, pace: benchPace, seed: 1})
	m.signIn(b.Context(), b)
	for b.Loop() {
		length := time.Duration(*benchSeconds) * time.Second
		pages := make(chan map[string]float64, 1)
		go func() { pages <- m.readPages(b) }()
		paced := m.labelFor(b, length, benchPace)
		read := <-pages
		flatOut := m.labelFor(b, length/3, 0)
		line, err := json.Marshal(map[string]any{
			"benchmark": "annotators over HTTP", "cores": runtime.NumCPU(), "annotators": len(m.people),
			"pool": *benchPool, "items": *benchItems, "labels_per_annotator_and_second": 1 / benchPace.Seconds(),
			"claim10": paced.claims.figures(), "commit": paced.commits.figures(), "labels_per_second": round1(paced.rate),
			"flat_out":     map[string]any{"claim10": flatOut.claims.figures(), "commit": flatOut.commits.figures(), "labels_per_second": round1(flatOut.rate)},
			"pages_p95_ms": read, "server_peak_mb": s.peakMemory() >> 20,
			"double_assigned": len(m.ledger.shownTwice(m.overlap)), "lost": m.lost(b),
		})
		if err != nil {
			b.Fatal(err)
		}
		fmt.Fprintf(os.Stdout, "\n%s\n", line) // on a line of its own
	}
}

// lost is how many acknowledged labels are not there, or not as they were acknowledged.
func (m *team) lost(b *testing.B) int {
	b.Helper()
	events, err := readEvents(b.Context(), m.site.store, int64(m.project.ID))
	if err != nil {
		b.Fatal(err)
	}
	return len(m.ledger.lostOrInvented(events, nil))
}

// latencies are times that requests took.
type latencies []time.Duration

func (l latencies) at(q float64) json.Number {
	if len(l) == 0 {
		return "0"
	}
	return round1(float64(l[int(q*float64(len(l)-1))].Microseconds()) / 1000)
}

func (l latencies) figures() map[string]any {
	slices.Sort(l)
	return map[string]any{"n": len(l), "p50_ms": l.at(.5), "p95_ms": l.at(.95), "p99_ms": l.at(.99)}
}

func round1(v float64) json.Number { return json.Number(fmt.Sprintf("%.1f", v)) }

// labeled is what a stretch of labeling gave.
type labeled struct {
	claims, commits latencies
	rate            float64 // labels a second
}

// labelFor has everybody label for a while: a label each pace, or, without one, as
// fast as the server answers.
func (m *team) labelFor(b *testing.B, length, pace time.Duration) labeled {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), length)
	defer cancel()
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		total labeled
	)
	began := time.Now()
	for _, p := range m.people {
		all.Go(func() {
			got := p.labelAt(ctx, pace)
			mu.Lock()
			defer mu.Unlock()
			total.claims, total.commits = append(total.claims, got.claims...), append(total.commits, got.commits...)
		})
	}
	all.Wait()
	total.rate = float64(len(total.commits)) / time.Since(began).Seconds()
	return total
}

// labelAt claims ten items at a time and answers them.
func (p *person) labelAt(ctx context.Context, pace time.Duration) (got labeled) {
	r := p.newRand(uint64(time.Now().UnixNano()))
	t := newTab(p, 0, map[int64]bool{})
	if pace > 0 && !sleep(ctx, time.Duration(r.Int64N(int64(pace)))) { // they do not press their keys in step
		return got
	}
	for ctx.Err() == nil {
		began := time.Now()
		// What was asked is carried through, so that nothing is cut off at the end.
		fresh, kind := t.claim(context.WithoutCancel(ctx))
		if kind != ok || fresh == 0 {
			return got
		}
		got.claims = append(got.claims, time.Since(began))
		for len(t.feed) > 0 && ctx.Err() == nil {
			t.press()
			e := t.outbox.first(t.id)
			began := time.Now()
			if t.sendOne(context.WithoutCancel(ctx), e) != ok {
				return got
			}
			took := time.Since(began)
			got.commits = append(got.commits, took)
			if pace > 0 && !sleep(ctx, pace-took) {
				return got
			}
		}
	}
	return got
}

// readPages fetches each page twenty times as an admin, and returns the 95th
// percentiles in milliseconds.
func (m *team) readPages(b *testing.B) map[string]float64 {
	web := newBrowser("http://"+m.site.address(), "10.9.9.9", 0)
	link, err := m.site.store.CreateSignInLink(b.Context(), m.admin.ID, time.Minute)
	if err != nil {
		b.Error(err)
		return nil
	}
	if response, _, err := web.do(b.Context(), http.MethodPost, "/signin/link/"+link, "", nil); err != nil || response.StatusCode != http.StatusSeeOther {
		b.Errorf("sign in: %v, %v", response, err)
		return nil
	}
	images, _, err := m.site.store.Images(b.Context(), m.project.ID, winnow.ImageFilter{}, winnow.Page{Limit: 1})
	if err != nil {
		b.Error(err)
		return nil
	}
	project := fmt.Sprintf("/projects/%d", m.project.ID)
	p95 := make(map[string]float64)
	for name, path := range map[string]string{
		"projects": "/projects", "project": project, "round": project + "/rounds/0", "images": project + "/images",
		"images, known": project + "/images?verdict=known", "images, unlabeled": project + "/images?verdict=unlabeled",
		"images, a class": project + "/images?class=1", "images of the round": project + "/images?round=0",
		"image": fmt.Sprintf("%s/images/%d", project, images[0].ID), "people": project + "/people",
		"settings": project + "/settings", "import": project + "/import", "label": project + "/label",
		"review": project + "/review", "annotators": project + "/annotators", "account": "/account",
	} {
		var took latencies
		for range 20 {
			began := time.Now()
			response, body, err := web.do(b.Context(), http.MethodGet, path, "", nil)
			if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), "<main") {
				b.Errorf("%s: %v, %v: %.200s", path, response, err, body)
				break
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		p95[name], _ = took.at(.95).Float64()
	}
	return p95
}
