package views

import (
	"fmt"
	"strings"

	"winnow"
	"winnow/views/chart"
)

// RoundProps is a round's page.
type RoundProps struct {
	Page
	Project     *winnow.Project
	Round       *winnow.Round
	Live        string // address of the event stream; empty when nothing moves any more
	Items       []winnow.Item
	Filter      winnow.ItemFilter
	First, Next string
	Newest      bool                // no later round has started
	Reviews     winnow.ReviewCounts // what waits for an admin; zero for anybody else
}

// waits reports whether the page leads to the review queue: from the newest round, for
// what waits holds it open.
func (p RoundProps) waits() bool { return p.Newest && p.Reviews.Total > 0 }

// sliceRow is a part of a round's items that was chosen in one way.
type sliceRow struct {
	Slice                 winnow.Slice
	Name, How             string
	Total, Known, Unknown int
}

// slices are the parts of a round's items, none if there is but the query.
func (p RoundProps) slices() []sliceRow {
	c := p.Round.Counts
	if c.AuditTotal == 0 {
		return nil
	}
	return []sliceRow{
		{winnow.SliceQuery, "Query", "chosen by " + p.Round.Strategy, c.Total - c.AuditTotal, c.Known - c.AuditKnown, c.Unknown - c.AuditUnknown},
		{winnow.SliceAudit, "Audit", "drawn at random: what the pool gives", c.AuditTotal, c.AuditKnown, c.AuditUnknown},
	}
}

func (r sliceRow) share() string {
	n := r.Known + r.Unknown
	if n == 0 {
		return "—"
	}
	low, high := chart.Wilson(r.Known, n)
	return fmt.Sprintf("%s (%s to %s)", Share(float64(r.Known)/float64(n)), Share(low), Share(high))
}

func (p RoundProps) sliceURL(s winnow.Slice, verdict string, n int) string {
	if n == 0 {
		return ""
	}
	path := "?slice=" + string(s)
	if verdict != "" {
		path += "&verdict=" + verdict
	}
	return RoundURL(p.Round, path+"#images")
}

func (p RoundProps) admin() bool { return p.Page.Project.Role.Allows(winnow.RoleAdmin) }

func (p RoundProps) annotator() bool { return p.Page.Project.Role.Allows(winnow.RoleAnnotator) }

// working reports whether a worker has the round, or should have.
func working(r *winnow.Round) bool {
	return r.State == winnow.RoundQueued || r.State == winnow.RoundTraining || r.State == winnow.RoundScoring
}

type stage struct {
	Name  string
	Class string // done, now, bad or empty
}

// stages are the steps of a round, with how far it came.
func stages(r *winnow.Round) []stage {
	names := []winnow.RoundState{winnow.RoundQueued, winnow.RoundTraining, winnow.RoundScoring, winnow.RoundLabeling, winnow.RoundClosed}
	at := len(names)
	for i, n := range names {
		if n == r.State {
			at = i
		}
	}
	ended := r.State == winnow.RoundFailed || r.State == winnow.RoundCancelled
	if ended {
		at = reached(r)
	}
	out := make([]stage, 0, len(names))
	for i, n := range names {
		s := stage{Name: string(n)}
		switch {
		case i < at, i == at && n == winnow.RoundClosed:
			s.Class = "done"
		case i == at && ended:
			s.Name, s.Class = string(r.State), "bad"
		case i == at:
			s.Class = "now"
		}
		out = append(out, s)
	}
	return out
}

// reached is the stage in which a round ended early.
func reached(r *winnow.Round) int {
	switch {
	case !r.LabelingAt.IsZero():
		return 3
	case r.Progress.Stage == "scoring" || r.Progress.Stage == "querying" || r.Progress.Stage == "saving":
		return 2
	case !r.StartedAt.IsZero():
		return 1
	default:
		return 0
	}
}

// RoundSentence says where a round stands, in words.
func RoundSentence(r *winnow.Round) string {
	switch r.State {
	case winnow.RoundQueued:
		return fmt.Sprintf("Round %d waits for a worker.", r.Number)
	case winnow.RoundTraining, winnow.RoundScoring:
		return fmt.Sprintf("Round %d: %s.", r.Number, progressWords(r.Progress))
	case winnow.RoundLabeling:
		c := r.Counts
		return fmt.Sprintf("Round %d: %s of %s labeled, %s left.", r.Number, Count(c.Done()), Count(c.Total), Count(c.Left()))
	case winnow.RoundClosed:
		return strings.TrimSpace(fmt.Sprintf("Round %d is closed. %s", r.Number, KStory(r)))
	case winnow.RoundFailed:
		return fmt.Sprintf("Round %d failed. %s", r.Number, r.Error)
	default:
		return fmt.Sprintf("Round %d was cancelled. Its labels are kept.", r.Number)
	}
}

