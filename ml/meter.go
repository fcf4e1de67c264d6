package ml

import (
	"slices"
	"sync"
	"time"

	"winnow"
	"winnow/ml/nn"
)

// trainingCost is what one image costs in a training step, in scorings.
const trainingCost = 3

// reportEvery bounds how often progress is reported within a stage.
const reportEvery = 100 * time.Millisecond

// meter adds up the work of a round that several goroutines do, and reports it.
type meter struct {
	report func(winnow.Progress)

	mu       sync.Mutex
	start    time.Time
	reported time.Time
	total    int // units of work: one image scored by one network
	finished int
	stageAt  time.Time // when the stage began
	before   int       // finished by then
	now      winnow.Progress
	networks map[string]nn.Progress // in training
}

func newMeter(report func(winnow.Progress)) *meter {
	if report == nil {
		report = func(winnow.Progress) {}
	}
	return &meter{report: report, start: time.Now(), networks: map[string]nn.Progress{}}
}

// expect announces work.
func (m *meter) expect(units int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.total += units
}

func (m *meter) stage(stage, network string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.now.Stage, m.now.Network = stage, network
	m.now.Scored, m.now.ToScore = 0, 0
	m.stageAt, m.before = time.Now(), m.finished
	m.send(true)
}

// done says that all work is finished.
func (m *meter) done() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.finished, m.total = 1, 1
	m.send(true)
}

// training returns the callback of one network's training on images.
func (m *meter) training(network string, images int) func(nn.Progress) {
	counted := 0
	return func(p nn.Progress) {
		m.mu.Lock()
		defer m.mu.Unlock()
		work := trainingCost * images * p.Epochs * p.Step / max(p.Steps, 1)
		m.finished += work - counted
		counted = work
		m.networks[network] = p
		if p.EpochDone {
			m.curve(network, p.Loss)
		}
		// Show the network that has the longest way to go.
		m.now.Network = network
		for name, other := range m.networks {
			if other.Steps-other.Step > m.networks[m.now.Network].Steps-m.networks[m.now.Network].Step {
				m.now.Network = name
			}
		}
		shown := m.networks[m.now.Network]
		m.now.Epoch, m.now.Epochs, m.now.Loss = shown.Epoch, shown.Epochs, shown.Loss
		m.send(p.EpochDone)
	}
}

// curve appends to a network's loss curve; callers that hold an older progress keep
// what they were given.
func (m *meter) curve(network string, loss float64) {
	curves := slices.Clone(m.now.Curves)
	i := slices.IndexFunc(curves, func(c winnow.LossCurve) bool { return c.Network == network })
	if i < 0 {
		i = len(curves)
		curves = append(curves, winnow.LossCurve{Network: network})
	}
	curves[i].Loss = append(slices.Clip(curves[i].Loss), loss)
	m.now.Curves = curves
}

// scoringPool returns the callback of a pool's scoring by so many networks.
func (m *meter) scoringPool(networks, images int) func(scored int) {
	counted := 0
	return func(scored int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.finished += (scored - counted) * networks
		counted = scored
		m.now.Scored, m.now.ToScore = scored, images
		m.send(scored == images)
	}
}

// scoring returns the callback of one network's run over some images.
func (m *meter) scoring() func(done, total int) {
	counted := 0
	return func(done, _ int) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.finished += done - counted
		counted = done
		m.send(false)
	}
}

// send reports; m.mu is held. Unless it must, it reports no more often than
// reportEvery.
func (m *meter) send(must bool) {
	now := time.Now()
	if !must && now.Sub(m.reported) < reportEvery {
		return
	}
	m.reported = now
	m.now.Elapsed = now.Sub(m.start)
	if m.total > 0 {
		m.now.Fraction = float64(m.finished) / float64(m.total)
	}
	// What is left goes on as the stage does: others may help to score, and not to train.
	m.now.SecondsLeft = 0
	if done := m.finished - m.before; done > 0 {
		m.now.SecondsLeft = now.Sub(m.stageAt).Seconds() * float64(m.total-m.finished) / float64(done)
	}
	m.report(m.now)
}
