package views

import (
	"fmt"
	"strconv"
	"strings"

	"winnow"
)

// LabelProps is the labeling page.
type LabelProps struct {
	Page
	Project   winnow.Project
	Round     *LabelRound // nil while the project has none
	Item      *LabelItem  // the image to answer; nil while there is none
	Wait      *LabelWait  // why there is none
	Recent    []LabelPast // the user's last decisions, newest first
	Notice    string      // what became of the answer just sent, when it needs saying
	ClientKey string      // makes a form sent twice one decision
	UndoKey   string
	ShownAt   int64             // Unix milliseconds, for the duration of answers without JavaScript
	Keys      map[string]string // key of each action, as winnow.Keys.Of gives it
	Boot      LabelBoot
}

// LabelBoot is what static/js/label.js starts from.
type LabelBoot struct {
	Base         string      `json:"base"` // URL of the page
	User         int64       `json:"user"`
	Project      int64       `json:"project"`
	LeaseSeconds int         `json:"lease_seconds"`
	Keys         winnow.Keys `json:"keys"` // the person's own
	Round        *LabelRound `json:"round"`
	Item         *LabelItem  `json:"item"`
	Recent       []LabelPast `json:"recent"`
}

// LabelRound is how far a round has come.
type LabelRound struct {
	Number int    `json:"number"`
	State  string `json:"state"`
	Total  int    `json:"total"`
	Done   int    `json:"done"`
	// Fixed says why no answer can be taken back any more; "" while they can.
	Fixed string `json:"fixed,omitempty"`
}

// LabelItem is an image to label, without its scores: they would anchor people.
type LabelItem struct {
	ID        int64  `json:"id"`
	Src       string `json:"src"`
	Thumb     string `json:"thumb"`
	Width     int    `json:"width"`
	Height    int    `json:"height"`
	Suggested *int   `json:"suggested,omitempty"` // the class that the model predicts, where an admin shows it
}

// LabelPast is a decision that can be taken back.
type LabelPast struct {
	Item    LabelItem `json:"item"`
	Verdict string    `json:"verdict"`
	Class   int       `json:"class"` // -1 unless known
}

// LabelWait says why there is nothing to label, and what comes next.
type LabelWait struct {
	Title    string   `json:"title"`
	Detail   string   `json:"detail"`
	Fraction *float64 `json:"fraction,omitempty"` // of the work until there is
	Action   string   `json:"action,omitempty"`
	Href     string   `json:"href,omitempty"`
}

// fixed is why the answers of the page stand, "" while they can be taken back.
func (p *LabelProps) fixed() string {
	if p.Round == nil {
		return ""
	}
	return p.Round.Fixed
}

// Left is how many images of the round nobody has decided.
func (r *LabelRound) Left() int { return r.Total - r.Done }

// keyed is the answer with the person's own key, marked if it is what the model
// suggests for the image.
func (p *LabelProps) keyed(a answer) answer {
	a.Key = p.key(a.Action)
	a.Suggested = p.Item != nil && p.Item.Suggested != nil && a.Action == fmt.Sprintf("class:%d", *p.Item.Suggested)
	return a
}

// otherTheme is what the button for the colours changes to.
func (p *LabelProps) otherTheme() (value, name string) {
	if p.Theme == "light" {
		return "dark", "Dark"
	}
	return "light", "Light"
}

// key is what is printed on the key of an action, on a US keyboard.
func (p *LabelProps) key(action string) string { return winnow.KeyLabel(p.Keys[action]) }

// keyRow is an action with its name in the panel of keys.
type keyRow struct{ Action, Name string }

// keyRows lists what has a key in this project.
func (p *LabelProps) keyRows() []keyRow {
	var rows []keyRow
	for _, a := range winnow.KeyActions() {
		row := keyRow{a.Action, a.Name}
		if i, ok := strings.CutPrefix(a.Action, "class:"); ok {
			index, err := strconv.Atoi(i)
			if err != nil || index >= len(p.Project.Classes) {
				continue
			}
			row.Name = p.Project.Classes[index].Name
		}
		rows = append(rows, row)
	}
	return rows
}

// answer is one button of the page.
type answer struct {
	Value     string // of the form field "answer"
	Action    string // what its key is kept under
	Name      string
	Key       string
	Colour    string
	Kind      string // class, unknown, skip or unreadable
	Suggested bool   // by the model
}

// Short is its name where there is little room.
func (a answer) Short() string {
	if a.Kind == "unknown" {
		return "Unknown"
	}
	return a.Name
}

var (
	unknownAnswer    = answer{Value: "unknown", Action: "unknown", Name: "Unknown class", Key: "U", Colour: winnow.UnknownColour, Kind: "unknown"}
	skipAnswer       = answer{Value: "skip", Action: "skip", Name: "Skip", Key: "S", Kind: "skip"}
	unreadableAnswer = answer{Value: "unreadable", Action: "unreadable", Name: "Unreadable", Key: "X", Kind: "unreadable"}
)

func classAnswer(c winnow.Class) answer {
	return answer{Value: fmt.Sprintf("known:%d", c.Index), Action: fmt.Sprintf("class:%d", c.Index), Name: c.Name, Key: c.Key, Colour: c.Colour, Kind: "class"}
}

// answerOf finds the button that gave a past decision.
func (p *LabelProps) answerOf(past LabelPast) answer {
	switch winnow.Verdict(past.Verdict) {
	case winnow.VerdictUnknown:
		return unknownAnswer
	case winnow.VerdictSkip:
		return skipAnswer
	case winnow.VerdictUnreadable:
		return unreadableAnswer
	}
	if past.Class >= 0 && past.Class < len(p.Project.Classes) {
		return classAnswer(p.Project.Classes[past.Class])
	}
	return answer{Name: past.Verdict, Kind: "skip"}
}

// filterFrom is the number of classes above which keys run out and the page
// offers to type.
const filterFrom = 20
