package winnow

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Limits of a project.
const (
	MaxClasses         = 200
	MaxClassName       = 80
	MaxProjectName     = 120
	MaxInstructions    = 20_000
	MaxImagesPerImport = 5_000_000
)

// Project is one labeling task: its known classes, instructions and settings.
type Project struct {
	ID           ProjectID
	Name         string
	Instructions string // plain text; blank lines separate paragraphs
	Classes      []Class
	ClassVersion int // grows by one whenever classes are added
	Settings     Settings
	CreatedAt    time.Time
	Counts       PoolCounts
}

// PoolCounts are kept, not counted: how many images a project has, and where its
// pool stands.
type PoolCounts struct {
	Pool, Test                          int64
	Known, Unknown, Skipped, Unreadable int64 // of the pool's images
}

// Unlabeled is the number of pool images that nobody has decided.
func (c PoolCounts) Unlabeled() int64 {
	return c.Pool - c.Known - c.Unknown - c.Skipped - c.Unreadable
}

// Class is a known class. Its Index is also its column in the networks' logits
// and never changes; classes are only ever added at the end.
type Class struct {
	Index  int    `json:"index"`
	Name   string `json:"name"`
	Key    string `json:"key"`    // the default key, "1".."9", "0"; then "!" etc. are Shift+digit; "" beyond 20
	Colour string `json:"colour"` // #rrggbb
}

// classColours is the Okabe-Ito set without black and grey (grey is the constant
// colour of unknown), then further hues told apart by lightness.
var classColours = []string{
	"#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7",
	"#88ccee", "#44aa99", "#117733", "#999933", "#ddcc77", "#cc6677", "#882255", "#aa4499",
	"#6699cc", "#661100", "#332288", "#b2df8a", "#fb9a99",
}

// UnknownColour is the one colour of the unknown class: buttons, charts, badges.
const UnknownColour = "#8a8f98"

// ClassKey returns the default key of the class at index i: the digits, then
// Shift with a digit (written "⇧1"), then none.
func ClassKey(i int) string {
	switch {
	case i < 0 || i >= 20:
		return ""
	case i < 10:
		return fmt.Sprint((i + 1) % 10)
	default:
		return fmt.Sprintf("⇧%d", (i-10+1)%10)
	}
}

// NewClasses makes classes of the names in their order, with keys and colours.
func NewClasses(names []string) ([]Class, error) {
	if len(names) == 0 {
		return nil, Invalid("classes", "Name at least one known class.")
	}
	if len(names) > MaxClasses {
		return nil, Invalid("classes", "%d classes are more than the limit of %d.", len(names), MaxClasses)
	}
	classes := make([]Class, 0, len(names))
	for i, name := range names {
		name = strings.TrimSpace(name)
		if err := validName("classes", "Class name", name, MaxClassName); err != nil {
			return nil, err
		}
		if strings.EqualFold(name, "unknown") {
			return nil, Invalid("classes", "%q is not a known class: every project has the unknown class already.", name)
		}
		if slices.ContainsFunc(classes, func(c Class) bool { return strings.EqualFold(c.Name, name) }) {
			return nil, Invalid("classes", "The class %q is named twice.", name)
		}
		classes = append(classes, Class{Index: i, Name: name, Key: ClassKey(i), Colour: classColours[i%len(classColours)]})
	}
	return classes, nil
}

// ClassByName finds a class by its name, ignoring case.
func (p *Project) ClassByName(name string) (Class, bool) {
	for _, c := range p.Classes {
		if strings.EqualFold(c.Name, strings.TrimSpace(name)) {
			return c, true
		}
	}
	return Class{}, false
}

// Validate reports the first rule that the project breaks.
func (p *Project) Validate() error {
	if err := validName("name", "Project name", p.Name, MaxProjectName); err != nil {
		return err
	}
	if n := utf8.RuneCountInString(p.Instructions); n > MaxInstructions {
		return Invalid("instructions", "The instructions have %d characters; the limit is %d.", n, MaxInstructions)
	}
	if !utf8.ValidString(p.Instructions) || strings.ContainsRune(p.Instructions, 0) {
		return Invalid("instructions", "The instructions are not plain text.")
	}
	names := make([]string, len(p.Classes))
	for i, c := range p.Classes {
		if c.Index != i {
			return Invalid("classes", "Class %q has index %d at position %d.", c.Name, c.Index, i)
		}
		if !colourPattern.MatchString(c.Colour) {
			return Invalid("classes", "The colour of class %q is not of the form #rrggbb.", c.Name)
		}
		names[i] = c.Name
	}
	if _, err := NewClasses(names); err != nil {
		return err
	}
	return p.Settings.Validate()
}

var colourPattern = regexp.MustCompile(`^#[0-9a-fA-F]{6}$`)

// validName holds a one-line name against its limit. Characters that reorder or break
// the text around them are refused: names stand in headings, buttons and CSV files.
func validName(field, what, s string, limit int) error {
	switch {
	case !utf8.ValidString(s):
		return Invalid(field, "%s is not valid UTF-8.", what)
	case utf8.RuneCountInString(s) > limit:
		return Invalid(field, "%s has %d characters; the limit is %d.", what, utf8.RuneCountInString(s), limit)
	}
	visible := false
	for _, r := range s {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029' {
			return Invalid(field, "%s has a control character.", what)
		}
		visible = visible || (unicode.IsGraphic(r) && !unicode.IsSpace(r))
	}
	if !visible {
		return Invalid(field, "%s is empty.", what)
	}
	return nil
}
