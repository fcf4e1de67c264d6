package db_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
)

// BenchmarkAddImages stores images of CIFAR's size with their pixels, labeled, in
// batches of 256.
func BenchmarkAddImages(b *testing.B) {
	s := dbtest.New(b, db.Options{})
	admin := dbtest.User(b, s, "admin")
	p := dbtest.Project(b, s, admin.ID, dbtest.Settings(), 10, 0)
	template := dbtest.Labeled(dbtest.Images(1, 1, 32), 3)[0]
	images := make([]winnow.NewImage, b.N)
	for i := range images {
		images[i] = template
		images[i].SHA256 = sha256.Sum256(binary.AppendUvarint(nil, uint64(i)))
	}
	b.ResetTimer()
	for batch := range slices.Chunk(images, 256) {
		if _, err := s.AddImages(b.Context(), p.ID, 0, admin.ID, batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "images/s")
}

// bigPool makes a project with a pool of n images without bytes, and opens a round on
// its first budget images.
func bigPool(b *testing.B, s *db.Store, admin winnow.UserID, n, budget int) winnow.ProjectID {
	b.Helper()
	ctx := b.Context()
	settings := dbtest.Settings()
	settings.Budget = budget
	p := dbtest.Project(b, s, admin, settings, 10, 0)
	for _, sql := range []string{
		fmt.Sprintf(`
			INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, split, created_at)
			SELECT %d, sha256(n::text::bytea), 'image/png', 32, 32, 3000, n::text, 'pool', now() FROM generate_series(1, %d) n`, p.ID, n),
		fmt.Sprintf(`UPDATE projects SET pool_count = %d WHERE id = %d`, n, p.ID),
		`ANALYZE`,
	} {
		if _, err := s.Pool().Exec(ctx, sql); err != nil {
			b.Fatal(err)
		}
	}
	dbtest.OpenRound(b, s, admin, p.ID)
	return p.ID
}

// BenchmarkLabeling has 100 annotators label in a pool of a million, each twice a
// second, and reports how long a decision and a claim of 10 take.
func BenchmarkLabeling(b *testing.B) { benchmarkLabeling(b, 500*time.Millisecond) }

// BenchmarkLabelingFlatOut has them label as fast as the store lets them: its figure
// is how many labels that are, not how long each takes.
func BenchmarkLabelingFlatOut(b *testing.B) { benchmarkLabeling(b, time.Nanosecond) }

func benchmarkLabeling(b *testing.B, pace time.Duration) {
	const annotators = 100
	s := dbtest.New(b, db.Options{})
	admin := dbtest.User(b, s, "admin")
	project := bigPool(b, s, admin.ID, 1_000_000, max(b.N, annotators)+annotators*10)
	users := make([]winnow.UserID, annotators)
	for i := range users {
		users[i] = dbtest.Member(b, s, admin.ID, project, fmt.Sprint("annotator", i), winnow.RoleAnnotator).ID
	}
	var (
		left           atomic.Int64
		wg             sync.WaitGroup
		mu             sync.Mutex
		decide, claims []time.Duration
	)
	left.Store(int64(b.N))
	b.ResetTimer()
	for _, user := range users {
		wg.Go(func() {
			d, c := labelAll(b, s, project, user, &left, pace)
			mu.Lock()
			defer mu.Unlock()
			decide, claims = append(decide, d...), append(claims, c...)
		})
	}
	wg.Wait()
	b.StopTimer()
	report := func(name string, d []time.Duration) {
		slices.Sort(d)
		if len(d) > 0 {
			b.ReportMetric(float64(d[len(d)/2].Microseconds())/1000, name+"-p50-ms")
			b.ReportMetric(float64(d[len(d)*99/100].Microseconds())/1000, name+"-p99-ms")
		}
	}
	report("decide", decide)
	report("claim", claims)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "labels/s")
}

func labelAll(b *testing.B, s *db.Store, project winnow.ProjectID, user winnow.UserID, left *atomic.Int64, pace time.Duration) (decide, claims []time.Duration) {
	ctx := b.Context()
	var items []winnow.Item
	time.Sleep(rand.N(pace)) // they do not press their keys in step
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := 0; left.Add(-1) >= 0; n++ {
		<-tick.C
		if len(items) == 0 {
			start := time.Now()
			var err error
			if _, items, err = s.Claim(ctx, project, user, 10); err != nil || len(items) == 0 {
				b.Errorf("claim: %d items, %v", len(items), err)
				return decide, claims
			}
			claims = append(claims, time.Since(start))
		}
		start := time.Now()
		d := winnow.Decision{ItemID: items[0].ID, Verdict: winnow.VerdictKnown, ClientKey: fmt.Sprint(n)}
		if _, err := s.Decide(ctx, project, user, d); err != nil {
			b.Error(err)
			return decide, claims
		}
		decide = append(decide, time.Since(start))
		items = items[1:]
	}
	return decide, claims
}
