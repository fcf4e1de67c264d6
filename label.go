package winnow

import (
	"strings"
	"time"
)

// Verdict is what a person (or an import) says of an image. The four outcomes and
// "never labeled" (the empty verdict) stay apart everywhere.
type Verdict string

const (
	VerdictKnown      Verdict = "known"      // one of the project's classes
	VerdictUnknown    Verdict = "unknown"    // a class nobody asked for
	VerdictSkip       Verdict = "skip"       // not decided; ask somebody else
	VerdictUnreadable Verdict = "unreadable" // nothing can be told from the image
)

// EventKind says how a label event came about.
type EventKind string

const (
	EventLabel      EventKind = "label"      // somebody's answer
	EventUndo       EventKind = "undo"       // takes back the event it supersedes
	EventImport     EventKind = "import"     // from a class folder
	EventCorrection EventKind = "correction" // an admin's last word
)

// Decision is what an annotator sends. ClientKey makes a retry the same event.
type Decision struct {
	ItemID     ItemID
	Verdict    Verdict
	Class      int // class index when Verdict is known
	ClientKey  string
	DurationMS int64 // from shown to answered
}

// Bounds of a decision.
const (
	MaxClientKey  = 64               // bytes
	MaxDurationMS = 24 * 3600 * 1000 // a day
)

// Validate checks the decision against a project with the given number of classes.
func (d *Decision) Validate(classes int) error {
	switch d.Verdict {
	case VerdictKnown:
		if d.Class < 0 || d.Class >= classes {
			return Invalid("class", "Class %d is not one of the project's %d classes.", d.Class, classes)
		}
	case VerdictUnknown, VerdictSkip, VerdictUnreadable:
	default:
		return Invalid("verdict", "%q is not known, unknown, skip or unreadable.", clip(string(d.Verdict), 40))
	}
	if err := ValidateClientKey(d.ClientKey); err != nil {
		return err
	}
	if d.DurationMS < 0 || d.DurationMS > MaxDurationMS {
		return Invalid("duration_ms", "A duration is between 0 and a day.")
	}
	return nil
}

// ValidateClientKey says what is wrong with the key of a decision or an undo, if anything.
func ValidateClientKey(key string) error {
	if key == "" || len(key) > MaxClientKey {
		return Invalid("client_key", "A client key has 1 to %d characters.", MaxClientKey)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
		return Invalid("client_key", "A client key is printable ASCII.")
	}
	return nil
}

// LabelEvent is one append-only row of history.
type LabelEvent struct {
	ID           EventID
	ProjectID    ProjectID
	ImageID      ImageID
	ItemID       ItemID  // 0 for imports
	RoundID      RoundID // 0 for imports
	UserID       UserID  // 0 for imports from the command line
	Kind         EventKind
	Verdict      Verdict // "" for an undo
	Class        int     // -1 unless known
	ClientKey    string
	DurationMS   int64
	Supersedes   EventID // 0 for none
	ClassVersion int
	At           time.Time
}

// UndoRequest asks to take an answer back. ClientKey makes a retry the same event.
type UndoRequest struct {
	ItemID    ItemID
	ClientKey string
}

// Answer is what one person said of an item, and stands by.
type Answer struct {
	ItemID     ItemID
	Event      EventID
	UserID     UserID
	User       string // name or e-mail
	Verdict    Verdict
	Class      int // -1 unless known
	DurationMS int64
	At         time.Time
}

// Flag is an annotator's request that an admin look at an item.
type Flag struct {
	ItemID ItemID
	UserID UserID
	User   string // name or e-mail
	Note   string
	At     time.Time
}

// MaxFlagNote bounds the note of a flag, in characters.
const MaxFlagNote = 500

