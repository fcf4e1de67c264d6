package e2e

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/jackc/pgx/v5"

	"winnow"
	"winnow/db/dbtest"
)

// TestAnnotator is what the labeling page promises to whoever sits in front of it, a
// promise a subtest, each with a look at the page in both themes and at both widths.
func TestAnnotator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	for _, promise := range []struct {
		name string
		test func(*testing.T, *world, winnow.User)
	}{
		{"One key one image", oneKey},
		{"Own keys", ownKeys},
		{"Keys of this keyboard", keysOfLayout},
		{"Two hundred classes", manyClasses},
		{"Time without idling", idleTime},
		{"Swipe and suggestion", swipes},
		{"Flags", flags},
		{"Colours", colours},
		{"Keyboard alone", keyboardAlone},
		{"Screen reader", screenReader},
		{"Zoom and instructions", zoomAndHelp},
		{"Session ends", sessionEnds},
		{"Back and forward", backAndForward},
		{"Reload in the middle", reloadInTheMiddle},
		{"Offline for minutes", offlineForMinutes},
		{"Somebody else was faster", lateAnswer},
		{"Server restarts", serverRestarts},
	} {
		t.Run(promise.name, func(t *testing.T) {
			its := *w
			its.t = t
			promise.test(t, &its, admin)
			w.process, w.exited = its.process, its.exited
		})
	}
}

// label signs somebody in and opens the labeling page with an image on it.
func (w *world) label(u winnow.User, p *winnow.Project) (b *tab, src string) {
	w.t.Helper()
	b = w.signIn(u)
	b.openLabeling(p)
	return b, b.image("")
}

// verdictOf is what became of an image in the project's first round.
func (w *world) verdictOf(p *winnow.Project, src string) (winnow.Verdict, int) {
	w.t.Helper()
	item := w.decided(p, 0)[imageID(w.t, src)]
	return item.Verdict, item.Class
}

// expect checks what an image was decided to be: a class, or -1 and a verdict.
func (w *world) expect(p *winnow.Project, src string, verdict winnow.Verdict, class int) {
	w.t.Helper()
	if v, c := w.verdictOf(p, src); v != verdict || verdict == winnow.VerdictKnown && c != class {
		w.t.Errorf("%s is %q, class %d; want %q, class %d", src, v, c, verdict, class)
	}
}

// One keypress = label + save + next image painted, with saved, pending and left in
// view and nothing moving.
func oneKey(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	// The strip moves on by one, as it is meant to; nothing else moves.
	eval[bool](b, `window.shifts = [], new PerformanceObserver(list => {
		for (const entry of list.getEntries()) for (const { node } of entry.sources) if (node && !node.parentElement?.closest("#label-strip")) shifts.push(node.id || node.className || node.nodeName);
	}).observe({ type: "layout-shift" }), true`)
	first := src
	for range 11 {
		b.key("1")
		src = b.image(src)
	}
	b.saved()
	b.until(`document.getElementById("label-saved").innerText === "11" && document.getElementById("label-left").innerText === "13"`)
	w.expect(p, first, winnow.VerdictKnown, 0)
	if shifts := eval[[]string](b, `shifts`); len(shifts) > 0 {
		t.Errorf("from image to image these moved: %v", shifts)
	}
	// The class order never changes, and every answer shows its key.
	if got := eval[[]string](b, `[...document.querySelectorAll("[name=answer]")].map(e => e.innerText.replace(/\s+/g, " "))`); strings.Join(got, ",") != "fish 1,boat 2,mushroom 3,house 4,Unknown class U,Skip S,Unreadable X" {
		t.Errorf("the answers are %q", got)
	}
	// A click in the strip shows its image again.
	third := eval[string](b, `document.querySelectorAll("#label-strip img")[2].getAttribute("src")`)
	b.click("#label-strip li:nth-child(3) button")
	if again := b.image(src); imageID(t, again) != imageID(t, strings.Replace(third, "/thumb", "/display", 1)) {
		t.Errorf("the strip reopens %s, not %s", again, third)
	}
	b.look("label")
}

