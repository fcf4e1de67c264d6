package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"winnow"
	"winnow/ml/eaoa"
	"winnow/views"
)

// TestOracleLabelsARound is the whole loop as a person sees it: make a project, add
// images, start a round, label what it asks for with the keyboard, see precision
// and k, and find the next round open.
func TestOracleLabelsARound(t *testing.T) {
	t.Parallel()
	data := loadCIFAR(t)
	w := newWorld(t)
	admin := w.person("olive", true)
	b := w.signIn(admin)

	p := w.makeProjectOnPages(b, data)
	b.open(fmt.Sprintf("/projects/%d", p.ID))
	b.clickText("button", "Start round 0")
	b.until(`location.pathname.endsWith("/rounds/0")`)

	// The labeling page waits for the round and begins by itself.
	b.openLabeling(p)
	answered := b.labelAll(w, admin, data.oracle())
	if len(answered) != p.Settings.Budget {
		t.Errorf("the round showed %d images, want %d", len(answered), p.Settings.Budget)
	}
	first := w.roundIs(p, 0, winnow.RoundClosed)
	w.checkRound(b, p, first, answered)

	// The next round starts by itself, and its images come to the page that is open.
	w.roundIs(p, 1, winnow.RoundLabeling)
	next := imageID(t, b.image(""))
	if _, again := answered[next]; again {
		t.Errorf("round 1 asks for image %d again", next)
	}
	second := w.items(p, 1)
	if slices.ContainsFunc(second, func(i winnow.Item) bool { _, again := answered[i.ImageID]; return again }) {
		t.Errorf("round 1 asks for images that round 0 asked for")
	}
	if len(second) != p.Settings.Budget {
		t.Errorf("round 1 asks for %d images, want %d", len(second), p.Settings.Budget)
	}
}

// TestKilledWhileTraining kills the process in the middle of training. What was
// labeled is there afterwards, and the round goes on.
func TestKilledWhileTraining(t *testing.T) {
	t.Parallel()
	data := loadCIFAR(t)
	w := newWorld(t)
	admin := w.person("olive", true)
	b := w.signIn(admin)
	p := w.project(admin, "Harbour and field", func(s *winnow.Settings) {
		s.AutoNext = true
		s.Epochs = 60 // long enough to be caught at it
	})
	w.importCIFAR(p, data)

	// Round 0 is labeled, and round 1 trains on what was said.
	c := w.client(admin)
	if status, body := c.form(fmt.Sprintf("/projects/%d/rounds", p.ID)); status != 303 {
		t.Fatalf("start: status %d\n%s", status, body)
	}
	b.openLabeling(p)
	answered := b.labelAll(w, admin, data.oracle())
	b.saved()
	w.eventually("round 1 trains", func() (bool, error) {
		r, err := w.store.Round(t.Context(), p.ID, 1)
		if winnow.ErrorCode(err) == winnow.CodeNotFound {
			return false, nil
		}
		if err == nil && r.State == winnow.RoundLabeling {
			err = fmt.Errorf("it was over before it could be killed")
		}
		return err == nil && r.State == winnow.RoundTraining && r.Progress.Epoch > 0, err
	})
	w.kill()
	w.start()

	round := w.roundIs(p, 1, winnow.RoundLabeling)
	if round.Attempt < 2 {
		t.Errorf("round 1 is open after attempt %d; it was killed in the first", round.Attempt)
	}
	w.checkRound(b, p, w.roundIs(p, 0, winnow.RoundClosed), answered)
	b.openLabeling(p)
	if more := b.labelAll(w, admin, data.oracle()); len(more) != p.Settings.Budget {
		t.Errorf("round 1 showed %d images, want %d", len(more), p.Settings.Budget)
	}
	w.roundIs(p, 1, winnow.RoundClosed)
}

// makeProjectOnPages makes the project in the browser, with its labeled images, and
// adds the others from the command line.
func (w *world) makeProjectOnPages(b *tab, data *cifar) *winnow.Project {
	w.t.Helper()
	b.open("/projects/new")
	b.fill("#name", "Harbour and field")
	b.fill("#classes", strings.Join(known, "\n"))
	tiny := tinySettings()
	for _, s := range tiny.Fields() {
		if s.Bool == nil {
			b.fill("[name="+s.Name+"]", s.String())
		}
	}
	b.check("[name=auto_next]")
	b.check("[name=labeled]")
	b.files("#files", writeZIP(w.t, "labeled.zip", data.labeled(4, 4)))
	b.clickText("button", "Make project")
	b.until(`!location.pathname.startsWith("/projects/new")`)

	var p *winnow.Project
	w.eventually("the labeled images are in", func() (bool, error) {
		var err error
		p, err = w.store.FindProject(w.t.Context(), "Harbour and field")
		if winnow.ErrorCode(err) == winnow.CodeNotFound {
			return false, nil
		}
		return err == nil && p.Counts.Known == 16 && p.Counts.Unknown == 4, err
	})
	w.importRest(p)
	return p
}

