package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db"
	"winnow/db/dbtest"
	"winnow/jobs"
)

// BenchmarkScorePool works one round on pools of made-up images with one, two and four
// `winnow worker`, and reports how long the scoring and the query took, how many
// images a second that is, and the most memory of the lead and of a helper. All must query the
// same. The environment says which pools: WINNOW_SCORE_IMAGES (10000), WINNOW_SCORE_SIDE
// (32 pixels), WINNOW_SCORE_WIDTH (16); and WINNOW_BACKEND on what.
func BenchmarkScorePool(b *testing.B) {
	images, side, width := number(b, "WINNOW_SCORE_IMAGES", 10_000), number(b, "WINNOW_SCORE_SIDE", 32), number(b, "WINNOW_SCORE_WIDTH", 16)
	bin, err := program()
	if err != nil {
		b.Fatal(err)
	}
	url := dbtest.URL(b)
	enqueue, err := jobs.NewEnqueue()
	if err != nil {
		b.Fatal(err)
	}
	store, err := db.Open(b.Context(), url, db.Options{Enqueue: enqueue})
	if err != nil {
		b.Fatal(err)
	}
	defer store.Close()
	admin := dbtest.User(b, store, "admin")
	settings := winnow.DefaultSettings()
	settings.InputSize, settings.Width, settings.Epochs, settings.Batch, settings.Neighbours = side, width, 1, 32, 250
	settings.AuditShare = 0 // the audit is drawn, not scored
	p := dbtest.Project(b, store, admin.ID, settings, 10, 0)
	for class := range 10 {
		dbtest.AddImages(b, store, p.ID, dbtest.Labeled(dbtest.Images(uint64(class), 10, side), class))
	}
	for _, sql := range []string{
		fmt.Sprintf(`
			INSERT INTO images (project_id, sha256, media_type, width, height, bytes, source_path, split, created_at)
			SELECT %d, sha256(n::text::bytea), 'image/png', %d, %[2]d, 3000, n::text, 'pool', now() FROM generate_series(1, %d) n`, p.ID, side, images),
		// Sixteen bytes of each image's own, again and again.
		fmt.Sprintf(`
			INSERT INTO image_pixels (image_id, size, rgb)
			SELECT id, %d, decode(repeat(md5(id::text), %d), 'hex') FROM images WHERE project_id = %d AND verdict IS NULL ORDER BY id`, side, side*side*3/16, p.ID),
		fmt.Sprintf(`UPDATE projects SET pool_count = %d WHERE id = %d`, images+100, p.ID),
		`ANALYZE`, `CHECKPOINT`,
	} {
		if _, err := store.Pool().Exec(b.Context(), sql); err != nil {
			b.Fatal(err)
		}
	}
	var first []winnow.Item
	for _, workers := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("images=%d/workers=%d", images, workers), func(b *testing.B) {
			for range b.N {
				items := scorePool(b, store, bin, url, admin.ID, p.ID, workers)
				if first == nil {
					first = items
				}
				if diff := cmp.Diff(first, items); diff != "" {
					b.Errorf("the query (-with one worker +with %d):\n%s", workers, diff)
				}
			}
		})
	}
}

func number(b *testing.B, name string, otherwise int) int {
	b.Helper()
	if os.Getenv(name) == "" {
		return otherwise
	}
	n, err := strconv.Atoi(os.Getenv(name))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// scorePool works one round and takes it back, so that the next finds the same pool.
func scorePool(b *testing.B, store *db.Store, bin, url string, admin winnow.UserID, project winnow.ProjectID, workers int) []winnow.Item {
	b.Helper()
	ctx := b.Context()
	processes := make([]*exec.Cmd, workers)
	for i := range processes {
		cmd := exec.CommandContext(ctx, bin, "worker")
		cmd.Env = append(os.Environ(), "DATABASE_URL="+url)
		cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
		log := &lockedBuffer{}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			b.Fatal(err)
		}
		processes[i] = cmd
		defer func() {
			_ = cmd.Process.Signal(os.Interrupt)
			if err := cmd.Wait(); err != nil || b.Failed() {
				b.Errorf("worker %d: %v\n%s", i, err, log)
			}
		}()
	}
	round, err := store.StartRound(ctx, admin, project)
	if err != nil {
		b.Fatal(err)
	}
	var kept int64 // of the chunks, at most
	for round.State != winnow.RoundLabeling {
		time.Sleep(200 * time.Millisecond)
		var size int64
		if err := store.Pool().QueryRow(ctx, `SELECT pg_total_relation_size('score_chunks')`).Scan(&size); err != nil {
			b.Fatal(err)
		}
		kept = max(kept, size)
		if round, err = store.RoundByID(ctx, round.ID); err != nil {
			b.Fatal(err)
		}
		if round.State == winnow.RoundFailed {
			b.Fatal(round.Error)
		}
	}
	// The lead gathers what all score, so it is the largest.
	peaks := make([]float64, workers)
	for i, cmd := range processes {
		peaks[i] = highWater(b, cmd.Process.Pid)
	}
	slices.Sort(peaks)
	b.ReportMetric(round.Metrics.TrainSeconds, "train-s")
	b.ReportMetric(round.Metrics.ScoreSeconds, "score-s")
	b.ReportMetric(round.Metrics.QuerySeconds, "query-s")
	b.ReportMetric(float64(round.Metrics.PoolSize)/round.Metrics.ScoreSeconds, "images/s")
	b.ReportMetric(round.LabelingAt.Sub(round.StartedAt).Seconds(), "round-s")
	b.ReportMetric(peaks[workers-1], "lead-MB")
	if workers > 1 {
		b.ReportMetric(peaks[workers-2], "helper-MB")
	}
	b.ReportMetric(float64(kept)/1e6, "chunks-MB")

	items, _, err := store.Items(ctx, round.ID, winnow.ItemFilter{}, winnow.Page{Limit: 200})
	if err != nil {
		b.Fatal(err)
	}
	for i, item := range items {
		items[i] = winnow.Item{ImageID: item.ImageID, Rank: item.Rank, Scores: item.Scores}
	}
	// Each round has a seed of its own: the next is to be this one again.
	for _, sql := range []string{
		`DELETE FROM item_answers`, `DELETE FROM query_items`, `DELETE FROM round_checkpoints`, `DELETE FROM rounds`, `VACUUM score_chunks`,
	} {
		if _, err := store.Pool().Exec(ctx, sql); err != nil {
			b.Fatal(err)
		}
	}
	return items
}

var highWaterMark = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// highWater is the most memory that a process had resident, in MB (10^6 bytes).
func highWater(b *testing.B, pid int) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	m := highWaterMark.FindSubmatch(status)
	if m == nil {
		b.Fatalf("no VmHWM in the status of process %d", pid)
	}
	kb, err := strconv.ParseFloat(string(m[1]), 64)
	if err != nil {
		b.Fatal(err)
	}
	return kb * 1024 / 1e6
}