// Keys can be changed; conflicts and the browser's keys are refused; the keys come
// along to any browser.
func ownKeys(t *testing.T, w *world, admin winnow.User) {
	ann := w.person("ann", true)
	p := w.gallery(admin, nil)
	b, src := w.label(ann, p)
	b.key("h")
	change := func(action, key string) {
		b.click(fmt.Sprintf("[data-key-of=%q]", action))
		b.key(key)
	}
	change("unknown", "s")
	b.shows("This is the key of Skip.")
	b.key(kb.F5)
	b.shows("This key is the browser's.")
	b.press("r", chromedp.ModifierCtrl)
	b.shows("This key is the browser's.")
	b.look("label-keys")
	b.key("n")
	b.shows("Saved for Unknown class.")
	change("class:1", ";")
	b.shows("Saved for boat.")
	b.key(kb.Escape)
	if got := b.text("button[value=unknown] kbd") + b.text(`button[value="known:1"] kbd`); got != "N;" {
		t.Errorf("the buttons show %q", got)
	}
	b.key("u") // is free now, and means nothing
	b.key("n")
	second := b.image(src)
	b.key(";")
	b.image(second)
	b.saved()
	w.expect(p, src, winnow.VerdictUnknown, -1)
	w.expect(p, second, winnow.VerdictKnown, 1)

	// Another browser, without scripts, changes them in a form.
	other := w.signIn(ann)
	other.withoutScripts()
	other.open("/account")
	if got := other.attribute("#key-unknown", "value"); got != "N" {
		t.Errorf("the form shows %q for unknown", got)
	}
	other.fill("#key-unknown", "Ctrl+R")
	other.submit("#keys .primary")
	if got := other.html("#keys"); !strings.Contains(got, "Unknown class cannot have this key") {
		t.Errorf("Ctrl+R is not refused:\n%s", got)
	}
	other.fill("#key-unknown", "shift+k")
	other.submit("#keys .primary")
	b.reload()
	b.labelingReady()
	src = b.image("")
	b.press("K", chromedp.ModifierShift)
	b.image(src)
	b.saved()
	w.expect(p, src, winnow.VerdictUnknown, -1)
	other.submit(`#keys [name="defaults"]`)
	b.reload()
	b.labelingReady()
	if got := b.text("button[value=unknown] kbd"); got != "U" {
		t.Errorf("with the usual keys, unknown is on %q", got)
	}
	b.open("/account")
	for _, scheme := range []string{"dark", "light"} {
		b.media("prefers-color-scheme", scheme)
		b.accessible("the account's page, " + scheme + ",")
	}
}

