package winnow

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
}

// Unlabeled is the filter value for images that nobody has decided.
const Unlabeled = "unlabeled"

// ItemFilter narrows a round's items. The zero value asks for all of them.
type ItemFilter struct {
	Verdict string // a Verdict, or "unlabeled"; empty means any
	Class   *int   // class index of known items
}

// HistoryEntry is one label event of an image, with the names a reader needs.
type HistoryEntry struct {
	LabelEvent
	User  string // name or e-mail; empty for imports from the command line
	Round int    // number of the round that asked, -1 for imports
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
