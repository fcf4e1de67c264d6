package winnow_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"winnow"
)

func TestNewClasses(t *testing.T) {
	t.Parallel()
	many := func(n int) []string {
		names := make([]string, n)
		for i := range names {
			names[i] = fmt.Sprint("class ", i)
		}
		return names
	}
	tests := map[string]struct {
		names []string
		err   string // part of the message; empty when the names are good
	}{
		"one":                 {[]string{"ship"}, ""},
		"trimmed":             {[]string{"  ship "}, ""},
		"any script":          {[]string{"船", "корабль", "🚢", "Vogel & Fisch", `<b>"bold"</b>`}, ""},
		"the most":            {many(winnow.MaxClasses), ""},
		"longest":             {[]string{strings.Repeat("é", winnow.MaxClassName)}, ""},
		"none":                {nil, "at least one"},
		"too many":            {many(winnow.MaxClasses + 1), "201 classes"},
		"empty":               {[]string{"ship", " "}, "is empty"},
		"invisible":           {[]string{"\u200b\u2060"}, "is empty"},
		"too long":            {[]string{strings.Repeat("a", 10_000)}, "10000 characters; the limit is 80"},
		"control character":   {[]string{"a\x00b"}, "control character"},
		"line break":          {[]string{"a\nb"}, "control character"},
		"direction override":  {[]string{"ab\u202ecd"}, "control character"},
		"not UTF-8":           {[]string{"a\xff"}, "not valid UTF-8"},
		"twice":               {[]string{"ship", "Ship"}, "named twice"},
		"twice after folding": {[]string{"s", "ſ"}, "named twice"}, // ClassByName could not tell them apart
		"unknown":             {[]string{"UnKnown"}, "has the unknown class already"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			classes, err := winnow.NewClasses(tt.names)
			if tt.err != "" {
				wantInvalid(t, err, "classes", tt.err)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkClasses(t, tt.names, classes)
		})
	}
}

func FuzzNewClasses(f *testing.F) {
	f.Add("ship\nbird\nhorse")
	f.Add("s\nſ\nK\nK")
	f.Add("<script>alert(1)</script>")
	f.Fuzz(func(t *testing.T, lines string) {
		names := strings.Split(lines, "\n")
		classes, err := winnow.NewClasses(names)
		if err != nil {
			wantInvalid(t, err, "classes", "")
			return
		}
		checkClasses(t, names, classes)
		p := winnow.Project{Name: "p", Classes: classes, Settings: winnow.DefaultSettings()}
		if err := p.Validate(); err != nil {
			t.Errorf("a project with these classes is not valid: %v", err)
		}
		for _, c := range classes {
			if found, ok := p.ClassByName(c.Name); !ok || found != c {
				t.Errorf("ClassByName(%q) = %v, %v", c.Name, found, ok)
			}
		}
	})
}

// checkClasses holds what is true of any accepted list of classes.
func checkClasses(t *testing.T, names []string, classes []winnow.Class) {
	t.Helper()
	if len(classes) != len(names) {
		t.Fatalf("%d names became %d classes", len(names), len(classes))
	}
	for i, c := range classes {
		switch {
		case c.Index != i:
			t.Errorf("class %d has index %d", i, c.Index)
		case c.Name != strings.TrimSpace(names[i]) || c.Name == "":
			t.Errorf("name %q became %q", names[i], c.Name)
		case !utf8.ValidString(c.Name) || utf8.RuneCountInString(c.Name) > winnow.MaxClassName:
			t.Errorf("accepted the name %q", c.Name)
		case c.Key != winnow.ClassKey(i):
			t.Errorf("class %d has key %q", i, c.Key)
		}
	}
}

func TestClassKey(t *testing.T) {
	t.Parallel()
	want := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "0", "⇧1", "⇧2", "⇧3", "⇧4", "⇧5", "⇧6", "⇧7", "⇧8", "⇧9", "⇧0", ""}
	for i, key := range want {
		if got := winnow.ClassKey(i); got != key {
			t.Errorf("ClassKey(%d) = %q, want %q", i, got, key)
		}
	}
	if got := winnow.ClassKey(-1); got != "" {
		t.Errorf("ClassKey(-1) = %q", got)
	}
}

func TestProjectValidate(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*winnow.Project)
		field  string
		err    string
	}{
		"good":                       {func(*winnow.Project) {}, "", ""},
		"own key and colour":         {func(p *winnow.Project) { p.Classes[0].Key, p.Classes[0].Colour = "q", "#ABCDEF" }, "", ""},
		"no name":                    {func(p *winnow.Project) { p.Name = "\t" }, "name", ""},
		"long name":                  {func(p *winnow.Project) { p.Name = strings.Repeat("x", 121) }, "name", "121 characters"},
		"long instructions":          {func(p *winnow.Project) { p.Instructions = strings.Repeat("x", 20_001) }, "instructions", "20001"},
		"instructions of zero bytes": {func(p *winnow.Project) { p.Instructions = "a\x00b" }, "instructions", "plain text"},
		"instructions not UTF-8":     {func(p *winnow.Project) { p.Instructions = "a\xff" }, "instructions", "plain text"},
		"no classes":                 {func(p *winnow.Project) { p.Classes = nil }, "classes", "at least one"},
		"index out of order":         {func(p *winnow.Project) { p.Classes[0].Index = 1 }, "classes", "index 1 at position 0"},
		"colour with more in it":     {func(p *winnow.Project) { p.Classes[0].Colour = "#123456;x:y" }, "classes", "#rrggbb"},
		"a bad setting":              {func(p *winnow.Project) { p.Settings.Budget = 0 }, "budget", "at least 1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			classes, err := winnow.NewClasses([]string{"ship", "bird"})
			if err != nil {
				t.Fatal(err)
			}
			p := winnow.Project{Name: "Ships", Classes: classes, Settings: winnow.DefaultSettings()}
			tt.change(&p)
			err = p.Validate()
			if tt.field == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			wantInvalid(t, err, tt.field, tt.err)
		})
	}
}

func TestPoolCountsUnlabeled(t *testing.T) {
	t.Parallel()
	c := winnow.PoolCounts{Pool: 100, Test: 7, Known: 10, Unknown: 20, Skipped: 3, Unreadable: 2}
	if got := c.Unlabeled(); got != 65 {
		t.Errorf("Unlabeled = %d, want 65", got)
	}
}

// wantInvalid fails unless err says that field is invalid, with message in its text.
func wantInvalid(t *testing.T, err error, field, message string) {
	t.Helper()
	if winnow.ErrorCode(err) != winnow.CodeInvalid {
		t.Fatalf("error %v has code %q, want %q", err, winnow.ErrorCode(err), winnow.CodeInvalid)
	}
	got := winnow.ErrorMessage(err)
	if !strings.HasPrefix(got, field+": ") || !strings.Contains(got, message) {
		t.Errorf("message %q, want field %s and %q", got, field, message)
	}
	if !utf8.ValidString(got) || len(got) > 1000 {
		t.Errorf("message of %d bytes is not fit to show: %q", len(got), got)
	}
}
