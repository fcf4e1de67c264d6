package views

import (
	"fmt"
	"strconv"

	"winnow"
)

func intValue(v *int) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(*v)
}

// whyWords reads the scores aloud.
func whyWords(classes []winnow.Class, s winnow.Scores) string {
	known := "The detector is unsure whether it is of a known class"
	switch {
	case s.Clean >= 0.6:
		known = "The detector takes it for a known class"
	case s.Clean <= 0.2:
		known = "The detector takes it for an unknown class"
	}
	about := ""
	if s.Predicted >= 0 && s.Predicted < len(classes) {
		about = "; the nearest known class is " + classes[s.Predicted].Name
	}
	unsure := "the classifier is sure of the class"
	if s.Info >= 0.5 {
		unsure = "the classifier is unsure of the class, so a label teaches it something"
	}
	return fmt.Sprintf("%s (known with %s)%s; %s.", known, Percent(s.Clean), about, unsure)
}

// standing reports whether the entry is the image's current label: the newest
// event that labels it and that no later event supersedes.
func standing(history []winnow.HistoryEntry, e winnow.HistoryEntry) bool {
	if e.Kind == winnow.EventUndo {
		return false
	}
	for _, other := range history {
		if other.Supersedes == e.ID {
			return false
		}
	}
	return true
}

func historyBy(e winnow.HistoryEntry) string {
	who := e.User
	if who == "" {
		who = "the command line"
	}
	switch {
	case e.Kind == winnow.EventImport:
		return "imported by " + who
	case e.Round >= 0:
		return fmt.Sprintf("%s, round %d", who, e.Round)
	default:
		return who
	}
}
