package views

import (
	"fmt"
	"strings"

	"winnow"
	"winnow/views/chart"
)

// ProjectProps is a project's page.
type ProjectProps struct {
	Page
	Project *winnow.Project
	Table   []*winnow.Round       // the page of rounds that the table shows, newest first
	Rounds  []*winnow.Round       // the newest, newest first
	History []winnow.RoundFigures // for the charts, oldest first
	Imports []winnow.Import       // newest first
	Older   string                // address of older rounds
	Live    string                // address of the event stream
}

func (p ProjectProps) latest() *winnow.Round {
	if len(p.Rounds) == 0 {
		return nil
	}
	return p.Rounds[0]
}

// openRound is the round that moves now, if any.
func (p ProjectProps) openRound() *winnow.Round {
	if r := p.latest(); r != nil && r.State.Open() {
		return r
	}
	return nil
}

// NextNumber is the number that a round started now would have.
func (p ProjectProps) nextNumber() int {
	if r := p.latest(); r != nil {
		return r.Number + 1
	}
	return 0
}

func (p ProjectProps) admin() bool { return p.Page.Project.Role.Allows(winnow.RoleAdmin) }

func (p ProjectProps) annotator() bool { return p.Page.Project.Role.Allows(winnow.RoleAnnotator) }

// historyWords say so when the charts do not show every round.
func (p ProjectProps) historyWords() string {
	if len(p.History) == 0 || p.History[0].Number == 0 {
		return ""
	}
	last := p.History[len(p.History)-1].Number
	return fmt.Sprintf("The charts show the newest %s of %s rounds, from round %s on.", Count(len(p.History)), Count(last+1), Count(p.History[0].Number))
}

func (p ProjectProps) precisionChart() (string, bool) {
	var query, audit []chart.Point
	for _, r := range p.History {
		if v, ok := r.Counts.Precision(); ok {
			low, high := chart.Wilson(queryBase(r.Counts))
			query = append(query, chart.Point{Round: r.Number, Value: v, Band: true, Low: low, High: high})
		}
		if v, ok := r.Counts.AuditPrecision(); ok {
			low, high := chart.Wilson(auditBase(r.Counts))
			audit = append(audit, chart.Point{Round: r.Number, Value: v, Band: true, Low: low, High: high})
		}
	}
	return chart.Precision(query, audit, p.Project.Settings.TargetPrecision), len(query) > 0
}

// queryBase is what the precision of the query is a share of: its knowns, and those
// with its unknowns.
func queryBase(c winnow.ItemCounts) (known, n int) {
	known = c.Known - c.AuditKnown
	return known, known + c.Unknown - c.AuditUnknown
}

// auditBase is the same of the audit slice.
func auditBase(c winnow.ItemCounts) (known, n int) {
	return c.AuditKnown, c.AuditKnown + c.AuditUnknown
}

// precisionWords say what the chart of precision shows.
func (p ProjectProps) precisionWords() string {
	words := "Share of queried images that were of known classes, with its 95% interval"
	if p.audited() {
		words += "; hollow, the same in the random audit slice: what the pool gives"
	}
	return words
}

// auditCell is a round's audit precision with its base, for these bases are small.
func auditCell(r *winnow.Round) string {
	v, ok := r.Counts.AuditPrecision()
	if !ok {
		return "—"
	}
	_, n := auditBase(r.Counts)
	return Share(v) + " of " + Count(n)
}

// audited reports whether a round of the charts has an audit slice.
func (p ProjectProps) audited() bool {
	for _, r := range p.History {
		if _, n := auditBase(r.Counts); n > 0 {
			return true
		}
	}
	return false
}

func (p ProjectProps) accuracyChart() (string, bool) {
	var points []chart.Point
	for _, r := range p.History {
		if a := r.TestAccuracy; a != nil {
			low, high := accuracyInterval(*a, r.TestImages)
			points = append(points, chart.Point{Round: r.Number, Value: *a, Band: r.TestImages > 0, Low: low, High: high})
		}
	}
	return chart.Accuracy(points), len(points) > 0
}

func accuracyInterval(accuracy float64, n int) (low, high float64) {
	return chart.Wilson(int(accuracy*float64(n)+.5), n)
}