func progressWords(p winnow.Progress) string {
	var words string
	switch p.Stage {
	case "training":
		words = fmt.Sprintf("training the %s, epoch %d of %d", orElse(p.Network, "networks"), p.Epoch, p.Epochs)
	case "scoring":
		words = "scoring the pool"
		if p.ToScore > 0 {
			words = fmt.Sprintf("%s of %s images scored", Count(p.Scored), Count(p.ToScore))
		}
	case "querying":
		words = "choosing the images"
	case "saving":
		words = "saving the query"
	default:
		words = "loading the images"
	}
	if left := Left(p.SecondsLeft); left != "" {
		words += ", " + left
	}
	return words
}

func firstRoundSentence(p ProjectProps) string {
	if !p.admin() {
		return "No round has started yet. An admin of the project starts the first one."
	}
	if p.Project.Counts.Known == 0 {
		return fmt.Sprintf("No image is labeled yet, so round 0 asks about %s drawn at random.", Plural(min(int64(p.Project.Settings.Budget), p.Project.Counts.Unlabeled()), "image", "images"))
	}
	return fmt.Sprintf("Round 0 trains on the %s and asks about the %s most worth a label.",
		Plural(p.Project.Counts.Known+p.Project.Counts.Unknown, "labeled image", "labeled images"), Plural(min(int64(p.Project.Settings.Budget), p.Project.Counts.Unlabeled()), "image", "images"))
}

func lossChart(curves []winnow.LossCurve) string {
	out := make([]chart.Curve, len(curves))
	for i, c := range curves {
		out[i] = chart.Curve{Name: c.Network, Values: c.Loss}
	}
	return chart.Loss(out)
}

func precisionOf(r *winnow.Round) *float64 {
	if p, ok := r.Counts.Precision(); ok {
		return &p
	}
	return nil
}

// precisionWords is a round's precision with its interval.
func precisionWords(r *winnow.Round) (value, of string) {
	p, ok := r.Counts.Precision()
	if !ok {
		return "—", "nothing labeled yet"
	}
	low, high := chart.Wilson(queryBase(r.Counts))
	return Share(p), fmt.Sprintf("%s to %s; target %s", Share(low), Share(high), Share(r.Settings.TargetPrecision))
}

func sharePointer(v *float64) string {
	if v == nil {
		return "—"
	}
	return Share(*v)
}

func percentPointer(v *float64) string {
	if v == nil {
		return "—"
	}
	return Percent(*v)
}

// kCell is the story of k in the table of rounds.
func kCell(r *winnow.Round) string {
	if r.State == winnow.RoundClosed {
		return KStory(r)
	}
	if r.State == winnow.RoundFailed {
		return r.Error
	}
	return ""
}

func orElse(s, otherwise string) string {
	if s != "" {
		return s
	}
	return otherwise
}

// filterLink is one of a round's outcomes as a filter of its images.
type filterLink struct {
	Name    string
	Verdict string
	N       int
}

func (p RoundProps) filters() []filterLink {
	c := p.Round.Counts
	return []filterLink{
		{"All", "", c.Total},
		{"Known", string(winnow.VerdictKnown), c.Known},
		{"Unknown", string(winnow.VerdictUnknown), c.Unknown},
		{"Skipped", string(winnow.VerdictSkip), c.Skipped},
		{"Unreadable", string(winnow.VerdictUnreadable), c.Unreadable},
		{"Not labeled", winnow.Unlabeled, c.Left()},
	}
}

func (p RoundProps) filterURL(l filterLink) string {
	if l.Verdict == "" {
		return RoundURL(p.Round, "#images")
	}
	return RoundURL(p.Round, "?verdict="+l.Verdict+"#images")
}

// imageURL is the address of an image's page.
func imageURL(project winnow.ProjectID, id winnow.ImageID) string {
	return ProjectURL(project, fmt.Sprintf("/images/%d", id))
}

func thumbURL(project winnow.ProjectID, id winnow.ImageID) string {
	return imageURL(project, id) + "/thumb"
}

// settingRow is a setting of a round as its page lists it.
type settingRow struct{ Label, Value string }

func roundSettings(r *winnow.Round) []settingRow {
	s := r.Settings
	var rows []settingRow
	for _, f := range s.Fields() {
		v := f.String()
		if f.Unit != "" {
			v += " " + f.Unit
		}
		rows = append(rows, settingRow{f.Label, v})
	}
	return rows
}
