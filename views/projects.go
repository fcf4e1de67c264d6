package views

import (
	"strings"

	"winnow"
)

// maxClassesInList is how many classes a project names in the list of projects.
const maxClassesInList = 8

// projectLine says where a project stands, in one line.
func projectLine(s winnow.ProjectSummary) string {
	c := s.Counts
	if c.Pool == 0 {
		return "No images yet."
	}
	parts := []string{
		Plural(c.Pool, "image", "images") + " in the pool",
		Count(c.Known) + " known",
		Count(c.Unknown) + " unknown",
		Count(c.Unlabeled()) + " not labeled",
	}
	if s.Latest != nil && s.Latest.State == winnow.RoundLabeling {
		parts = append(parts, Plural(s.Latest.Counts.Left(), "image", "images")+" to label now")
	}
	return strings.Join(parts, " · ")
}

// stateClass is how a round's state looks beside its word.
func stateClass(s winnow.RoundState) string {
	switch {
	case s.Open():
		return "live"
	case s == winnow.RoundFailed:
		return "bad"
	default:
		return ""
	}
}
