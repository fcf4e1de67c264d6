// Package chaos lets many simulated annotators label over HTTP, as the labeling page
// does, while servers are killed and networks are cut, and then holds the database
// against what each of them was told.
package chaos

import (
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

var (
	full = flag.Bool("full", false, "the long run: 50 annotators, 2 minutes without network")
	seed = flag.Uint64("seed", 0, "seed of the run; 0 for a new one")
)

// plan is how hard a run is.
type plan struct {
	people, labels          int // of each team
	pace, lease             time.Duration
	length                  time.Duration // of the trouble; what is left is labeled after it
	cutOff, cut             time.Duration // when some lose their network, and for how long
	webKills, postgresKills int
}

var (
	longRun  = plan{50, 4000, 2 * time.Second, 30 * time.Second, 150 * time.Second, 15 * time.Second, 2 * time.Minute, 4, 4}
	shortRun = plan{10, 600, 200 * time.Millisecond, 10 * time.Second, 14 * time.Second, 2 * time.Second, 11 * time.Second, 2, 2}
)

// patience is how long the rest of a round may take once nothing is in the way any more.
const patience = 3 * time.Minute

// TestChaos is the promise that nothing acknowledged is ever lost, and nothing counts
// twice, tried as hard as can be, by two teams on one site: in one, each image is
// asked of one person, in the other of two. `make chaos-annotate` makes the long run.
func TestChaos(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	run := shortRun
	if *full {
		run = longRun
	}
	seed := *seed
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	t.Logf("seed %d (run it again with SEED=%d)", seed, seed)
	s := newSite(t)
	var teams []*team
	for _, overlap := range []int{1, 2} {
		teams = append(teams, newTeam(t, s, teamPlan{
			people: run.people, items: run.labels / overlap, overlap: overlap, lease: run.lease, pace: run.pace, seed: seed,
		}))
	}
	ctx, stop := context.WithTimeout(t.Context(), run.length+patience)
	defer stop()
	for _, m := range teams {
		m.label(ctx, t)
		defer m.stop()
	}
	began := time.Now()
	makeTrouble(ctx, t, s, teams, run, newRand(seed, 0))
	for _, m := range teams {
		m.finish(ctx, t)
	}
	for _, m := range teams {
		m.stop()
	}
	// Once more, so that all of it must be on disk.
	s.killPostgres()
	s.startPostgres()
	for _, m := range teams {
		for _, problem := range m.audit(t) {
			t.Errorf("overlap %d: %s", m.overlap, problem)
		}
		m.tell(t, time.Since(began))
	}
}

// makeTrouble kills and cuts at random moments of the plan's length.
func makeTrouble(ctx context.Context, t *testing.T, s *site, teams []*team, run plan, r *rand.Rand) {
	t.Helper()
	var all sync.WaitGroup
	for i, m := range teams {
		losses := newRand(r.Uint64(), uint64(i))
		all.Go(func() { m.cutLinks(ctx, run) })
		all.Go(func() { m.loseAnswers(ctx, run.length, losses) })
	}
	kills := slices.Concat(
		slices.Repeat([]func(){func() { killWeb(t, s, r) }}, run.webKills),
		slices.Repeat([]func(){func() { killPostgres(t, s, r) }}, run.postgresKills),
	)
	r.Shuffle(len(kills), func(i, j int) { kills[i], kills[j] = kills[j], kills[i] })
	began, share := time.Now(), run.length/time.Duration(len(kills))
	for i, kill := range kills {
		at := time.Duration(i)*share + share/5 + time.Duration(r.Int64N(int64(share/2)))
		if !sleep(ctx, at-time.Since(began)) {
			break
		}
		kill()
	}
	sleep(ctx, run.length-time.Since(began))
	all.Wait()
}

// killWeb kills the web server and starts it again after a while.
func killWeb(t *testing.T, s *site, r *rand.Rand) {
	t.Log("kill -9 of the web server")
	s.killWeb()
	time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	s.startWeb()
}

// killPostgres kills Postgres and starts it again after a while.
func killPostgres(t *testing.T, s *site, r *rand.Rand) {
	t.Log("kill -9 of Postgres")
	s.killPostgres()
	time.Sleep(time.Duration(r.IntN(1500)) * time.Millisecond)
	s.startPostgres()
}

// cutLinks takes the network from every sixth person for as long as the plan says:
// one half notices at once, the other's requests get no answer.
func (m *team) cutLinks(ctx context.Context, run plan) {
	sleep(ctx, run.cutOff)
	for i := 0; i < len(m.people); i += 6 {
		m.people[i].link.set([]linkState{linkCut, linkSilent}[i/6%2])
	}
	sleep(ctx, run.cut)
	for i := 0; i < len(m.people); i += 6 {
		m.people[i].link.set(linkUp)
	}
}

// loseAnswers breaks, several times a second, somebody's connection between the
// commit and the answer.
func (m *team) loseAnswers(ctx context.Context, length time.Duration, r *rand.Rand) {
	for end := time.Now().Add(length); time.Now().Before(end); {
		if !sleep(ctx, time.Duration(r.IntN(400))*time.Millisecond) {
			return
		}
		m.people[r.IntN(len(m.people))].link.loseAnswer()
	}
}

// tell says what the run was like: a run in which nothing went wrong shows nothing.
func (m *team) tell(t *testing.T, took time.Duration) {
	t.Helper()
	lost := 0
	for _, p := range m.people {
		lost += p.link.answersLost()
	}
	t.Logf("overlap %d: %d people, %d items, %s; %s; answers lost on the way: %d",
		m.overlap, len(m.people), m.round.Counts.Total, took.Round(time.Second), m.ledger.figures(), lost)
	for _, what := range []string{string(acknowledged), "attempt failed"} {
		if m.ledger.count(what) == 0 {
			t.Errorf("nothing was ever %q: the run proves nothing", what)
		}
	}
	if lost == 0 {
		t.Error("no answer was ever lost: the run proves nothing")
	}
}

func (l *ledger) figures() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return fmt.Sprint(l.kinds)
}

// newRand makes numbers that differ from the first on, for seeds that are alike.
func newRand(seed, stream uint64) *rand.Rand {
	return rand.New(rand.NewChaCha8(sha256.Sum256(fmt.Append(nil, seed, stream))))
}