func (p ProjectProps) outcomesChart() (string, bool) {
	var rounds []chart.Outcome
	for _, r := range p.History {
		if c := r.Counts; c.Done() > 0 {
			rounds = append(rounds, chart.Outcome{Round: r.Number, Known: c.Known, Unknown: c.Unknown, Skipped: c.Skipped, Unreadable: c.Unreadable})
		}
	}
	return chart.Outcomes(rounds), len(rounds) > 0
}

func poolBar(c winnow.PoolCounts) string {
	return chart.Bar([]chart.Part{
		{N: c.Known, Class: "bar-known", Name: "known"},
		{N: c.Unknown, Class: "bar-unknown", Name: "unknown"},
		{N: c.Skipped + c.Unreadable, Class: "bar-skipped", Name: "skipped or unreadable"},
		{N: c.Unlabeled(), Class: "rest", Name: "not labeled"},
	})
}

// latestPrecision is the newest round's precision with its interval, in words.
func (p ProjectProps) latestPrecision() (value, of string) {
	for _, r := range p.Rounds {
		if v, ok := r.Counts.Precision(); ok {
			low, high := chart.Wilson(queryBase(r.Counts))
			return Share(v), fmt.Sprintf("%s to %s, round %d", Share(low), Share(high), r.Number)
		}
	}
	return "—", "no round labeled yet"
}

func (p ProjectProps) latestAccuracy() (value, of string) {
	for _, r := range p.Rounds {
		if a := r.Metrics.TestAccuracy; a != nil {
			return Percent(*a), fmt.Sprintf("of %s, round %d", Plural(r.Metrics.TestImages, "test image", "test images"), r.Number)
		}
	}
	if p.Project.Counts.Test == 0 {
		return "—", "no test images"
	}
	return "—", "not trained yet"
}

// KStory says in words why k moved when the round closed, or did not.
func KStory(r *winnow.Round) string {
	s, next := r.Settings, r.Metrics.NextK
	if r.Metrics.Precision == nil {
		if next == nil {
			return ""
		}
		return fmt.Sprintf("No image was labeled known or unknown, so k stays %s.", Number(*next))
	}
	p := *r.Metrics.Precision
	target, z := Share(s.TargetPrecision), Share(s.KTolerance)
	said := fmt.Sprintf("Precision %s, within %s of %s", Share(p), z, target)
	above, below := p-s.TargetPrecision > s.KTolerance, s.TargetPrecision-p > s.KTolerance
	switch {
	case above:
		said = fmt.Sprintf("Precision %s, above %s + %s", Share(p), target, z)
	case below:
		said = fmt.Sprintf("Precision %s, below %s − %s", Share(p), target, z)
	}
	switch {
	case next == nil:
		return said + "."
	case *next > r.K, *next < r.K && below:
		return fmt.Sprintf("%s, so k went %s → %s.", said, Number(r.K), Number(*next))
	case *next < r.K:
		return fmt.Sprintf("%s, but the pool is too small for k = %s: k went %s → %s.", said, Number(r.K), Number(r.K), Number(*next))
	case above:
		return fmt.Sprintf("%s, but the pool allows no larger k: k stays %s.", said, Number(r.K))
	case below:
		return fmt.Sprintf("%s, but k goes no lower: k stays %s.", said, Number(r.K))
	default:
		return fmt.Sprintf("%s, so k stays %s.", said, Number(r.K))
	}
}

// imagesURL is the address of the gallery with filters, as "name", "value" pairs.
func imagesURL(project winnow.ProjectID, filters ...string) string {
	var b strings.Builder
	b.WriteString(ProjectURL(project, "/images"))
	sep := "?"
	for i := 0; i+1 < len(filters); i += 2 {
		b.WriteString(sep + filters[i] + "=" + filters[i+1])
		sep = "&"
	}
	return b.String()
}

// RoundURL is the address of a round's page, or of what is below it.
func RoundURL(r *winnow.Round, path string) string {
	return ProjectURL(r.ProjectID, fmt.Sprintf("/rounds/%d%s", r.Number, path))
}

// roundItems links a count to the images behind it; a zero has none.
func roundItems(r *winnow.Round, verdict string, n int) string {
	if n == 0 {
		return ""
	}
	return RoundURL(r, "?verdict="+verdict+"#images")
}
