// Package docs_test writes the reference pages from the program, and holds all pages
// against it.
package docs_test

import (
	"bytes"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/app"
)

var update = flag.Bool("update", false, "write the reference pages")

func TestSettingsPage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# Settings of a project

Every hyper-parameter is a setting of the project, and a round keeps a frozen copy of them all. The
defaults are the method's published ones: right for a GPU and a large pool. On a CPU, begin with a smaller
budget and fewer epochs, as the demo project does.

This page is written by ` + "`make generate`" + ` from the table that validates them.
`)
	defaults := winnow.DefaultSettings()
	group := ""
	for _, f := range defaults.Fields() {
		if f.Group != group {
			group = f.Group
			fmt.Fprintf(&b, "\n## %s\n\n| setting | default | allowed | what it is |\n| --- | --- | --- | --- |\n", group)
		}
		label := f.Label
		if f.Unit != "" {
			label += ", " + f.Unit
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", f.Name, f.String(), allowed(f), strings.TrimSpace("**"+label+".** "+f.Help))
	}
	compare(t, "settings.md", b.String())
}

func allowed(f winnow.Setting) string {
	switch {
	case f.Choice != nil:
		return strings.Join(f.Choices, ", ")
	case f.Bool != nil:
		return "true, false"
	case f.OpenMin:
		return fmt.Sprintf("above %v, to %v", f.Min, f.Max)
	default:
		return fmt.Sprintf("%v to %v", f.Min, f.Max)
	}
}

func TestCommandLinePage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`# The command line

Exit codes: 0 done, 1 failed, 2 the command was called wrongly. Every flag with a name in capitals beside it
can be given as that environment variable; a flag wins over it. The secret among them, ` + "`DATABASE_URL`" + `, can
also be the name of a file: ` + "`DATABASE_URL_FILE=/run/secrets/database_url`" + `. ` + "`winnow config`" + ` prints what
is in force and where each value came from.

This page is written by ` + "`make generate`" + ` from the commands' own help.
`)
	for _, command := range commands(t, nil) {
		fmt.Fprintf(&b, "\n## winnow %s\n\n```\n%s```\n", strings.Join(command, " "), run(t, append(command, "--help")...))
	}
	compare(t, "cli.md", b.String())
}

// section is a part of a command's help: a title, then indented lines.
var section = regexp.MustCompile(`(?m)^(\w[\w ]*):\n((?:  .*\n)+)`)

// commands lists the commands below one that do something themselves, as its help does.
func commands(t *testing.T, above []string) [][]string {
	t.Helper()
	var out [][]string
	for _, m := range section.FindAllStringSubmatch(run(t, slices.Concat(above, []string{"--help"})...), -1) {
		if slices.Contains([]string{"Usage", "Examples", "Flags"}, m[1]) {
			continue
		}
		for line := range strings.Lines(m[2]) {
			command := slices.Concat(above, strings.Fields(line)[:1])
			if below := commands(t, command); len(below) > 0 {
				out = append(out, below...)
			} else {
				out = append(out, command)
			}
		}
	}
	return out
}

// run is what winnow prints, without what depends on who runs it.
func run(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	env := map[string]string{"HOME": "/home/ann"}
	if code := app.Main(t.Context(), args, func(name string) string { return env[name] }, &out); code != 0 {
		t.Fatalf("winnow %s exits %d", strings.Join(args, " "), code)
	}
	return regexp.MustCompile(`\(default /\S*winnow\)`).ReplaceAllString(out.String(), "(default ~/.local/share/winnow, for root /var/lib/winnow)")
}

// compare holds a page against what it should be, or writes it.
func compare(t *testing.T, page, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/%s is not what the program says; make generate writes it (-want +got):\n%s", page, diff)
	}
}

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	shell    = regexp.MustCompile("(?s)```sh\n(.*?)```")
	heading  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	winnowAt = regexp.MustCompile(`(?m)(?:^|\s)winnow ([a-z]+)((?: [a-z]+)?)`)
)

// TestPagesAreTrue holds every page against the tree and the program: its relative
// links lead to files and headings that are there, and the commands it shows exist.
func TestPagesAreTrue(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("*.md")
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 5 {
		t.Fatalf("found only the pages %v", pages)
	}
	known := map[string]bool{}
	for _, c := range commands(t, nil) {
		known[c[0]] = true
		known[strings.Join(c, " ")] = true
	}
	for _, page := range append(pages, "../README.md") {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, problem := range falsehoods(filepath.Dir(page), string(data), known) {
			t.Errorf("%s: %s", page, problem)
		}
	}
}

func TestPagesSeeFalsehoods(t *testing.T) {
	t.Parallel()
	known := map[string]bool{"serve": true, "user": true, "user create": true}
	tests := map[string]struct {
		page string
		want []string
	}{
		"good":       {"[a](docs_test.go) [b](https://example.org/x) [c](#a-b)\n## A b\n```sh\nwinnow serve # x\nDATABASE_URL=x winnow user create --admin\n```", nil},
		"no file":    {"[a](nowhere.md)", []string{"nowhere.md is not there"}},
		"no heading": {"[a](#nowhere)\n# Here", []string{"#nowhere is no heading"}},
		"no command": {"```sh\nwinnow server\n```", []string{"there is no command winnow server"}},
		"no subcommand": {
			"```sh\nwinnow user make\n```", []string{"there is no command winnow user make"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, falsehoods(".", tt.page, known)); diff != "" {
				t.Errorf("falsehoods (-want +got):\n%s", diff)
			}
		})
	}
}

// falsehoods lists what a page in a folder says that is not so.
func falsehoods(dir, page string, known map[string]bool) []string {
	var out []string
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		u, err := url.Parse(m[1])
		if err != nil || u.Scheme != "" {
			continue
		}
		text := page
		if u.Path != "" {
			data, err := os.ReadFile(filepath.Join(dir, u.Path))
			if err != nil {
				out = append(out, u.Path+" is not there")
				continue
			}
			text = string(data)
		}
		if u.Fragment != "" && !hasHeading(text, u.Fragment) {
			out = append(out, "#"+u.Fragment+" is no heading")
		}
	}
	for _, block := range shell.FindAllStringSubmatch(page, -1) {
		for _, m := range winnowAt.FindAllStringSubmatch(block[1], -1) {
			// The second word is a command where the first has some below it.
			if command := m[1] + m[2]; !known[m[1]] || hasBelow(known, m[1]) && !known[command] {
				out = append(out, "there is no command winnow "+command)
			}
		}
	}
	return out
}

func hasBelow(known map[string]bool, command string) bool {
	for c := range known {
		if strings.HasPrefix(c, command+" ") {
			return true
		}
	}
	return false
}

// hasHeading reports whether a heading of the page becomes the anchor.
func hasHeading(page, anchor string) bool {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		slug := strings.ReplaceAll(strings.ToLower(m[1]), " ", "-")
		if regexp.MustCompile(`[^\p{L}\p{N}_-]`).ReplaceAllString(slug, "") == anchor {
			return true
		}
	}
	return false
}
