package views

import (
	"fmt"
	"slices"
	"strconv"

	"winnow"
)

func intValue(v *int) string {
	if v == nil {
		return ""
	}
	return strconv.Itoa(*v)
}

func (p ImagesProps) admin() bool { return p.Page.Project.Role.Allows(winnow.RoleAdmin) }

func (p ImageProps) admin() bool { return p.Page.Project.Role.Allows(winnow.RoleAdmin) }

// answer is the image's label as the form of its correction names it.
func (p ImageProps) answer() string {
	if p.Image.Verdict == winnow.VerdictKnown {
		return fmt.Sprintf("known:%d", p.Image.Class)
	}
	return string(p.Image.Verdict)
}

func answerFilterName(a winnow.AnswerFilter) string {
	switch a {
	case winnow.AnswersDiffer:
		return "Differ from the label"
	case winnow.AnswersGoldWrong:
		return "Gold wrong"
	case winnow.AnswersFalseKnown:
		return "Gold: false known"
	case winnow.AnswersFalseUnknown:
		return "Gold: false unknown"
	default:
		return "Gold: wrong class"
	}
}

// answersWords say which answers the gallery shows.
func (p ImagesProps) answersWords() string {
	if p.Filter.By == 0 {
		return ""
	}
	switch p.Filter.Answers {
	case "":
		return "What " + p.Who + " answered, newest first."
	case winnow.AnswersDiffer:
		return "Where what " + p.Who + " answered is not what was decided, newest first."
	default:
		return "What " + p.Who + " answered to gold images, newest first: " + goldFilterWords[p.Filter.Answers] + "."
	}
}

var goldFilterWords = map[winnow.AnswerFilter]string{
	winnow.AnswersGoldWrong:    "all that went wrong",
	winnow.AnswersFalseKnown:   "of an unknown class, taken for a known one",
	winnow.AnswersFalseUnknown: "of a known class, taken for unknown",
	winnow.AnswersWrongClass:   "of one known class, taken for another",
}

// anybodyURL leads out of one person's answers.
func (p ImagesProps) anybodyURL() string {
	if p.Filter.Answers != "" && p.admin() {
		return imagesURL(p.Project.ID, "answers", string(p.Filter.Answers))
	}
	return imagesURL(p.Project.ID)
}

func (p ImagesProps) anybodyWords() string {
	if p.Filter.Answers != "" && p.admin() {
		return "Of everybody"
	}
	return "Show all images"
}

// answerDiffers reports whether the image's label is not what the person said.
func answerDiffers(a winnow.AnsweredImage) bool {
	return a.Verdict != a.Said.Verdict || a.Class != a.Said.Class
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

// history is what the reader may know of an image: answers to it as gold are for admins.
func (p ImageProps) history() []winnow.HistoryEntry {
	if p.admin() {
		return p.History
	}
	return slices.DeleteFunc(slices.Clone(p.History), func(e winnow.HistoryEntry) bool { return e.Slice == winnow.SliceGold })
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
