package views

import (
	"fmt"

	"winnow"
)

// GridProps is grid mode: images that the model gives one class, a page at a time.
// Of the labeling page's properties it has the frame, the round, the notice and the
// keys; there is no single item.
type GridProps struct {
	LabelProps
	Class  *winnow.Class // what the images most likely are; nil while there are none
	Items  []LabelItem
	Last   *GridBatch // the answers that undo takes back; nil for none
	Picked []int64    // items that stay picked out after a form that was refused
	Boot   GridBoot
}

// GridBoot is what static/js/grid.js starts from.
type GridBoot struct {
	Base         string      `json:"base"` // URL of the labeling page
	User         int64       `json:"user"`
	Project      int64       `json:"project"`
	LeaseSeconds int         `json:"lease_seconds"`
	Keys         winnow.Keys `json:"keys"` // the person's own
	Size         int         `json:"size"` // images on a page
	Round        *LabelRound `json:"round"`
	Class        int         `json:"class"` // -1 without a group
	Items        []LabelItem `json:"items"`
	Wait         *LabelWait  `json:"wait,omitempty"`
	Past         []GridBatch `json:"past"` // what can be undone, oldest first
	AsOf         string      `json:"as_of"`
}

// GridBatch is a page of decisions that were made at once.
type GridBatch struct {
	Class int         `json:"class"` // that the page was offered as
	Items []LabelPast `json:"items"`
}

func (p *GridProps) picked(item LabelItem) bool {
	for _, id := range p.Picked {
		if id == item.ID {
			return true
		}
	}
	return false
}

// className is the class of the group in the middle of a sentence.
func (p *GridProps) className() string {
	if p.Class == nil {
		return ""
	}
	return p.Class.Name
}

// gridCount says how many images there are.
func gridCount(n int) string {
	if n == 1 {
		return "1 image"
	}
	return fmt.Sprintf("%d images", n)
}

// LabelGroup is the group of like images that the labeling page offers.
type LabelGroup struct {
	Text string `json:"text"` // "27 likely cat"
}

// NewLabelGroup names a group of n images, or of at least n if that is the limit to
// which they were counted.
func NewLabelGroup(c winnow.Class, n, limit int) *LabelGroup {
	more := ""
	if n >= limit {
		more = "+"
	}
	return &LabelGroup{Text: fmt.Sprintf("%d%s likely %s", n, more, c.Name)}
}
