package views

import (
	"fmt"

	"winnow"
	"winnow/views/chart"
)

// AnnotatorsProps is how everybody labels, for admins.
type AnnotatorsProps struct {
	Page
	Project     *winnow.Project
	People      []winnow.AnnotatorFigures
	First, Next string
}

// AnnotatorProps is how one person labels: for themselves, or for an admin.
type AnnotatorProps struct {
	Page
	Project *winnow.Project
	Figures winnow.AnnotatorFigures
	Days    []winnow.AnnotatorDay // newest first
	Own     bool                  // whoever looks is the one it is about
}

// smallBase is how many answers a share needs before it says something: below it a
// single answer moves it by more than 5 points.
const smallBase = 20

// shareOf is a share with its base. Of a small base it is the two counts, not a
// percentage that promises more than there is.
func shareOf(k, n int) (value, of string) {
	switch {
	case n == 0:
		return "—", "none yet"
	case n < smallBase:
		return fmt.Sprintf("%s of %s", Count(k), Count(n)), "too few to judge by"
	default:
		low, high := chart.Wilson(k, n)
		return Percent(float64(k) / float64(n)), fmt.Sprintf("of %s; %s to %s", Count(n), wholePercent(low), wholePercent(high))
	}
}

func wholePercent(v float64) string { return fmt.Sprintf("%.0f%%", 100*v) }

// Values of the gallery's filter by what an answer was beside the decision.
func byURL(project winnow.ProjectID, user winnow.UserID, answers winnow.AnswerFilter) string {
	if answers == "" {
		return imagesURL(project, "by", fmt.Sprint(user))
	}
	return imagesURL(project, "by", fmt.Sprint(user), "answers", string(answers))
}

func annotatorURL(project winnow.ProjectID, user winnow.UserID) string {
	return ProjectURL(project, fmt.Sprintf("/annotators/%d", user))
}

func pace(f winnow.AnnotatorFigures) string {
	n, ok := f.LabelsPerHour()
	if !ok {
		return "—"
	}
	return Count(int(n + .5))
}

func median(f winnow.AnnotatorFigures) string {
	if f.Median <= 0 {
		return "—"
	}
	return Seconds(f.Median.Seconds())
}

// figureLink leads to the images behind a count; nothing is behind zero.
func figureLink(n int, href string) string {
	if n == 0 {
		return ""
	}
	return href
}

// differing is how many of somebody's answers were not what was decided.
func differing(f winnow.AnnotatorFigures) int { return f.Shared - f.Agreed }

// goldWrong are the gold answers that were wrong; a skip is neither.
func goldWrong(f winnow.AnnotatorFigures) int {
	return f.GoldFalseKnown + f.GoldFalseUnknown + f.GoldWrongClass
}

// standings are the people of the page of whom a share is known, for a chart.
func (p AnnotatorsProps) standings(share func(winnow.AnnotatorFigures) (k, n int)) []chart.Standing {
	var rows []chart.Standing
	for _, f := range p.People {
		k, n := share(f)
		if n == 0 {
			continue
		}
		low, high := chart.Wilson(k, n)
		words, _ := shareOf(k, n)
		if n >= smallBase {
			words += " of " + Count(n)
		}
		rows = append(rows, chart.Standing{Name: f.User, Value: float64(k) / float64(n), Low: low, High: high, Words: words})
	}
	return rows
}

func (p AnnotatorsProps) agreement() []chart.Standing {
	return p.standings(func(f winnow.AnnotatorFigures) (int, int) { return f.Agreed, f.Shared })
}

func (p AnnotatorsProps) gold() []chart.Standing {
	return p.standings(func(f winnow.AnnotatorFigures) (int, int) { return f.GoldRight, f.Gold })
}

// daysShown is how many days the chart has room for.
const daysShown = 30

// daysChart draws the newest days, those without a label included.
func (p AnnotatorProps) daysChart() (string, bool) {
	if len(p.Days) == 0 {
		return "", false
	}
	last := p.Days[0].Day
	n := 1
	for _, d := range p.Days {
		if ago := int(last.Sub(d.Day).Hours()/24 + .5); ago < daysShown {
			n = max(n, ago+1)
		}
	}
	days := make([]chart.Day, n)
	for i := range days {
		days[i].Name = last.AddDate(0, 0, i-n+1).Format("2 Jan")
	}
	for _, d := range p.Days {
		if ago := int(last.Sub(d.Day).Hours()/24 + .5); ago < n {
			days[n-1-ago].N = d.Labels
		}
	}
	return chart.Days("Labels", days), true
}

func dayPace(d winnow.AnnotatorDay) string {
	return pace(winnow.AnnotatorFigures{Labels: d.Labels, Active: d.Active})
}

func shareCell(k, n int) string {
	if n == 0 {
		return "—"
	}
	return fmt.Sprintf("%s of %s", Count(k), Count(n))
}

func (p AnnotatorProps) heading() string {
	if p.Own {
		return "Your labels"
	}
	return p.Figures.User
}
