package handlers

import (
	"fmt"

	"winnow"
	"winnow/views"
)

// labelWait says why there is nothing to label now, and what comes next.
func labelWait(p *winnow.Project, role winnow.Role, round *winnow.Round) *views.LabelWait {
	project := views.ProjectURL(p.ID, "")
	admin := role.Allows(winnow.RoleAdmin)
	switch {
	case round == nil && admin:
		return &views.LabelWait{
			Title: "No round yet", Detail: "Start the first round: it chooses the images to label.",
			Action: "Go to the project", Href: project,
		}
	case round == nil:
		return &views.LabelWait{Title: "No round yet", Detail: "Images show up here as soon as an admin starts the first round."}
	}
	name := fmt.Sprintf("Round %d", round.Number)
	page := fmt.Sprintf("%s/rounds/%d", project, round.Number)
	switch round.State {
	case winnow.RoundQueued:
		return &views.LabelWait{Title: name + " waits for a worker", Detail: "Labeling starts here by itself.", Fraction: new(float64)}
	case winnow.RoundTraining, winnow.RoundScoring:
		fraction := round.Progress.Fraction
		return &views.LabelWait{
			Title:    name + " is being prepared",
			Detail:   preparing(round.Progress),
			Fraction: &fraction,
		}
	case winnow.RoundLabeling:
		return &views.LabelWait{
			Title:  "The last images are with others",
			Detail: "If somebody does not answer, they come to you. Nothing else is left in this round.",
		}
	case winnow.RoundFailed:
		return &views.LabelWait{
			Title: name + " failed", Detail: "No label is lost. An admin can try it again.",
			Action: "Open the round", Href: page,
		}
	case winnow.RoundCancelled:
		return &views.LabelWait{
			Title: name + " was cancelled", Detail: "No label is lost. Images show up here when a new round starts.",
			Action: "Go to the project", Href: project,
		}
	}
	w := &views.LabelWait{Title: name + " is done", Action: "See what it bought", Href: page}
	if precision, ok := round.Counts.Precision(); ok {
		w.Detail = fmt.Sprintf("%d images labeled, %.0f%% of them of known classes. ", round.Counts.Done(), 100*precision)
	}
	switch {
	case p.Settings.AutoNext:
		w.Detail += "The next round starts by itself, and so does labeling here."
	case admin:
		w.Detail += "Start the next round on the project page."
		w.Action, w.Href = "Go to the project", project
	default:
		w.Detail += "Images show up here when an admin starts the next round."
	}
	return w
}

func preparing(p winnow.Progress) string {
	left := views.Left(p.SecondsLeft)
	if left != "" {
		left = ": " + left
	}
	return "The networks learn from the labels so far" + left + ". Labeling starts here by itself."
}
