package winnow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rooms is the shape of the program: what the packages of each room may import of
// the module. A package belongs to the room with the longest matching path, and may
// always import its own room. "." is the root package.
var rooms = map[string][]string{
	".":            {},
	"migrations":   {},
	"static":       {},
	"password":     {},
	"imaging":      {"."},
	"views":        {".", "static"},
	"ml":           {"."},
	"ml/eaoa":      {"."},
	"ml/npy":       {"."},
	"ml/strategy":  {".", "ml/eaoa"},
	"ml/backend":   {"."},
	"ml/nn":        {".", "ml/backend"},
	"db":           {".", "migrations"},
	"db/local":     {"."},
	"jobs":         {".", "ml", "imaging"},
	"handlers":     {".", "views", "static", "password"},
	"handlers/api": {".", "handlers", "static"},
	"web":          {".", "views", "static", "handlers"},
	"app":          {".", "imaging", "ml", "db", "migrations", "jobs", "handlers", "views", "static", "web", "password"},
	"cmd":          {"app"},
	"deploy":       {},
	"docs":         {},
	"e2e":          {"."},
}

// banned says which packages from outside the module a room must not import. With
// deep set, not even through others.
var banned = []struct {
	room, pkg string
	deep      bool
	why       string
}{
	{"ml/eaoa", "github.com/gomlx", true, "the method is plain Go"},
	{"ml/npy", "github.com/gomlx", true, "the method is plain Go"},
	{"ml", "net/http", false, "ml knows no HTTP"},
	{"ml", "database/sql", false, "ml knows no database"},
	{"ml", "github.com/jackc", true, "ml knows no database"},
	{"imaging", "github.com/jackc", true, "imaging knows no database"},
	{"views", "github.com/jackc", true, "views do no I/O"},
	{"views", "net/http", false, "views do no I/O"},
	{"views", "os", false, "views do no I/O"},
	{"handlers", "github.com/jackc", true, "handlers see stores through interfaces"},
	{"handlers", "github.com/gomlx", true, "handlers do not compute"},
	{"web", "github.com/gomlx", true, "the web process does not compute"},
	{"db", "net/http", false, "db knows no HTTP"},
	{"db", "github.com/gomlx", true, "db does not compute"},
}

// listed is what the tests need of `go list`.
type listed struct {
	ImportPath   string
	Dir          string
	Name         string
	Doc          string
	GoFiles      []string
	TestGoFiles  []string
	XTestGoFiles []string
	Imports      []string
	Deps         []string // all that it reaches
}

const module = "winnow"

// TestImportGraph holds every package, with and without the optional backends,
// against the rooms.
func TestImportGraph(t *testing.T) {
	t.Parallel()
	for _, tags := range []string{"", "xla,onnx"} {
		t.Run("tags="+tags, func(t *testing.T) {
			t.Parallel()
			packages := list(t, tags)
			if len(packages) < 2 {
				t.Fatalf("go list found %d packages", len(packages))
			}
			for _, v := range violations(packages) {
				t.Error(v)
			}
		})
	}
}

