package winnow

import "time"

// RoundState is where a round stands.
type RoundState string

const (
	RoundQueued    RoundState = "queued"
	RoundTraining  RoundState = "training"
	RoundScoring   RoundState = "scoring"
	RoundLabeling  RoundState = "labeling"
	RoundClosed    RoundState = "closed"
	RoundFailed    RoundState = "failed"
	RoundCancelled RoundState = "cancelled"
)

// Open reports whether the round still moves; a project has one open round at most.
func (s RoundState) Open() bool {
	return s == RoundQueued || s == RoundTraining || s == RoundScoring || s == RoundLabeling
}

// Round is one turn of the loop: train, score, query, label.
type Round struct {
	ID           RoundID
	ProjectID    ProjectID
	Number       int // 0, 1, ... within the project
	State        RoundState
	Strategy     string // the strategy asked for
	ColdStart    bool   // nothing was labeled: the query is a seeded random draw
	Seed         int64
	K            float64 // k of this round's query
	Settings     Settings
	ClassVersion int
	Classes      int     // C when the round started
	LabelVersion EventID // the newest label event that the round saw when it first began
	ImageVersion ImageID // the newest image likewise
	Attempt      int     // grows with each retry or take-over; fences a lost worker
	Progress     Progress
	Metrics      Metrics
	Error        string // why it failed, safe to show
	Backend      string // what trained it
	CreatedAt    time.Time
	StartedAt    time.Time // training began
	LabelingAt   time.Time // items opened
	ClosedAt     time.Time // closed, failed or cancelled
	Counts       ItemCounts

	// Gold items that the person who labels was given in this round, and answered. What
	// they are told of the round counts them with the rest, or it would tell them apart.
	GoldGiven, GoldAnswered int
}

// ItemCounts are the round's items by what became of them. Those of the audit slice
// are counted in the first five, too; gold items in none.
type ItemCounts struct {
	Total, Known, Unknown, Skipped, Unreadable int

	AuditTotal, AuditKnown, AuditUnknown int

	Gold int // images with a settled label that people are asked about now and then
}

// Done is how many items are decided.
func (c ItemCounts) Done() int { return c.Known + c.Unknown + c.Skipped + c.Unreadable }

// Left is how many items still wait for a decision.
func (c ItemCounts) Left() int { return c.Total - c.Done() }

// Precision is knowns / (knowns + unknowns) of the query; ok is false while neither is
// there.
func (c ItemCounts) Precision() (p float64, ok bool) {
	return share(c.Known-c.AuditKnown, c.Unknown-c.AuditUnknown)
}

// AuditPrecision is the same of the audit slice: the share of known classes among the
// decidable images of the pool.
func (c ItemCounts) AuditPrecision() (p float64, ok bool) {
	return share(c.AuditKnown, c.AuditUnknown)
}

func share(known, unknown int) (p float64, ok bool) {
	if known+unknown == 0 {
		return 0, false
	}
	return float64(known) / float64(known+unknown), true
}

// RoundFigures are what a round adds to its project's charts.
type RoundFigures struct {
	Number       int
	Counts       ItemCounts
	TestAccuracy *float64 // nil without test images, or before there is one
	TestImages   int
}

// Progress is what a working round shows of itself.
type Progress struct {
	Stage       string        `json:"stage,omitempty"`   // loading, training, scoring, querying, saving
	Network     string        `json:"network,omitempty"` // detector or classifier
	Epoch       int           `json:"epoch,omitempty"`   // finished epochs of this network
	Epochs      int           `json:"epochs,omitempty"`
	Loss        float64       `json:"loss,omitempty"`     // mean over the last epoch
	Scored      int           `json:"scored,omitempty"`   // images of the pool, by whichever workers
	ToScore     int           `json:"to_score,omitempty"` // of so many
	Fraction    float64       `json:"fraction,omitempty"` // of all work, 0..1
	SecondsLeft float64       `json:"seconds_left,omitempty"`
	Curves      []LossCurve   `json:"curves,omitempty"`
	Elapsed     time.Duration `json:"elapsed,omitempty"`
}

// LossCurve is a network's mean training loss by epoch.
type LossCurve struct {
	Network string    `json:"network"`
	Loss    []float64 `json:"loss"`
}

// Metrics are the figures a round leaves behind. Pointers are nil where a figure
// does not exist: no test images, no decided items, a cold start.
type Metrics struct {
	TestAccuracy   *float64 `json:"test_accuracy,omitempty"` // 0..1, of the classifier on the known classes' test images
	TestImages     int      `json:"test_images"`
	LabeledKnown   int      `json:"labeled_known"` // trained on
	LabeledUnknown int      `json:"labeled_unknown"`
	PoolSize       int      `json:"pool_size"`           // |U| that was scored
	Precision      *float64 `json:"precision,omitempty"` // rP, after closing
	NextK          *float64 `json:"next_k,omitempty"`    // after closing
	TrainSeconds   float64  `json:"train_seconds"`
	ScoreSeconds   float64  `json:"score_seconds"`
	QuerySeconds   float64  `json:"query_seconds"`
}

// Slice says why an item is in its round.
type Slice string

const (
	SliceQuery Slice = "query" // chosen by the strategy
	SliceAudit Slice = "audit" // drawn at random from the rest of the pool
	SliceGold  Slice = "gold"  // its label is settled; the answer says how well a person labels
)

// Scores are what the query knew of an image. They are NaN-free; HasScores is
// false in a cold start or under a strategy that does not compute them.
type Scores struct {
	HasScores bool
	EUL       float64 // EU_L scaled to 0..1 over the pool
	EUD       float64 // EU_D scaled
	AU        float64 // AU scaled
	Clean     float64 // clean_L * clean_D: how likely known
	Info      float64 // posterior of the uncertain component of AU
	Predicted int     // class the classifier predicts, -1 for none
}

// Clear reports whether the model takes the image for one class and hardly any other:
// likely known, and not of the uncertain ones.
func (s Scores) Clear() bool {
	return s.HasScores && s.Predicted >= 0 && s.Clean >= 0.5 && s.Info < 0.5
}

// Item is an image queried in a round. What it was decided to be is, to the person who
// labels (Claim, Undo, Recent), their own answer, and in the lists of a round what the
// item resolved to; leases are told to their holder only.
type Item struct {
	ID         ItemID
	RoundID    RoundID
	ProjectID  ProjectID
	ImageID    ImageID
	Rank       int // 1 is queried first
	Slice      Slice
	Scores     Scores
	Slots      int     // answers asked for
	Answers    int     // answers given
	Review     bool    // all answers are there and none has most votes: an admin decides
	Verdict    Verdict // "" while open
	Class      int     // -1 unless known
	DecidedBy  UserID  // 0 while open
	DecidedAt  time.Time
	LeasedBy   UserID
	LeaseUntil time.Time
	// Of the image, for display.
	Width, Height int
	MediaType     string
}
