package winnow

import "time"

// The types below are what stores answer to lists and decisions. They live here,
// not with the store, so that handlers and jobs can name them without knowing it.

// ProjectSummary is a project as one person sees it in a list.
type ProjectSummary struct {
	Project
	Role   Role   // of the person who asks
	Latest *Round // the newest round, nil when there is none
}

// ImageFilter narrows a project's images. The zero value asks for all of them.
type ImageFilter struct {
	Split   Split  // empty means both
	Verdict string // a Verdict, or "unlabeled"; empty means any
	Class   *int   // class index of known images
	Round   *int   // only images queried in the round with this number

	// Of the answers that people gave. With one of these, the same image may come once
	// for each item it was asked about.
	By      UserID       // only what this person answered
	Answers AnswerFilter // how the answers, or those of By, are beside the decision
	Gold    bool         // only the gold set
	// HideGold leaves out answers to gold items: who gave them is not to know which they are.
	HideGold bool
}

// AnswerFilter asks for answers by what they are beside what was decided.
type AnswerFilter string

const (
	AnswersDiffer       AnswerFilter = "differ"        // not what the item was decided to be
	AnswersGoldWrong    AnswerFilter = "gold-wrong"    // not the label of the gold image
	AnswersFalseKnown   AnswerFilter = "false-known"   // said a known class, the gold image is unknown
	AnswersFalseUnknown AnswerFilter = "false-unknown" // said unknown, the gold image is of a known class
	AnswersWrongClass   AnswerFilter = "wrong-class"   // said a known class, the gold image is of another
)

// AnswerFilters are the values of AnswerFilter.
var AnswerFilters = []AnswerFilter{AnswersDiffer, AnswersGoldWrong, AnswersFalseKnown, AnswersFalseUnknown, AnswersWrongClass}

// Unlabeled is the filter value for images that nobody has decided.
const Unlabeled = "unlabeled"

// ItemFilter narrows a round's items. The zero value asks for all of them.
type ItemFilter struct {
	Verdict string // a Verdict, or "unlabeled"; empty means any
	Class   *int   // class index of known items
	Slice   Slice  // empty means the query and the audit slice: gold is told to nobody
}

// HistoryEntry is one label event of an image, with the names a reader needs.
type HistoryEntry struct {
	LabelEvent
	User   string // name or e-mail; empty for imports from the command line
	Round  int    // number of the round that asked, -1 for imports
	Slice  Slice  // of the item that asked, "" for none
	Stands bool   // the image's label is this event's
}

// DecideResult is what became of a decision.
type DecideResult struct {
	Event    EventID
	Replayed bool  // the client key was known: nothing new was recorded
	Round    Round // after the decision; closed when it was the last one
}

// DecideOutcome is what became of one decision of a batch.
type DecideOutcome struct {
	Event    EventID // 0 with an error
	Replayed bool
	Err      error // why it was refused; as that of a single decision
}

// AnsweredImage is an image with what one person said of it.
type AnsweredImage struct {
	Image
	Said  Answer
	Round int // number of the round that asked
}

// AnnotatorDay is what one person did on one day, UTC.
type AnnotatorDay struct {
	Day    time.Time
	Labels int           // answers that stand
	Active time.Duration // spent on them, each at most IdleLimit

	Shared, Agreed  int // as in AnnotatorFigures
	Gold, GoldRight int
}

// MaxCounted is where counts stop that are only shown: more is more.
const MaxCounted = 1000

// ReviewCounts are the items that wait for an admin, each at most MaxCounted. An item
// that is disputed and flagged is in both.
type ReviewCounts struct {
	Total    int
	Disputed int // answers without a winner
	Flagged  int
}

// Notice says that something moved. It carries identifiers only; whoever hears it
// reads the rest.
type Notice struct {
	Project ProjectID `json:"project"`
	Round   RoundID   `json:"round,omitempty"`
	Import  ImportID  `json:"import,omitempty"`
}

// QueriedItem is an item with the number of the round that asked.
type QueriedItem struct {
	Item
	Round int
}