// TestImportGraphSeesViolations feeds the checker made-up packages: it must object
// to each wrong arrow, and to nothing else.
func TestImportGraphSeesViolations(t *testing.T) {
	t.Parallel()
	pkg := func(name string, imports ...string) listed {
		return listed{ImportPath: name, Imports: imports, Deps: imports}
	}
	tests := map[string]struct {
		pkg  listed
		want []string
	}{
		"handlers to root and views": {pkg("winnow/handlers", "net/http", "winnow", "winnow/views"), nil},
		"own room":                   {pkg("winnow/ml/simulate", "winnow/ml/nn", "winnow/ml"), nil},
		"root to the library":        {pkg("winnow", "fmt", "net/mail"), nil},
		"handlers to db":             {pkg("winnow/handlers", "winnow/db"), []string{"winnow/handlers imports winnow/db: handlers may import ., views, static, password"}},
		"views to db":                {pkg("winnow/views", "winnow/db"), []string{"winnow/views imports winnow/db: views may import ., static"}},
		"ml to db below it":          {pkg("winnow/ml/nn", "winnow/db/local"), []string{"winnow/ml/nn imports winnow/db/local: ml/nn may import ., ml/backend"}},
		"eaoa to its siblings":       {pkg("winnow/ml/eaoa", "winnow/ml/nn"), []string{"winnow/ml/eaoa imports winnow/ml/nn: ml/eaoa may import ."}},
		"a name that only begins so": {pkg("winnow/dbx"), []string{"winnow/dbx is in no room: give it a place in the design, then in rooms"}},
		"root to another module":     {pkg("winnow", "github.com/jackc/pgx/v5"), []string{"winnow imports github.com/jackc/pgx/v5: the root package imports only the standard library"}},
		"root to a room":             {pkg("winnow", "winnow/ml"), []string{"winnow imports winnow/ml: . may import nothing of the module"}},
		"direct ban":                 {pkg("winnow/ml/nn", "net/http"), []string{"winnow/ml/nn imports net/http: ml knows no HTTP"}},
		"deep ban": {
			listed{ImportPath: "winnow/ml/eaoa", Imports: []string{"example.com/x"}, Deps: []string{"example.com/x", "github.com/gomlx/compute"}},
			[]string{"winnow/ml/eaoa reaches github.com/gomlx/compute: the method is plain Go"},
		},
		"shallow ban lets others do it": {
			listed{ImportPath: "winnow/ml/nn", Imports: []string{"example.com/x"}, Deps: []string{"example.com/x", "net/http"}}, nil,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, violations([]listed{tt.pkg})); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

// violations lists every import that the rooms do not allow.
func violations(packages []listed) []string {
	var out []string
	for _, p := range packages {
		room, ok := roomOf(p.ImportPath)
		if !ok {
			out = append(out, p.ImportPath+" is in no room: give it a place in the design, then in rooms")
			continue
		}
		for _, imported := range p.Imports {
			switch {
			case inModule(imported):
				if to := relative(imported); !within(to, room) && !mayImport(rooms[room], to) {
					out = append(out, fmt.Sprintf("%s imports %s: %s may import %s", p.ImportPath, imported, room, allowed(room)))
				}
			case room == "." && !standard(imported):
				out = append(out, fmt.Sprintf("%s imports %s: the root package imports only the standard library", p.ImportPath, imported))
			}
		}
		out = append(out, bans(p)...)
	}
	return out
}

func bans(p listed) []string {
	var out []string
	for _, b := range banned {
		if !within(relative(p.ImportPath), b.room) {
			continue
		}
		imports, verb := p.Imports, "imports"
		if b.deep {
			imports, verb = p.Deps, "reaches"
		}
		if i := slices.IndexFunc(imports, func(s string) bool { return within(s, b.pkg) }); i >= 0 {
			out = append(out, fmt.Sprintf("%s %s %s: %s", p.ImportPath, verb, imports[i], b.why))
		}
	}
	return out
}

// roomOf finds the room with the longest path that holds the package.
func roomOf(importPath string) (string, bool) {
	for dir := relative(importPath); ; dir = path.Dir(dir) {
		if _, ok := rooms[dir]; ok {
			return dir, dir != "." || importPath == module
		}
		if dir == "." {
			return "", false
		}
	}
}

func mayImport(may []string, to string) bool {
	return slices.ContainsFunc(may, func(room string) bool {
		if room == "." {
			return to == "."
		}
		return within(to, room)
	})
}

func allowed(room string) string {
	if len(rooms[room]) == 0 {
		return "nothing of the module"
	}
	return strings.Join(rooms[room], ", ")
}

// within reports whether the package or folder p is dir or below it. The root
// package is a room of its own: nothing is below it.
func within(p, dir string) bool {
	return p == dir || (dir != "." && strings.HasPrefix(p, dir+"/"))
}

func inModule(importPath string) bool { return within(importPath, module) }

// relative is the package's folder in the repository, "." for the root.
func relative(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// standard reports whether a package is of the standard library: its first path
// element has no dot.
func standard(importPath string) bool {
	first, _, _ := strings.Cut(importPath, "/")
	return !strings.Contains(first, ".") && !inModule(importPath)
}

// list runs go list over the whole module.
func list(t *testing.T, tags string) []listed {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-tags", tags,
		"-json=ImportPath,Dir,Name,Doc,GoFiles,TestGoFiles,XTestGoFiles,Imports,Deps", "./...")
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			t.Fatalf("go list: %v\n%s", err, exit.Stderr)
		}
		t.Fatalf("go list: %v", err)
	}
	var packages []listed
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		if err != nil {
			t.Fatalf("reading go list: %v", err)
		}
		packages = append(packages, p)
	}
}
