package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db/dbtest"
)

// openGroups opens a round of n images that are all clear; the model gives image i
// the class that predict returns.
func (w *world) openGroups(by winnow.User, n int, predict func(i int) int) *winnow.Project {
	w.t.Helper()
	p := w.openRound(by, n)
	for i, item := range w.items(p, 0) {
		_, err := w.store.Pool().Exec(w.t.Context(),
			`UPDATE query_items SET clean = .9, info = .1, predicted = $2 WHERE id = $1`, item.ID, predict(i))
		if err != nil {
			w.t.Fatal(err)
		}
	}
	return p
}

// likely gives all images of a round one class.
func likely(class int) func(int) int { return func(int) int { return class } }

// openGrid opens grid mode and waits until its script has taken over and shows n
// images.
func (b *tab) openGrid(p *winnow.Project, n int) {
	b.t.Helper()
	b.open(labelPath(p) + "/grid")
	b.gridReady(n)
}

// gridReady waits until grid mode shows n images, decoded, and is past the moment in
// which it ignores a second press.
func (b *tab) gridReady(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.documentElement.dataset.grid === "ready" &&
		document.querySelectorAll(".grid-tile.is-seen").length === %d`, n))
	time.Sleep(350 * time.Millisecond)
}

// tiles are the images of the page, in their order.
func (b *tab) tiles() []winnow.ItemID {
	b.t.Helper()
	return eval[[]winnow.ItemID](b, `[...document.querySelectorAll(".grid-tile input[type=checkbox]")].map(i => Number(i.value))`)
}

// picked says what is picked out: "3" for the third tile, "3 Skip" with its answer.
func (b *tab) picked() []string {
	b.t.Helper()
	return eval[[]string](b, `[...document.querySelectorAll(".grid-tile")].map((t, i) =>
		t.querySelector("input[type=checkbox]").checked ? ((i + 1) + " " + t.querySelector(".grid-mark").innerText).trim() : "").filter(s => s)`)
}

func (b *tab) wantPicked(when string, want ...string) {
	b.t.Helper()
	if diff := cmp.Diff(append([]string{}, want...), b.picked()); diff != "" {
		b.t.Errorf("%s, picked (-want +got):\n%s", when, diff)
	}
}

// center is the middle of a tile, by its number.
func (b *tab) center(tile int) (x, y float64) {
	b.t.Helper()
	at := eval[[]float64](b, fmt.Sprintf(`(() => {
		const box = document.querySelectorAll(".grid-tile")[%d].getBoundingClientRect();
		return [box.x + box.width / 2, box.y + box.height / 2];
	})()`, tile-1))
	return at[0], at[1]
}

// pick clicks a tile, by its number.
func (b *tab) pick(tile int, options ...chromedp.MouseOption) {
	b.t.Helper()
	x, y := b.center(tile)
	b.do(chromedp.MouseClickXY(x, y, options...))
}

// draw drags from one tile to another.
func (b *tab) draw(from, to int) {
	b.t.Helper()
	x, y := b.center(from)
	u, v := b.center(to)
	b.do(
		chromedp.MouseEvent(chromedp.MousePressed, x, y, chromedp.ButtonLeft, chromedp.ClickCount(1)),
		chromedp.MouseEvent(chromedp.MouseMoved, (x+u)/2, (y+v)/2, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseMoved, u, v, chromedp.ButtonLeft),
		chromedp.MouseEvent(chromedp.MouseReleased, u, v, chromedp.ButtonLeft, chromedp.ClickCount(1)),
	)
}

// verdicts counts the standing decisions of a round, as "known 2": 39.
func (w *world) verdicts(p *winnow.Project) map[string]int {
	w.t.Helper()
	counts := map[string]int{}
	for _, item := range w.decided(p, 0) {
		name := string(item.Verdict)
		if item.Verdict == winnow.VerdictKnown {
			name += fmt.Sprint(" ", item.Class)
		}
		counts[name]++
	}
	return counts
}

func (w *world) wantVerdicts(when string, p *winnow.Project, want map[string]int) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.verdicts(p)); diff != "" {
		w.t.Errorf("%s, decided (-want +got):\n%s", when, diff)
	}
}

// events counts a project's label events of a kind.
func (w *world) events(p *winnow.Project, kind winnow.EventKind) int {
	w.t.Helper()
	var n int
	err := w.store.Pool().QueryRow(w.t.Context(), `SELECT count(*) FROM label_events WHERE project_id = $1 AND kind = $2`, p.ID, kind).Scan(&n)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

// countKeys counts real key presses from here on, across pages.
func (b *tab) countKeys() {
	b.t.Helper()
	eval[bool](b, `addEventListener("keydown", e => {
		if (e.isTrusted) sessionStorage.keys = Number(sessionStorage.keys ?? 0) + 1;
	}, true) ?? true`)
}

func TestFortyImagesWithThreeKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 40, likely(2))
	b := w.signIn(admin)
	b.openLabeling(p)
	b.until(`document.getElementById("label-grid")?.checkVisibility({visibilityProperty: true})`)
	b.countKeys()

	b.key("g")
	b.gridReady(40)
	b.countKeys()
	b.key("u") // the image that the keyboard is at is none of the classes
	b.key(kb.Enter)
	b.saved()
	if n := eval[string](b, `sessionStorage.keys`); n != "3" {
		t.Errorf("it took %s keys, want 3", n)
	}
	w.wantVerdicts("after three keys", p, map[string]int{"known 2": 39, "unknown": 1})
	w.roundIs(p, 0, winnow.RoundClosed)
	if n := w.events(p, winnow.EventLabel); n != 40 {
		t.Errorf("%d events of 40 answers", n)
	}

	// The page's time is shared by its images.
	var shares []int64
	rows, err := w.store.Pool().Query(t.Context(), `SELECT DISTINCT duration_ms FROM label_events WHERE project_id = $1`, p.ID)
	if err != nil {
		t.Fatal(err)
	}
	for rows.Next() {
		var ms int64
		if err := rows.Scan(&ms); err != nil {
			t.Fatal(err)
		}
		shares = append(shares, ms)
	}
	if len(shares) != 1 || shares[0] <= 0 {
		t.Errorf("the images took %v ms; want one share above 0", shares)
	}
}

func TestPickingOutTheWrongOnes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 30, likely(1))
	b := w.signIn(admin)
	b.openGrid(p, 30)
	columns := eval[int](b, `getComputedStyle(document.getElementById("grid-tiles")).gridTemplateColumns.split(" ").length`)

	b.pick(3)
	b.pick(5)
	b.pick(3)
	b.wantPicked("a click picks out and puts back", "5")
	b.pick(7, chromedp.ButtonModifiers(chromedp.ModifierShift)) // from 3, the last one that was pressed
	b.wantPicked("Shift and a click pick a range", "3", "4", "5", "6", "7")
	b.key(kb.Escape)
	b.wantPicked("Escape puts all back")

	b.pick(2)
	b.key(kb.ArrowRight)
	b.key(" ")
	b.key(kb.ArrowDown)
	b.key(" ")
	b.wantPicked("arrows and Space", "2", "3", fmt.Sprint(3+columns))
	b.key(kb.Home)
	b.press(kb.ArrowRight, chromedp.ModifierShift)
	b.press(kb.ArrowRight, chromedp.ModifierShift)
	b.press(kb.ArrowRight, chromedp.ModifierShift)
	b.wantPicked("Shift and arrows", "1", "2", "3", "4", fmt.Sprint(3+columns))
	b.press(kb.ArrowLeft, chromedp.ModifierShift)
	b.wantPicked("and back", "1", "2", "3", fmt.Sprint(3+columns))
	b.key(kb.Escape)

	b.draw(1, columns+2)
	b.wantPicked("a rectangle", "1", "2", fmt.Sprint(columns+1), fmt.Sprint(columns+2))
	b.draw(2, 1)
	b.wantPicked("a rectangle from a picked one puts back", fmt.Sprint(columns+1), fmt.Sprint(columns+2))
	b.key(kb.Escape)
	b.press("a", chromedp.ModifierCtrl)
	if n := len(b.picked()); n != 30 {
		t.Errorf("Ctrl+A picks %d of 30", n)
	}
	b.key(kb.Escape)

	// One key answers what is picked; the next picks get another.
	b.pick(1)
	b.pick(2)
	b.key("u")
	b.pick(4)
	b.key("4")
	b.pick(6)
	b.click(`.grid-answers button[value=skip]`)
	b.pick(8)
	b.key("x")
	b.pick(10)
	b.wantPicked("answered", "1 Unknown", "2 Unknown", "4 "+known[3], "6 Skip", "8 Unreadable", "10")
	b.pick(2) // it was one of them after all
	b.pick(12)
	b.key("2")
	b.wantPicked("the group's own class puts back", "1 Unknown", "4 "+known[3], "6 Skip", "8 Unreadable")
	b.pick(10)
	if text := eval[string](b, `document.getElementById("grid-accept").innerText`); !strings.Contains(text, "25 as "+known[1]+"\n4 otherwise") {
		t.Errorf("the button says %q", text)
	}

	// What is picked out without an answer is not decided. It stays, until somebody
	// labels it on its own.
	left := b.tiles()[9]
	b.key(kb.Enter)
	b.saved()
	want := map[string]int{"known 1": 25, "unknown": 1, "known 3": 1, "skip": 1, "unreadable": 1}
	w.wantVerdicts("accepted", p, want)
	if diff := cmp.Diff([]winnow.ItemID{left}, b.tiles()); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
	b.wantPicked("on the next page", "1")
	b.key(kb.Enter)
	b.key("g")
	b.labelingReady()
	b.image("")
	b.key("1")
	b.saved()
	want["known 0"]++
	w.wantVerdicts("one at a time", p, want)
	w.roundIs(p, 0, winnow.RoundClosed)
}

func TestHeldEnterAcceptsOnePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 70, likely(0))
	b := w.signIn(admin)
	b.openGrid(p, 40)
	// Pressed twice by accident, and held: nobody has seen the second page.
	eval[bool](b, `[false, false, true].forEach(repeat => document.activeElement.dispatchEvent(
		new KeyboardEvent("keydown", {code: "Enter", key: "Enter", repeat, bubbles: true, cancelable: true}))) ?? true`)
	b.gridReady(30)
	b.saved()
	w.wantVerdicts("after one page", p, map[string]int{"known 0": 40})
	b.key(kb.Enter)
	b.saved()
	w.wantVerdicts("after both", p, map[string]int{"known 0": 70})
}

func TestGroupsFollowEachOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 24, func(i int) int { return min(i%3, 1) }) // 8 and 16
	b := w.signIn(admin)
	b.openGrid(p, 16)
	b.key(kb.Enter)
	b.gridReady(8)
	b.key(backspace) // the page before comes back, whatever class this one is
	b.gridReady(16)
	b.key("3")
	b.key(kb.Enter)
	b.gridReady(8)
	b.key(kb.Enter)
	b.saved()
	w.wantVerdicts("both groups", p, map[string]int{"known 0": 8, "known 1": 15, "known 2": 1})
	if n := w.events(p, winnow.EventUndo); n != 16 {
		t.Errorf("%d undo events of 16", n)
	}
	b.shows("Round 0 is done")
}

func TestUndoOfAPageSurvivesAReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 60, likely(2))
	b := w.signIn(admin)
	b.openGrid(p, 40)
	first := b.tiles()
	b.pick(1)
	b.pick(2)
	b.key("u")
	b.key(kb.Enter)
	b.gridReady(20)
	b.key(kb.Enter)
	b.saved()
	w.wantVerdicts("two pages", p, map[string]int{"known 2": 58, "unknown": 2})

	// The round is done; undo opens it again, page by page, from a fresh profile.
	b = w.signIn(admin)
	b.openGrid(p, 0)
	b.key(backspace)
	b.gridReady(20)
	b.key(backspace)
	b.gridReady(40)
	b.saved()
	w.wantVerdicts("both taken back", p, map[string]int{})
	if n := w.events(p, winnow.EventUndo); n != 60 {
		t.Errorf("%d undo events of 60", n)
	}
	second := b.tiles()
	slices.Sort(first)
	slices.Sort(second)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("other images came back (-want +got):\n%s", diff)
	}
	if n := len(b.picked()); n != 2 {
		t.Errorf("%v are picked out; want the two that were", b.picked())
	}
	b.key(kb.Enter)
	b.gridReady(20)
	b.key(kb.Enter)
	b.saved()
	w.wantVerdicts("accepted again", p, map[string]int{"known 2": 58, "unknown": 2})
}

func TestPagesOutliveTheServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 50, likely(0))
	b := w.signIn(admin)
	b.openGrid(p, 40)
	b.until(`performance.getEntriesByType("resource").filter(e => e.name.includes("/thumb") && e.responseEnd > 0).length >= 50`)
	w.stop()
	b.key("u")
	b.key(kb.Enter)
	b.gridReady(10)
	b.key(backspace)
	b.gridReady(40)
	b.key(kb.Enter)
	b.gridReady(10)
	b.key(kb.Enter)
	b.until(`document.getElementById("label-pending").innerText === "130"`) // 40, taken back, 40, 10
	b.shows("130 answers are kept here")

	// Another page sends what this one could not, and nothing counts twice.
	b.leave()
	w.start()
	b.openLabeling(p)
	b.saved()
	w.wantVerdicts("after the server came back", p, map[string]int{"known 0": 49, "unknown": 1})
	if labels, undos := w.events(p, winnow.EventLabel), w.events(p, winnow.EventUndo); labels != 90 || undos != 40 {
		t.Errorf("%d labels and %d undos; want 90 and 40", labels, undos)
	}
}

func TestLostImagesAreReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, other := w.person("ada", true), w.person("bob", false)
	p := w.openGroups(admin, 12, likely(0))
	dbtest.Join(t, w.store, admin.ID, p.ID, other, winnow.RoleAnnotator)
	b := w.signIn(admin)
	b.openGrid(p, 12)
	items := b.tiles()

	// Two go to somebody else while the page sleeps; one of them is answered.
	if err := w.store.Release(t.Context(), p.ID, admin.ID, items[:2], time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, got, err := w.store.Claim(t.Context(), p.ID, other.ID, 2); err != nil || len(got) != 2 {
		t.Fatalf("the other holds %d items: %v", len(got), err)
	}
	d := winnow.Decision{ItemID: items[0], Verdict: winnow.VerdictUnknown, Class: -1, ClientKey: "other"}
	if _, err := w.store.Decide(t.Context(), p.ID, other.ID, d); err != nil {
		t.Fatal(err)
	}
	b.key(kb.Enter)
	b.saved()
	b.shows("2 answers do not count.")
	w.wantVerdicts("without the lost ones", p, map[string]int{"known 0": 10, "unknown": 1})

	// On a page that looks in time they leave it before they are answered.
	p = w.openGroups(admin, 12, likely(0))
	dbtest.Join(t, w.store, admin.ID, p.ID, other, winnow.RoleAnnotator)
	b.openGrid(p, 12)
	items = b.tiles()
	if err := w.store.Release(t.Context(), p.ID, admin.ID, items[:3], time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if _, got, err := w.store.Claim(t.Context(), p.ID, other.ID, 3); err != nil || len(got) != 3 {
		t.Fatalf("the other holds %d items: %v", len(got), err)
	}
	eval[bool](b, `document.dispatchEvent(new Event("visibilitychange"))`)
	b.shows("3 images of this page are with somebody else")
	b.key(kb.Enter)
	b.saved()
	w.wantVerdicts("without those that left", p, map[string]int{"known 0": 9})
}

func TestTwoTabsOfGridModeShareNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 100, likely(1))
	first := w.signIn(admin)
	first.openGrid(p, 40)
	second := first.sibling()
	second.open(labelPath(p) + "/grid")
	second.until(`document.documentElement.dataset.grid === "ready" && document.querySelectorAll(".grid-tile.is-seen").length > 0`)
	single := first.sibling()
	single.openLabeling(p)
	shown := map[winnow.ItemID]bool{}
	for _, id := range first.tiles() {
		shown[id] = true
	}
	for _, id := range second.tiles() {
		if shown[id] {
			t.Fatalf("item %d is in both tabs", id)
		}
	}
	time.Sleep(350 * time.Millisecond)
	second.key(kb.Enter)
	first.key(kb.Enter)
	first.saved()
	second.saved()
	if labels := w.events(p, winnow.EventLabel); labels != len(w.decided(p, 0)) {
		t.Errorf("%d events of %d answers", labels, len(w.decided(p, 0)))
	}
}

func TestGridGivesBackWhatItHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, other := w.person("ada", true), w.person("bob", false)
	p := w.openGroups(admin, 20, likely(1))
	dbtest.Join(t, w.store, admin.ID, p.ID, other, winnow.RoleAnnotator)
	b := w.signIn(admin)
	b.openGrid(p, 20)
	if _, items, err := w.store.Claim(t.Context(), p.ID, other.ID, 5); err != nil || len(items) != 0 {
		t.Fatalf("somebody else gets %d of the images on the page: %v", len(items), err)
	}
	b.leave()
	w.eventually("the images are free", func() (bool, error) {
		_, items, err := w.store.Claim(t.Context(), p.ID, other.ID, 20)
		return len(items) == 20, err
	})
}

func TestGridWithoutJavaScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 45, likely(2))
	b := w.signIn(admin)
	b.withoutScripts()
	b.open(labelPath(p))
	b.submit("#plain-grid")
	box := func(i int) string { return fmt.Sprintf(".grid-tile:nth-child(%d) input[type=checkbox]", i) }
	tick := func(is ...int) {
		for _, i := range is {
			b.click(fmt.Sprintf(".grid-tile:nth-child(%d) label", i))
		}
	}

	b.submit("button[name=answer][value=unknown]") // nothing is picked: nothing is answered
	if text := b.html("#label-notice"); !strings.Contains(text, "Nothing is picked out") {
		t.Errorf("the page says %s", text)
	}
	tick(1, 2)
	b.submit("button[name=answer][value=unknown]")
	w.wantVerdicts("a page", p, map[string]int{"known 2": 38, "unknown": 2})
	if b.attribute(box(4), "value") == "" { // the labeling page still holds the fifth
		t.Error("the next page has no fourth image")
	}
	b.submit("#grid-undo")
	w.wantVerdicts("undone", p, map[string]int{})
	tick(3)
	id := b.attribute(box(3), "value")
	b.submit("#grid-accept")
	w.wantVerdicts("all but one", p, map[string]int{"known 2": 39})
	for _, item := range w.decided(p, 0) {
		if fmt.Sprint(item.ID) == id {
			t.Errorf("item %s was picked out, and is decided", id)
		}
	}
	// Where it goes on, one at a time.
	b.submit(`button[name=answer][value="known:0"]`)
	w.wantVerdicts("and one more", p, map[string]int{"known 2": 39, "known 0": 1})
}

func TestGridByTouch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 12, likely(0))
	b := w.signIn(admin)
	b.phone()
	b.openGrid(p, 12)
	small := eval[[]string](b, `[...document.querySelectorAll("main button, main a, main label, header a, header button")]
		.filter(e => e.checkVisibility({visibilityProperty: true}) && (e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44))
		.map(e => e.outerHTML + " " + JSON.stringify(e.getBoundingClientRect()))`)
	if len(small) > 0 {
		t.Errorf("too small for a thumb: %v", small)
	}
	if low := eval[float64](b, `document.getElementById("grid-accept").getBoundingClientRect().top / innerHeight`); low < .66 {
		t.Errorf("accept is at %.0f%% of the screen's height: out of a thumb's reach", 100*low)
	}
	b.tap(".grid-tile:nth-child(2) label")
	b.tap(".grid-tile:nth-child(5) label")
	b.tap("button[value=unknown]")
	b.tap("#grid-accept")
	b.saved()
	w.wantVerdicts("by touch", p, map[string]int{"known 0": 10, "unknown": 2})
	b.tap("#grid-undo")
	b.gridReady(12)
	b.wantPicked("taken back", "2 Unknown", "5 Unknown")
}

// TestGridStandsStill uses the page and watches that nothing on it moves, in both
// widths and colour schemes; axe-core looks at each.
func TestGridStandsStill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openGroups(admin, 100, likely(0))
	b := w.signIn(admin)
	b.media("prefers-reduced-motion", "reduce")
	b.openGrid(p, 40)
	if moving := eval[int](b, `document.getAnimations().length`); moving != 0 {
		t.Errorf("%d animations with reduced motion", moving)
	}
	// Figures in the head grow by a digit now and then.
	eval[bool](b, `window.moved = [], new PerformanceObserver(list => {
		for (const e of list.getEntries()) for (const { node } of e.sources) {
			const element = node?.parentElement ? (node.nodeType === 1 ? node : node.parentElement) : null;
			if (!element?.closest(".label-head")) moved.push(element ? element.id || element.className : "gone");
		}
	}).observe({type: "layout-shift"}) ?? true`)
	b.draw(1, 3)
	b.key("u")
	b.pick(5)
	b.key(kb.Enter)
	b.gridReady(41) // with the one that was picked and not answered
	b.key(backspace)
	b.gridReady(39)
	b.saved()
	if moved := eval[[]string](b, `moved`); len(moved) > 0 {
		t.Errorf("these moved: %v", moved)
	}
	for _, scheme := range []string{"dark", "light"} {
		b.media("prefers-color-scheme", scheme)
		for _, narrow := range []bool{false, true} {
			b.desktop()
			if narrow {
				b.phone()
			}
			b.accessible(fmt.Sprintf("grid mode (%s, narrow %v)", scheme, narrow))
			if wide := eval[bool](b, `document.documentElement.scrollWidth > innerWidth`); wide {
				t.Errorf("grid mode is wider than the screen (narrow %v)", narrow)
			}
		}
	}
}

func TestLabelingOffersAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	b := w.signIn(admin)
	clear := w.openGroups(admin, 27, likely(3))
	b.openLabeling(clear)
	b.until(`document.getElementById("label-grid").checkVisibility({visibilityProperty: true})`)
	if text := eval[string](b, `document.getElementById("label-grid").innerText`); !strings.Contains(text, known[3]) {
		t.Errorf("the offer says %q", text)
	}
	// Images that the model is not sure of stay one at a time.
	unclear := w.openRound(admin, 27)
	b.openLabeling(unclear)
	b.image("")
	b.until(`performance.getEntriesByType("resource").some(e => e.name.endsWith("/label/alike") && e.responseEnd > 0)`)
	if eval[bool](b, `document.getElementById("label-grid")?.checkVisibility({visibilityProperty: true}) ?? false`) {
		t.Error("a group of unclear images is offered")
	}
	b.key("g")
	if path := eval[string](b, `location.pathname`); path != labelPath(unclear) {
		t.Errorf("G leads to %s", path)
	}
	b.open(labelPath(unclear) + "/grid")
	b.shows("No group of like images is left")
}

// TestBadBatches sends what no page sends.
func TestBadBatches(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, viewer, stranger := w.person("ada", true), w.person("vic", false), w.person("stan", false)
	p := w.openGroups(admin, 8, likely(0))
	foreign := w.openGroups(admin, 3, likely(0))
	dbtest.Join(t, w.store, admin.ID, p.ID, viewer, winnow.RoleViewer)
	c := w.client(admin)

	var group struct {
		Class int `json:"class"`
		Items []struct {
			ID int64 `json:"id"`
		} `json:"items"`
	}
	status, body := c.json(labelPath(p)+"/alike", map[string]any{"n": 8}, &group)
	if status != 200 || len(group.Items) != 8 || group.Class != 0 {
		t.Fatalf("a group: status %d, %s", status, body)
	}
	for _, secret := range []string{"predicted", "clean", "slice", "rank", "gold"} {
		if strings.Contains(string(body), secret) {
			t.Errorf("the group tells %q: %s", secret, body)
		}
	}
	theirs := w.items(foreign, 0)[0]
	type object = map[string]any
	decision := func(item any, verdict string, class int, key string) object {
		return object{"item": item, "verdict": verdict, "class": class, "client_key": key, "duration_ms": 5}
	}
	batch := func(ds ...object) object { return object{"decisions": ds} }
	first, second, third := group.Items[0].ID, group.Items[1].ID, group.Items[2].ID
	many := make([]object, 101)
	for i := range many {
		many[i] = decision(first, "known", 0, fmt.Sprint("many", i))
	}
	cases := []struct {
		name   string
		who    *client
		path   string
		body   any
		status int
		says   []string // of each outcome, "" for saved
	}{
		{"two", c, "/decide-all", batch(decision(first, "known", 0, "a"), decision(second, "unknown", -1, "b")), 200, []string{"", ""}},
		{"the same again", c, "/decide-all", batch(decision(first, "known", 0, "a"), decision(second, "unknown", -1, "b")), 200, []string{"", ""}},
		{
			"each for itself", c, "/decide-all", batch(
				decision(first, "unknown", -1, "a"), decision(theirs.ID, "known", 0, "c"), decision(1<<40, "known", 0, "d"),
				decision(third, "known", 99, "e"), decision(third, "maybe", 0, "f"), decision(third, "known", 1, "g")),
			200,
			[]string{"conflict", "not_found", "not_found", "invalid", "invalid", ""},
		},
		{"none", c, "/decide-all", batch(), 422, nil},
		{"too many", c, "/decide-all", batch(many...), 422, nil},
		{"not JSON", c, "/decide-all", "x", 422, nil},
		{"too large", c, "/decide-all", object{"decisions": []object{decision(first, "known", 0, strings.Repeat("k", 100<<10))}}, 413, nil},
		{"somebody else's page", c, "/decide-all", asUser(batch(decision(third, "known", 0, "h")), stranger), 401, nil},
		{"a viewer", w.client(viewer), "/decide-all", batch(decision(third, "known", 0, "i")), 403, nil},
		{"a stranger", w.client(stranger), "/decide-all", batch(decision(third, "known", 0, "j")), 404, nil},
		{"nobody", w.anonymous(), "/alike", object{"n": 1}, 401, nil},
		{"a large group", c, "/alike", object{"n": 101}, 422, nil},
		{"undo of nothing", c, "/undo-all", object{"undos": []object{}}, 422, nil},
		{"undo of another project's", c, "/undo-all", object{"undos": []object{{"item": theirs.ID, "client_key": "k"}}}, 409, nil},
		{"undo without a key", c, "/undo-all", object{"undos": []object{{"item": first}}}, 422, nil},
		{"all or none", c, "/undo-all", object{"undos": []object{{"item": first, "client_key": "l"}, {"item": group.Items[7].ID, "client_key": "m"}}}, 409, nil},
		{"undo", c, "/undo-all", object{"undos": []object{{"item": first, "client_key": "n"}, {"item": second, "client_key": "o"}}}, 200, nil},
		{"the same again", c, "/undo-all", object{"undos": []object{{"item": first, "client_key": "n"}, {"item": second, "client_key": "o"}}}, 200, nil},
	}
	for _, tc := range cases {
		var out struct {
			Outcomes []struct{ Code string } `json:"outcomes"`
		}
		status, body := tc.who.json(labelPath(p)+tc.path, tc.body, &out)
		if status != tc.status {
			t.Errorf("%s: status %d, want %d\n%s", tc.name, status, tc.status, body)
		}
		var says []string
		for _, o := range out.Outcomes {
			says = append(says, o.Code)
		}
		if diff := cmp.Diff(tc.says, says); diff != "" {
			t.Errorf("%s: outcomes (-want +got):\n%s", tc.name, diff)
		}
	}
	w.wantVerdicts("what is left", p, map[string]int{"known 1": 1})
	if n := w.events(p, winnow.EventUndo); n != 2 {
		t.Errorf("%d undo events, want 2", n)
	}
}
