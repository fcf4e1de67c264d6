package winnow_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestHouseRules holds the source against the rules that a parser can see.
func TestHouseRules(t *testing.T) {
	t.Parallel()
	for _, p := range list(t, "") {
		if slices.Contains([]string{"models", "utils", "util", "common", "helpers", "misc"}, p.Name) {
			t.Errorf("%s: a package is named after what it is for, not %q", p.ImportPath, p.Name)
		}
		doc := p.Doc
		for _, name := range slices.Concat(p.GoFiles, p.TestGoFiles, p.XTestGoFiles) {
			src, err := os.ReadFile(filepath.Join(p.Dir, name))
			if err != nil {
				t.Fatal(err)
			}
			file := parse(t, name, src)
			if len(p.GoFiles) == 0 && doc == "" {
				doc = file.Doc.Text() // a package of tests only
			}
			if ast.IsGenerated(file) {
				continue
			}
			for _, v := range breaches(file, within(relative(p.ImportPath), "ml") && slices.Contains(p.GoFiles, name)) {
				t.Errorf("%s/%s: %s", relative(p.ImportPath), name, v)
			}
		}
		if doc == "" {
			t.Errorf("%s has no doc comment that says what it is for", p.ImportPath)
		}
	}
}

// TestHouseRulesSeeBreaches feeds the checker source that breaks each rule once.
func TestHouseRulesSeeBreaches(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		src  string
		want []string
	}{
		"clean": {"package x\n// F does.\nfunc F() {}\nfunc g() {}\ntype T struct{}\nfunc (T) init() {}", nil},
		"wiring in init": {
			"package x\nfunc init() {}",
			[]string{"func init: wiring belongs in app"},
		},
		"undocumented": {
			"package x\nfunc F() {}\nfunc (T) M() {}",
			[]string{"F is exported and has no doc comment"},
		},
		"wide interface": {
			"package x\ntype Store interface { A(); B(); C(); D(); E(); F(); G(); H(); I() }",
			[]string{"interface Store has 9 methods; 8 is the most"},
		},
		"offset": {
			"package x\nconst q = `SELECT id FROM t ORDER BY id LIMIT 10\n " + "OFFSET 20`",
			[]string{"SQL with OFFSET: page by key"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, breaches(parse(t, "x.go", []byte(tt.src)), true)); diff != "" {
				t.Errorf("breaches (-want +got):\n%s", diff)
			}
		})
	}
}

// TestMainIsShort keeps the program in app, where it can be tested.
func TestMainIsShort(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("cmd/winnow/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(src, []byte("\n")); n > 40 {
		t.Errorf("cmd/winnow/main.go has %d lines; 40 is the most", n)
	}
}

// breaches lists the rules that a file breaks. documented asks for a doc comment on
// every exported function; what a method does is said once, at its interface.
func breaches(file *ast.File, documented bool) []string {
	var out []string
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Name.Name == "init" && n.Recv == nil {
				out = append(out, "func init: wiring belongs in app")
			}
			if documented && n.Name.IsExported() && n.Doc == nil && n.Recv == nil {
				out = append(out, n.Name.Name+" is exported and has no doc comment")
			}
		case *ast.TypeSpec:
			if i, ok := n.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > 8 {
				out = append(out, fmt.Sprintf("interface %s has %d methods; 8 is the most", n.Name.Name, i.Methods.NumFields()))
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING && strings.Contains(n.Value, "SELECT") && slices.Contains(strings.Fields(n.Value), "OFFSET") {
				out = append(out, "SQL with OFFSET: page by key")
			}
		}
		return true
	})
	return out
}

func parse(t *testing.T, name string, src []byte) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