// ReviewItem is an item that waits for an admin: its answers have no winner
// (Item.Review), or somebody flagged it.
type ReviewItem struct {
	Item
	Round       int     // number of the round
	Label       Verdict // of the image, as it stands; "" for none
	LabelClass  int     // -1 unless known
	AllAnswers  []Answer
	Flags       []Flag // that nobody has resolved
	Corrections int    // so far, of the image
}

// IdleLimit is the longest that one answer counts as work: who was away longer did
// something else.
const IdleLimit = time.Minute

// AnnotatorFigures are how one person labels in one project. Agreement and gold say
// how often; the shares are the reader's.
type AnnotatorFigures struct {
	UserID UserID
	User   string        // name or e-mail
	Labels int           // answers that stand
	Active time.Duration // spent on all answers ever given, each at most IdleLimit
	Median time.Duration // from shown to answered, of the last answers that stand

	Shared, Agreed int // answers to decided items that others answered too; those equal to the decision

	Gold             int // answers to gold items that stand
	GoldRight        int
	GoldFalseKnown   int // said a known class, is unknown
	GoldFalseUnknown int // said unknown, is of a known class
	GoldWrongClass   int // said a known class, is of another

	LastAt time.Time // of the last answer; zero before
	Here   bool      // holds a lease at this moment
}

// LabelsPerHour is how many answers an hour of work brings; ok is false without any.
func (f AnnotatorFigures) LabelsPerHour() (n float64, ok bool) {
	if f.Active <= 0 {
		return 0, false
	}
	return float64(f.Labels) / f.Active.Hours(), true
}

// LabelRecord is one exported row: an image and where its label stands.
type LabelRecord struct {
	ImageID      ImageID    `json:"image_id"`
	SHA256       string     `json:"sha256"`
	SourcePath   string     `json:"source_path"`
	Split        Split      `json:"split"`
	Status       string     `json:"status"` // known, unknown, skip, unreadable or unlabeled
	Class        string     `json:"class,omitempty"`
	ClassIndex   *int       `json:"class_index,omitempty"`
	ClassVersion int        `json:"class_version,omitempty"`
	Origin       EventKind  `json:"origin,omitempty"` // label, correction or import
	Round        *int       `json:"round,omitempty"`  // number of the round that asked
	Slice        Slice      `json:"slice,omitempty"`
	Rank         int        `json:"rank,omitempty"`
	Annotator    string     `json:"annotator,omitempty"`
	LabeledAt    *time.Time `json:"labeled_at,omitempty"`
	DurationMS   int64      `json:"duration_ms,omitempty"`
	Width        int        `json:"width"`
	Height       int        `json:"height"`
}

// AnswerRecord is one exported answer: what one person said of an image, and what the
// item was decided to be.
type AnswerRecord struct {
	ImageID      ImageID   `json:"image_id"`
	SHA256       string    `json:"sha256"`
	SourcePath   string    `json:"source_path"`
	Split        Split     `json:"split"`
	Round        int       `json:"round"` // number of the round that asked
	Slice        Slice     `json:"slice"`
	Rank         int       `json:"rank"`
	Annotator    string    `json:"annotator"`
	Status       string    `json:"status"` // the answer: known, unknown, skip or unreadable
	Class        string    `json:"class,omitempty"`
	ClassIndex   *int      `json:"class_index,omitempty"`
	ClassVersion int       `json:"class_version"`
	Decided      string    `json:"decided,omitempty"` // what the item is decided to be; of gold, its image's label
	DecidedClass string    `json:"decided_class,omitempty"`
	Gold         string    `json:"gold,omitempty"` // right, false-known, false-unknown, wrong-class or none
	AnsweredAt   time.Time `json:"answered_at"`
	DurationMS   int64     `json:"duration_ms,omitempty"`
}

// LabelFilter narrows an export. The zero value asks for every decided pool image.
type LabelFilter struct {
	Round    *int     // only the items of the round with this number
	Statuses []string // known, unknown, skip, unreadable, unlabeled; empty means all decided
	Split    Split    // empty means pool
}