// importCIFAR adds all images from the command line, twenty of them labeled.
func (w *world) importCIFAR(p *winnow.Project, data *cifar) {
	w.t.Helper()
	w.winnow("import", "--project", p.Name, "--labeled", writeZIP(w.t, "labeled.zip", data.labeled(4, 4)))
	w.importRest(p)
}

func (w *world) importRest(p *winnow.Project) {
	w.t.Helper()
	file, err := filepath.Abs(miniZIP)
	if err != nil {
		w.t.Fatal(err)
	}
	w.winnow("import", "--project", p.Name, "--prefix", "train", file)
	w.winnow("import", "--project", p.Name, "--prefix", "test", "--split", "test", "--labeled", file)
}

// labelAll answers every image of the round with the key that the oracle knows, and
// returns the answers by image.
func (b *tab) labelAll(w *world, as winnow.User, o oracle) map[winnow.ImageID]string {
	b.t.Helper()
	c := w.client(as)
	answered := map[winnow.ImageID]string{}
	b.until(`document.querySelector("#label-canvas img")?.complete`)
	for src := b.image(""); src != ""; src = b.image(src) {
		status, image := c.get(src)
		if status != 200 {
			b.t.Fatalf("%s: status %d", src, status)
		}
		id := imageID(b.t, src)
		if _, again := answered[id]; again {
			b.t.Fatalf("image %d is shown again", id)
		}
		answered[id] = o.key(b.t, image)
		b.key(answered[id])
	}
	return answered
}

// checkRound compares a closed round with what was answered: the exported labels,
// the precision and k recomputed from them, and the figures on the pages.
func (w *world) checkRound(b *tab, p *winnow.Project, round *winnow.Round, answered map[winnow.ImageID]string) {
	t := w.t
	t.Helper()
	exported := map[winnow.ImageID]string{}
	var knowns, unknowns int
	lines := bufio.NewScanner(strings.NewReader(w.winnow("export", "--project", p.Name, "--format", "jsonl", "--round", strconv.Itoa(round.Number))))
	for lines.Scan() {
		var r winnow.LabelRecord
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatal(err)
		}
		switch r.Status {
		case "known":
			knowns++
			exported[r.ImageID] = strconv.Itoa(slices.Index(known, r.Class) + 1)
		case "unknown":
			unknowns++
			exported[r.ImageID] = "u"
		default:
			t.Errorf("image %d is exported as %q", r.ImageID, r.Status)
		}
		if want := r.SourcePath; !strings.Contains(want, "/"+r.Class) && r.Status == "known" {
			t.Errorf("image %d from %s is exported as %q", r.ImageID, want, r.Class)
		}
	}
	if !maps.Equal(exported, answered) {
		t.Errorf("exported %v\nanswered %v", exported, answered)
	}

	precision := float64(knowns) / float64(knowns+unknowns)
	fresh, err := w.store.Project(t.Context(), p.ID)
	if err != nil {
		t.Fatal(err)
	}
	// All other labels came before the round closed, so the pool is as it was then.
	k := eaoa.NextK(round.Settings, round.K, precision, fresh.Counts.Unlabeled())

	b.open(fmt.Sprintf("/projects/%d", p.ID))
	b.shows(fmt.Sprintf("Round %d", round.Number+1))
	rows := eval[map[string][]string](b, `Object.fromEntries([...document.querySelectorAll("table tr")]
		.map(tr => [...tr.cells].map(c => c.innerText.trim())).map(cells => [cells[0], cells.slice(1)]))`)
	column := func(name string) int { return slices.Index(rows["Round"], name) }
	number := func(round, name string) string {
		i := column(name)
		if i < 0 || i >= len(rows[round]) {
			t.Fatalf("no cell %q of %q in %v", name, round, rows)
		}
		return rows[round][i]
	}
	this, next := fmt.Sprintf("Round %d", round.Number), fmt.Sprintf("Round %d", round.Number+1)
	if got, want := number(this, "Precision"), views.Share(precision); got != want {
		t.Errorf("the page says precision %s; the exported labels make it %s", got, want)
	}
	if got, want := number(next, "k"), views.Number(k); got != want {
		t.Errorf("the page says k %s for the next round; the exported labels make it %s", got, want)
	}
	if got, want := number(this, "Known"), strconv.Itoa(knowns); got != want {
		t.Errorf("the page says %s known; %s are exported", got, want)
	}
	if got, want := number(this, "Unknown"), strconv.Itoa(unknowns); got != want {
		t.Errorf("the page says %s unknown; %s are exported", got, want)
	}
	b.openLabeling(p)
}

// items are the items of a round by rank.
func (w *world) items(p *winnow.Project, number int) []winnow.Item {
	w.t.Helper()
	round, err := w.store.Round(w.t.Context(), p.ID, number)
	if err != nil {
		w.t.Fatal(err)
	}
	items, _, err := w.store.Items(w.t.Context(), round.ID, winnow.ItemFilter{}, winnow.Page{Limit: 1000})
	if err != nil {
		w.t.Fatal(err)
	}
	return items
}