// Keys are where they are on the keyboard, and buttons show what is printed there.
func keysOfLayout(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b := w.signIn(admin)
	// A French keyboard: W where a US one has Z, and signs where it has digits.
	b.beforeLoad(`Object.defineProperty(navigator, "keyboard", { value: { getLayoutMap: async () => new Map([["KeyZ", "w"], ["Digit1", "&"]]) } })`)
	b.openLabeling(p)
	src := b.image("")
	if got := b.text("#label-zoom kbd") + b.text(`button[value="known:0"] kbd`); got != "W1" {
		t.Errorf("zoom and the first class show %q", got)
	}
	if got := eval[string](b, `document.getElementById("label-zoom").getAttribute("aria-keyshortcuts")`); got != "W" {
		t.Errorf("a screen reader is told %q", got)
	}
	eval[bool](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", { code: "Digit1", key: "&", bubbles: true }))`)
	b.image(src)
	b.saved()
	w.expect(p, src, winnow.VerdictKnown, 0)
	eval[bool](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", { code: "KeyZ", key: "w", bubbles: true }))`)
	b.until(`document.getElementById("label-zoom").getAttribute("aria-pressed") === "true"`)
}

// Above twenty classes: type a part of the name, then Enter.
func manyClasses(t *testing.T, w *world, admin winnow.User) {
	names := make([]string, winnow.MaxClasses)
	for i := range names {
		names[i] = fmt.Sprintf("species %03d", i)
	}
	names[150], names[160] = "barn owl", "owl"
	classes, err := winnow.NewClasses(names)
	if err != nil {
		t.Fatal(err)
	}
	p := &winnow.Project{Name: "Two hundred classes", Classes: classes, Settings: tinySettings()}
	p.Settings.Budget, p.Settings.AuditShare, p.Settings.GoldEvery = 12, 0, 0
	if p.ID, err = w.store.CreateProject(t.Context(), admin.ID, p); err != nil {
		t.Fatal(err)
	}
	dbtest.AddImages(t, w.store, p.ID, dbtest.Images(200, 12, 32))
	dbtest.OpenRound(t, w.store, admin.ID, p.ID)
	b, src := w.label(admin, p)
	type answer struct {
		keys  []string
		class int
	}
	b.key("5")
	next := b.image(src)
	b.saved()
	w.expect(p, src, winnow.VerdictKnown, 4)
	src = next
	eval[bool](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", { code: "Slash", key: "/", bubbles: true }))`)
	b.until(`document.activeElement.id === "label-filter"`)
	for _, a := range []answer{
		{[]string{"0", "5", "7", kb.Enter}, 57},
		// The field has kept the focus. The name itself comes before names that hold it.
		{[]string{"o", "w", "l", kb.Enter}, 160},
		{[]string{"o", "w", "l", kb.ArrowDown, kb.Enter}, 150},
		{[]string{"u", "n", "k", "n", kb.Enter}, -1},
	} {
		for _, k := range a.keys {
			b.key(k)
		}
		next := b.image(src)
		b.saved()
		if a.class < 0 {
			w.expect(p, src, winnow.VerdictUnknown, -1)
		} else {
			w.expect(p, src, winnow.VerdictKnown, a.class)
		}
		src = next
	}
	b.key("o")
	b.key("w")
	b.look("label-filter")
	b.key(kb.Escape)
	b.key("s")
	b.image(src)
	b.saved()
	w.expect(p, src, winnow.VerdictSkip, -1)
}

// The timer stops while the page is hidden, and when nothing comes from the person.
func idleTime(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	eval[bool](b, `(() => {
		const real = performance.now.bind(performance);
		window.passed = 0;
		performance.now = () => real() + passed;
		window.hide = (hidden) => {
			Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
			document.dispatchEvent(new Event("visibilitychange"));
		};
		return true;
	})()`)
	duration := func(src string) time.Duration {
		t.Helper()
		var ms int64
		err := w.store.Pool().QueryRow(t.Context(), `SELECT duration_ms FROM label_events WHERE image_id = $1 ORDER BY id DESC LIMIT 1`, imageID(t, src)).Scan(&ms)
		if err != nil {
			t.Fatal(err)
		}
		return time.Duration(ms) * time.Millisecond
	}
	answer := func(passing string) time.Duration {
		t.Helper()
		eval[bool](b, passing+`, true`)
		b.key("1")
		before := src
		src = b.image(src)
		b.saved()
		return duration(before)
	}
	const slack = 15 * time.Second // of a slow machine, in real time
	if got := answer(`passed += 20_000`); got < 20*time.Second || got > 20*time.Second+slack {
		t.Errorf("20 seconds of looking count %v", got)
	}
	if got := answer(`passed += 600_000`); got < 30*time.Second || got > 30*time.Second+slack {
		t.Errorf("ten minutes without a sign count %v, want the 30 seconds after which the timer stops", got)
	}
	if got := answer(`passed += 25_000, dispatchEvent(new PointerEvent("pointermove")), passed += 25_000`); got < 50*time.Second || got > 50*time.Second+slack {
		t.Errorf("50 seconds with the mouse moved in between count %v", got)
	}
	if got := answer(`passed += 5_000, hide(true), passed += 600_000, hide(false), passed += 2_000`); got < 7*time.Second || got > 7*time.Second+slack {
		t.Errorf("7 seconds and ten minutes on another page count %v", got)
	}
}

// Swipe right = the suggestion, left = unknown; where none is shown, right says so.
func swipes(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, func(s *winnow.Settings) { s.Suggest = true })
	b, src := w.label(admin, p)
	suggested := func() int {
		return eval[int](b, `[...document.querySelectorAll("button[value^=known]")].findIndex(e => e.innerText.includes("suggested"))`)
	}
	b.look("label-suggestion")
	b.phone()
	first := suggested()
	b.swipe(150)
	second := b.image(src)
	b.swipe(-150)
	third := b.image(second)
	b.swipe(40) // too short to be meant
	b.drag(150)
	b.until(`!document.getElementById("label-swipe").hidden`)
	if got, want := b.text("#label-swipe"), p.Classes[suggested()].Name; got != want {
		t.Errorf("while the finger is down the page says %q, want %q", got, want)
	}
	b.theme("dark")
	b.accessible("a swipe")
	at := eval[[]float64](b, `(() => { const r = document.getElementById("label-canvas").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	b.touch(input.DispatchTouchEventTypeTouchMove, at[0], at[1]) // back again: taken back
	b.touch(input.DispatchTouchEventTypeTouchEnd)
	if now := b.image(""); now != third {
		t.Errorf("a swipe that was taken back answered: %s, not %s", now, third)
	}
	b.saved()
	w.expect(p, src, winnow.VerdictKnown, first)
	w.expect(p, second, winnow.VerdictUnknown, -1)
	if n := len(w.decided(p, 0)); n != 2 {
		t.Errorf("%d answers came from two swipes", n)
	}

	// Who wants less motion sees the answer's name, and the image stays.
	b.media("prefers-reduced-motion", "reduce")
	b.drag(-150)
	b.until(`!document.getElementById("label-swipe").hidden`)
	if got := eval[string](b, `getComputedStyle(document.querySelector("#label-canvas img")).transform`); got != "none" {
		t.Errorf("with reduced motion the image moves: %s", got)
	}
	if moving := eval[[]string](b, `[...document.querySelectorAll("*")].filter(e => parseFloat(getComputedStyle(e).transitionDuration) > 0 || getComputedStyle(e).animationName !== "none").map(e => e.className)`); len(moving) > 0 {
		t.Errorf("with reduced motion these still move: %v", moving)
	}
	b.touch(input.DispatchTouchEventTypeTouchEnd)
	b.image(third)

	// The project that shows no suggestion has none to take.
	p.Settings.Suggest = false
	if err := w.store.UpdateProject(t.Context(), admin.ID, p); err != nil {
		t.Fatal(err)
	}
	b.openLabeling(p)
	src = b.image("")
	b.swipe(150)
	b.shows("There is no suggestion to take.")
	if now := b.image(""); now != src {
		t.Errorf("a swipe to the right answered without a suggestion")
	}
}

// Flagging is one key, and no dialog; a note is the same key again. Flags wait with the
// answers while the network is away.
func flags(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	flagged := func() map[winnow.ImageID]string {
		t.Helper()
		rows, err := w.store.Pool().Query(t.Context(), `SELECT q.image_id, f.note FROM item_flags f JOIN query_items q ON q.id = f.item_id WHERE q.project_id = $1`, p.ID)
		if err != nil {
			t.Fatal(err)
		}
		notes := map[winnow.ImageID]string{}
		var id winnow.ImageID
		var note string
		if _, err := pgx.ForEachRow(rows, []any{&id, &note}, func() error { notes[id] = note; return nil }); err != nil {
			t.Fatal(err)
		}
		return notes
	}
	b.key("f")
	b.shows("Flagged for an admin.")
	b.until(`document.getElementById("label-flag").getAttribute("aria-pressed") === "true"`)
	b.key("1") // labeling goes on at once
	second := b.image(src)
	b.until(`document.getElementById("label-flag").getAttribute("aria-pressed") === "false"`)

	b.key("f")
	b.key("f")
	b.until(`document.activeElement.id === "label-note-text"`)
	eval[bool](b, `document.getElementById("label-note-text").value = "", true`) // a real keyboard would not have typed the f
	for _, k := range "2 boats" {
		b.key(string(k))
	}
	b.look("label-flag")
	b.key(kb.Enter)
	b.shows("Flagged with your note.")
	if now := b.image(""); now != second {
		t.Errorf("the note was taken for an answer: %s, not %s", now, second)
	}

	b.online(false)
	b.key("2")
	third := b.image(second)
	b.key("f")
	b.key("3")
	b.image(third)
	b.online(true)
	b.saved()
	want := map[winnow.ImageID]string{imageID(t, src): "", imageID(t, second): "2 boats", imageID(t, third): ""}
	if got := flagged(); !maps.Equal(got, want) {
		t.Errorf("flagged %v, want %v", got, want)
	}
	w.expect(p, second, winnow.VerdictKnown, 1)
	w.expect(p, third, winnow.VerdictKnown, 2)

	// Without scripts it is a form.
	b.withoutScripts()
	b.open(labelPath(p))
	fourth := b.attribute("#label-canvas img", "src")
	b.click(".label-plain summary")
	b.fill("#plain-note", "half a fish")
	b.submit("#plain-flag")
	if now := b.attribute("#label-canvas img", "src"); now != fourth {
		t.Errorf("after flagging the form shows %s, not %s", now, fourth)
	}
	if got := flagged()[imageID(t, fourth)]; got != "half a fish" {
		t.Errorf("flagged by a form with %q", got)
	}
}

// Dark by default; light if this browser was told so, also after a reload, and without
// scripts.
func colours(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, _ := w.label(admin, p)
	theme := func() string { return b.attribute("html", "data-theme") }
	b.media("prefers-color-scheme", "light")
	b.reload()
	b.labelingReady()
	if theme() != "dark" {
		t.Errorf("at first it is %s", theme())
	}
	b.click("#label-theme button")
	b.reload()
	b.labelingReady()
	if got := eval[string](b, `getComputedStyle(document.querySelector(".labeling")).backgroundColor`); theme() != "light" || got != "rgb(246, 246, 244)" {
		t.Errorf("told to be light it is %s, %s", theme(), got)
	}
	b.withoutScripts()
	b.open(labelPath(p))
	b.submit("#label-theme button")
	if theme() != "dark" {
		t.Errorf("told to be dark by a form it is %s", theme())
	}
}

// Everything can be done with Tab, Enter and Space, and what has the focus shows it.
func keyboardAlone(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	b.key("1")
	src = b.image(src)
	b.saved()
	seen := map[string]bool{}
	for range 40 {
		b.key(kb.Tab)
		focus := eval[struct {
			Name    string
			Outline string
			Inside  bool
		}](b, `(() => {
			const e = document.activeElement, r = e.getBoundingClientRect(), s = getComputedStyle(e);
			return { name: e.id || e.value || e.className || e.tagName, outline: s.outlineStyle + " " + s.outlineWidth,
				inside: r.bottom > 0 && r.right > 0 && r.top < innerHeight && r.left < innerWidth };
		})()`)
		if focus.Name == "BODY" || seen[focus.Name] {
			break
		}
		seen[focus.Name] = true
		if focus.Outline != "solid 3px" || !focus.Inside {
			t.Errorf("%s has the focus and the outline %q; on the screen: %v", focus.Name, focus.Outline, focus.Inside)
		}
		if focus.Name == "known:2" {
			b.look("label-focus")
			b.key(kb.Enter)
			next := b.image(src)
			b.saved()
			w.expect(p, src, winnow.VerdictKnown, 2)
			// The focus stays, so that the next answer is one key again.
			b.key(" ")
			src = b.image(next)
			b.saved()
			w.expect(p, next, winnow.VerdictKnown, 2)
		}
	}
	for _, want := range []string{"label-home", "label-help-toggle", "known:0", "known:3", "unknown", "skip", "unreadable", "label-undo", "label-flag", "label-zoom", "label-past"} {
		if !seen[want] {
			t.Errorf("Tab does not come to %s; it came to %v", want, seen)
		}
	}
}

// A screen reader hears what was labeled, what is next and how many are left; buttons
// are buttons, with names.
func screenReader(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, func(s *winnow.Settings) { s.Suggest = true })
	b, src := w.label(admin, p)
	b.key("3")
	b.said("Labeled mushroom. 23 left. Suggested:")
	src = b.image(src)
	b.key("u")
	b.said("Labeled Unknown class. 22 left.")
	b.image(src)
	b.key(backspace)
	b.said("Took back Unknown class. It is shown again. 23 left.")
	if got := eval[string](b, `document.getElementById("label-say").getAttribute("role") + " " + document.getElementById("label-say").getAttribute("aria-live")`); got != "status polite" {
		t.Errorf("the live region is %q", got)
	}
	if nameless := eval[[]string](b, `[...document.querySelectorAll("button, a, input:not([type=hidden])")]
		.filter(e => e.checkVisibility({visibilityProperty: true}) && !(e.innerText.trim() || e.getAttribute("aria-label") || e.labels?.length)).map(e => e.outerHTML)`); len(nameless) > 0 {
		t.Errorf("without a name: %v", nameless)
	}
}

// Z and a click zoom, arrows move what is seen; H opens the instructions, beside the
// image and not over the answers, while labeling goes on.
func zoomAndHelp(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	b.key("z")
	b.until(`document.getElementById("label-canvas").classList.contains("is-zoomed")`)
	b.key(kb.ArrowRight)
	b.key(kb.ArrowUp)
	b.until(`document.getElementById("label-canvas").style.getPropertyValue("--zoom-x") === "65%" && document.getElementById("label-canvas").style.getPropertyValue("--zoom-y") === "35%"`)
	b.key("1")
	next := b.image(src)
	if eval[bool](b, `document.getElementById("label-canvas").classList.contains("is-zoomed")`) {
		t.Errorf("the next image is zoomed")
	}
	b.key("h")
	b.look("label-instructions")
	b.key("2")
	b.image(next)
	b.saved()
	w.expect(p, next, winnow.VerdictKnown, 1)
	b.key(kb.Escape)
	b.until(`document.getElementById("label-help").hidden`)
}

// The session ends under the page: labeling goes on, and what was answered is saved
// after signing in in another tab.
func sessionEnds(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	b.clearCookies()
	b.key("1")
	second := b.image(src)
	b.until(`!document.getElementById("label-signin").hidden`)
	b.key("2")
	third := b.image(second)
	b.shows("2 answers are kept here and sent when you sign in again.")
	b.look("label-signed-out")
	other := b.sibling()
	other.open(strings.TrimPrefix(eval[string](b, `document.getElementById("label-signin").href`), b.base))
	other.fill("#email", admin.Email)
	other.fill("#password", secret)
	other.click("main button[type=submit]")
	other.labelingReady() // tells the first tab that somebody is signed in
	b.saved()
	w.expect(p, src, winnow.VerdictKnown, 0)
	w.expect(p, second, winnow.VerdictKnown, 1)
	b.until(`document.getElementById("label-link").hidden`)
	if now := b.image(""); now != third {
		t.Errorf("the page went on to %s by itself", now)
	}
	if theirs := other.image(""); theirs == third {
		t.Errorf("both tabs show %s", third)
	}
}

// The back button leaves, and comes back to where one was.
func backAndForward(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, first := w.label(admin, p)
	b.key("1")
	second := b.image(first)
	b.key("2")
	third := b.image(second)
	b.click(".label-home")
	b.until(`!location.pathname.endsWith("/label")`)
	eval[bool](b, `history.back(), true`)
	b.until(`location.pathname.endsWith("/label")`)
	b.labelingReady()
	if now := b.image(""); now != third {
		t.Errorf("back again it shows %s, not %s", now, third)
	}
	b.saved()
	w.expect(p, first, winnow.VerdictKnown, 0)
	w.expect(p, second, winnow.VerdictKnown, 1)
	b.key(backspace)
	if again := b.image(third); again != second {
		t.Errorf("undo shows %s, not %s", again, second)
	}
	b.saved()
	if n := len(w.decided(p, 0)); n != 1 {
		t.Errorf("%d answers stand, want 1", n)
	}
}

// A reload between two keys loses nothing and shows the image that was there.
func reloadInTheMiddle(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	var answered []string
	for range 4 {
		// Not waiting for anything to be saved.
		b.key("3")
		next := b.image(src)
		answered = append(answered, src)
		b.reload()
		b.labelingReady()
		if src = b.image(""); src != next {
			t.Errorf("after the reload it shows %s, not %s", src, next)
		}
	}
	b.saved()
	for _, src := range answered {
		w.expect(p, src, winnow.VerdictKnown, 2)
	}
	if n := len(w.decided(p, 0)); n != len(answered) {
		t.Errorf("%d answers stand, want %d", n, len(answered))
	}
}

// The network is away for longer than a lease: labeling goes on with what is here,
// and everything arrives.
func offlineForMinutes(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, func(s *winnow.Settings) { s.LeaseSeconds = 10 })
	b, src := w.label(admin, p)
	b.until(`performance.getEntriesByType("resource").filter(e => e.name.endsWith("/display") && e.responseEnd > 0).length >= 9`)
	b.online(false)
	var answered []string
	for range 4 {
		b.key("1")
		answered = append(answered, src)
		src = b.image(src)
	}
	b.key("u")
	answered = append(answered, src)
	undone := b.image(src)
	b.key("2")
	b.image(undone)
	b.key(backspace)
	b.shows("answers are kept here and sent when it is back.")
	b.look("label-offline")
	// Everything that is here can be labeled.
	b.eventually("the images that are here are used up", func() bool {
		shown := eval[*string](b, `document.getElementById("label-wait").hidden ? document.querySelector("#label-canvas img")?.getAttribute("src") ?? null : null`)
		if shown != nil && *shown != "" {
			b.key("4")
		}
		return shown == nil && eval[bool](b, `!document.getElementById("label-wait").hidden`)
	})
	b.shows("No more images here for now")
	b.look("label-offline-empty")
	kept := eval[int](b, `Number(document.getElementById("label-pending").innerText)`)
	if kept < 8 {
		t.Errorf("%d answers are kept, of ten images that a page holds", kept)
	}
	if _, err := w.store.Pool().Exec(t.Context(), lapse, p.ID); err != nil {
		t.Fatal(err)
	}
	b.online(true)
	b.saved()
	b.image("")
	for _, src := range answered[:4] {
		w.expect(p, src, winnow.VerdictKnown, 0)
	}
	w.expect(p, answered[4], winnow.VerdictUnknown, -1)
	w.expect(p, undone, winnow.VerdictKnown, 3)
	b.until(`document.getElementById("label-link").hidden`)
}

// lapse ends the leases of a project, as time does.
const lapse = `UPDATE item_answers SET lease_until = lease_until - interval '1 day' WHERE item_id IN (SELECT id FROM query_items WHERE project_id = $1) AND lease_until IS NOT NULL`

// An answer that comes after somebody else's is not dropped in silence.
func lateAnswer(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	faster := w.person("faster", true)
	b.online(false)
	if _, err := w.store.Pool().Exec(t.Context(), lapse, p.ID); err != nil {
		t.Fatal(err)
	}
	_, items, err := w.store.Claim(t.Context(), p.ID, faster.ID, 1)
	if err != nil || len(items) == 0 || items[0].ImageID != imageID(t, src) {
		t.Fatalf("claimed %+v, %v", items, err)
	}
	if _, err := w.store.Decide(t.Context(), p.ID, faster.ID, winnow.Decision{ItemID: items[0].ID, Verdict: winnow.VerdictUnknown, Class: -1, ClientKey: "first"}); err != nil {
		t.Fatal(err)
	}
	b.key("1")
	b.image(src)
	b.online(true)
	b.shows("has decided this image already")
	b.saved()
	b.look("label-late")
	w.expect(p, src, winnow.VerdictUnknown, -1)
	b.until(`document.querySelectorAll("#label-strip button").length === 0`)
}

// The server is killed and comes back; the page did not stop.
func serverRestarts(t *testing.T, w *world, admin winnow.User) {
	p := w.gallery(admin, nil)
	b, src := w.label(admin, p)
	b.until(`performance.getEntriesByType("resource").filter(e => e.name.endsWith("/display") && e.responseEnd > 0).length >= 9`)
	w.kill()
	var answered []string
	for range 5 {
		b.key("2")
		answered = append(answered, src)
		src = b.image(src)
	}
	w.start()
	b.saved()
	for _, src := range answered {
		w.expect(p, src, winnow.VerdictKnown, 1)
	}
	b.key("1")
	b.image(src)
	b.saved()
	if n := len(w.decided(p, 0)); n != 6 {
		t.Errorf("%d answers stand, want 6", n)
	}
}
