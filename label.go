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
	EventLabel  EventKind = "label"
	EventUndo   EventKind = "undo"   // takes back the event it supersedes
	EventImport EventKind = "import" // from a class folder
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
	Origin       EventKind  `json:"origin,omitempty"` // label or import
	Round        *int       `json:"round,omitempty"`  // number of the round that asked
	Slice        Slice      `json:"slice,omitempty"`
	Rank         int        `json:"rank,omitempty"`
	Annotator    string     `json:"annotator,omitempty"`
	LabeledAt    *time.Time `json:"labeled_at,omitempty"`
	DurationMS   int64      `json:"duration_ms,omitempty"`
	Width        int        `json:"width"`
	Height       int        `json:"height"`
}

// LabelFilter narrows an export. The zero value asks for every decided pool image.
type LabelFilter struct {
	Round    *int     // only the items of the round with this number
	Statuses []string // known, unknown, skip, unreadable, unlabeled; empty means all decided
	Split    Split    // empty means pool
}
