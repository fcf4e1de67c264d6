package views

import (
	"fmt"
	"net/url"

	"winnow"
)

// ReviewProps is the admin's queue of answers that need a second look, one at a time.
type ReviewProps struct {
	Page
	Project   *winnow.Project
	Entry     *winnow.ReviewItem // nil when the list ends here
	Waiting   int                // in the whole queue, at most winnow.MaxCounted
	After     string             // the entry is the first behind this
	Next      string             // address of what comes behind the entry
	Corrected winnow.ImageID     // what the last form corrected, 0 for nothing
	ClientKey string             // makes a form sent twice one correction
	Error     FormError
}

func reviewURL(project winnow.ProjectID) string { return ProjectURL(project, "/review") }

// ReviewAfter is the address of the entry behind a cursor; behind the last one it is
// that of the list's end.
func ReviewAfter(project winnow.ProjectID, cursor string) string {
	if cursor == "" {
		return reviewURL(project) + "?end=1"
	}
	return reviewURL(project) + "?after=" + url.QueryEscape(cursor)
}

// answers are the buttons that correct, as on the labeling page.
func (p ReviewProps) answers() []answer {
	all := make([]answer, 0, len(p.Project.Classes)+3)
	for _, c := range p.Project.Classes {
		all = append(all, classAnswer(c))
	}
	return append(all, unknownAnswer, skipAnswer, unreadableAnswer)
}

// reviewReason says why an item waits.
func reviewReason(e *winnow.ReviewItem) string {
	switch {
	case e.Review && len(e.Flags) > 0:
		return Plural(len(e.AllAnswers), "answer", "answers") + ", no majority; and flagged"
	case e.Review:
		return Plural(len(e.AllAnswers), "answer", "answers") + ", no majority"
	case len(e.Flags) == 1:
		return "Flagged by " + e.Flags[0].User
	default:
		return "Flagged by " + Plural(len(e.Flags), "person", "people")
	}
}

// waitingWords is how many items wait. Counting stops where a number says no more.
func waitingWords(n int) string {
	if n >= winnow.MaxCounted {
		return Count(winnow.MaxCounted-1) + "+"
	}
	return Count(n)
}

// ReviewWords says on a round's page that something waits for an admin.
func ReviewWords(disputed, flagged int) string {
	switch {
	case disputed > 0 && flagged > 0:
		return fmt.Sprintf("%s and %s wait for you", Plural(disputed, "disagreement", "disagreements"), Plural(flagged, "flagged image", "flagged images"))
	case disputed == 1:
		return "1 disagreement waits for you"
	case disputed > 1:
		return Count(disputed) + " disagreements wait for you"
	case flagged == 1:
		return "1 flagged image waits for you"
	default:
		return Count(flagged) + " flagged images wait for you"
	}
}

// took is how long somebody looked before they answered.
func took(ms int64) string {
	if ms <= 0 {
		return ""
	}
	return "took " + Seconds(float64(ms)/1000)
}

func flagNote(f winnow.Flag) string {
	if f.Note == "" {
		return "Flagged without a note."
	}
	return f.Note
}
