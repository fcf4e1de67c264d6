package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"winnow"
	"winnow/db/dbtest"
)

// openRound makes a project of n small images and opens a round that asks for all of
// them, in the worker's place.
func (w *world) openRound(by winnow.User, n int) *winnow.Project {
	w.t.Helper()
	w.projects++
	p := w.project(by, fmt.Sprintf("Project %d", w.projects), func(s *winnow.Settings) { s.Budget = n })
	dbtest.AddImages(w.t, w.store, p.ID, dbtest.Images(uint64(w.projects), n, 32))
	dbtest.OpenRound(w.t, w.store, by.ID, p.ID)
	return p
}

// roundIs waits until a round reaches a state.
func (w *world) roundIs(p *winnow.Project, number int, want winnow.RoundState) *winnow.Round {
	w.t.Helper()
	var round *winnow.Round
	w.eventually(fmt.Sprintf("round %d is %s", number, want), func() (bool, error) {
		var err error
		round, err = w.store.Round(w.t.Context(), p.ID, number)
		switch {
		case winnow.ErrorCode(err) == winnow.CodeNotFound:
			return false, nil
		case err != nil:
			return false, err
		case round.State == winnow.RoundFailed && want != winnow.RoundFailed:
			return false, fmt.Errorf("it failed: %s", round.Error)
		}
		return round.State == want, nil
	})
	return round
}

// labelPath is a project's labeling page.
func labelPath(p *winnow.Project) string { return fmt.Sprintf("/projects/%d/label", p.ID) }

// openLabeling opens the labeling page and waits until its script has taken over.
func (b *tab) openLabeling(p *winnow.Project) {
	b.t.Helper()
	b.open(labelPath(p))
	b.labelingReady()
}

func (b *tab) labelingReady() {
	b.t.Helper()
	b.until(`document.documentElement.dataset.labeling === "ready"`)
}

// image waits for an image other than the one before. It returns "" when the page
// says that the round has no more.
func (b *tab) image(before string) string {
	b.t.Helper()
	const script = `(() => {
		const wait = document.getElementById("label-wait");
		const passing = ["Saving your last answers", "Looking for images", "The last images are with others"];
		if (!wait.hidden) return passing.includes(document.getElementById("label-wait-title").innerText) ? null : "";
		const image = document.querySelector("#label-canvas img");
		return image?.complete && image.naturalWidth > 0 ? image.getAttribute("src") : null;
	})()`
	var src *string
	b.eventually("there is another image", func() bool {
		src = eval[*string](b, script)
		return src != nil && *src != before
	})
	return *src
}

// saved waits until nothing is on its way to the server.
func (b *tab) saved() {
	b.t.Helper()
	b.until(`document.getElementById("label-pending").innerText === "0"`)
}

// decided are the standing decisions of a round, by image.
func (w *world) decided(p *winnow.Project, number int) map[winnow.ImageID]winnow.Item {
	w.t.Helper()
	out := map[winnow.ImageID]winnow.Item{}
	for _, item := range w.items(p, number) {
		if item.Verdict != "" {
			out[item.ImageID] = item
		}
	}
	return out
}

// imageID reads the image from the path of its bytes.
func imageID(t testing.TB, src string) winnow.ImageID {
	t.Helper()
	var project, image int64
	if _, err := fmt.Sscanf(src, "/projects/%d/images/%d/display", &project, &image); err != nil {
		t.Fatalf("%q is not the path of an image: %v", src, err)
	}
	return winnow.ImageID(image)
}

func TestKeysLabelSkipAndUndo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openRound(admin, 8)
	b := w.signIn(admin)
	b.openLabeling(p)

	// One key is one image: four outcomes that stay apart.
	want := map[winnow.ImageID]winnow.Verdict{}
	src := b.image("")
	for key, verdict := range map[string]winnow.Verdict{
		"3": winnow.VerdictKnown, "u": winnow.VerdictUnknown, "s": winnow.VerdictSkip, "x": winnow.VerdictUnreadable,
	} {
		want[imageID(t, src)] = verdict
		b.key(key)
		src = b.image(src)
	}
	b.saved()
	for id, item := range w.decided(p, 0) {
		if item.Verdict != want[id] || (item.Verdict == winnow.VerdictKnown) != (item.Class == 2) {
			t.Errorf("image %d is %q, class %d; want %q", id, item.Verdict, item.Class, want[id])
		}
		delete(want, id)
	}
	if len(want) > 0 {
		t.Errorf("not saved: %v", want)
	}

	// Undo goes back one image at a time, also after a reload, and the image can be
	// answered otherwise.
	b.reload()
	b.labelingReady()
	last := eval[string](b, `document.querySelector("#label-strip img").getAttribute("src")`)
	b.key(backspace)
	src = b.image(src)
	if imageID(t, src) != imageID(t, strings.Replace(last, "/thumb", "/display", 1)) {
		t.Errorf("undo shows %s; the last decision was on %s", src, last)
	}
	b.key("1")
	b.image(src)
	b.saved()
	if item := w.decided(p, 0)[imageID(t, src)]; item.Verdict != winnow.VerdictKnown || item.Class != 0 {
		t.Errorf("answered again: %q, class %d", item.Verdict, item.Class)
	}

	// Keys that are the browser's, or typed into nothing, decide nothing.
	before := len(w.decided(p, 0))
	eval[bool](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", {code: "Digit1", key: "1", repeat: true, bubbles: true}))`)
	eval[bool](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", {code: "KeyS", key: "s", ctrlKey: true, bubbles: true}))`)
	b.key("9") // there is no ninth class
	b.saved()
	if after := len(w.decided(p, 0)); after != before {
		t.Errorf("%d decisions came from keys that mean nothing", after-before)
	}
}

func TestOutboxOutlivesReloadAndSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openRound(admin, 6)
	b := w.signIn(admin)
	b.openLabeling(p)

	// The server goes away; labeling goes on.
	src := b.image("")
	b.until(`performance.getEntriesByType("resource").filter(e => e.name.endsWith("/display") && e.responseEnd > 0).length >= 5`)
	w.stop()
	b.key("1")
	second := b.image(src)
	b.key("2")
	b.until(`document.getElementById("label-pending").innerText === "2"`)
	b.shows("2 answers are kept here")

	// The tab is closed before the server is back, and the next one sends them.
	b.leave()
	w.start()
	b.openLabeling(p)
	b.saved()
	got := w.decided(p, 0)
	if len(got) != 2 || got[imageID(t, src)].Class != 0 || got[imageID(t, second)].Class != 1 {
		t.Fatalf("after the server came back: %+v", got)
	}

	// The session ends under the page: the answer waits for the next sign-in.
	third := b.image("")
	b.clearCookies()
	b.key("3")
	b.until(`!document.getElementById("label-signin").hidden`)
	other := b.sibling()
	other.signIn(admin)
	eval[bool](b, `window.dispatchEvent(new Event("focus"))`)
	b.saved()
	if item := w.decided(p, 0)[imageID(t, third)]; item.Class != 2 {
		t.Errorf("answered while signed out: %+v", item)
	}
}

func TestTwoAnnotatorsNeverShareAnImage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, other := w.person("first", true), w.person("second", true)
	const n = 40
	p := w.openRound(admin, n)

	type answer struct {
		Image winnow.ImageID
		Class int
	}
	answers := make(chan []answer, 2)
	label := func(b *tab, class int) {
		var mine []answer
		src := b.image("")
		for src != "" {
			mine = append(mine, answer{imageID(t, src), class})
			b.key(fmt.Sprint(class + 1))
			src = b.image(src)
		}
		answers <- mine
	}
	tabs := []*tab{w.signIn(admin), w.signIn(other)}
	for _, b := range tabs {
		b.openLabeling(p)
	}
	go label(tabs[0], 0)
	go label(tabs[1], 1)

	seen := map[winnow.ImageID]int{}
	for range tabs {
		for _, a := range <-answers {
			if _, twice := seen[a.Image]; twice {
				t.Errorf("image %d was shown to both", a.Image)
			}
			seen[a.Image] = a.Class
		}
	}
	for _, b := range tabs {
		b.saved()
	}
	got := w.decided(p, 0)
	if len(got) != n || len(seen) != n {
		t.Errorf("%d labels of %d answers are there; want %d", len(got), len(seen), n)
	}
	for id, item := range got {
		if item.Class != seen[id] {
			t.Errorf("image %d is class %d; want %d", id, item.Class, seen[id])
		}
	}
	w.roundIs(p, 0, winnow.RoundClosed)
}

func TestTwoTabsOfOnePersonShowDifferentImages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openRound(admin, 30)
	first := w.signIn(admin)
	first.openLabeling(p)
	second := first.sibling()
	second.openLabeling(p)
	a, b := first.image(""), second.image("")
	for range 5 {
		if a == b {
			t.Fatalf("both tabs show %s", a)
		}
		first.key("1")
		a = first.image(a)
		second.key("1")
		b = second.image(b)
	}
	first.saved()
	second.saved()
	if n := len(w.decided(p, 0)); n != 10 {
		t.Errorf("%d labels of 10 answers", n)
	}
}

func TestLabelingWithoutJavaScript(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openRound(admin, 5)
	b := w.signIn(admin)
	b.withoutScripts()
	b.open(labelPath(p))

	current := func() winnow.ImageID { return imageID(t, b.attribute("#label-canvas img", "src")) }
	press := func(value string) { b.submit(fmt.Sprintf("button[name=answer][value=%q]", value)) }

	want := map[winnow.ImageID]winnow.Verdict{current(): winnow.VerdictKnown}
	press("known:1")
	want[current()] = winnow.VerdictUnknown
	press("unknown")
	want[current()] = winnow.VerdictSkip
	press("skip")
	undone := current()
	press("unreadable")
	b.submit("#label-undo")
	if current() != undone {
		t.Errorf("undo shows image %d, not %d", current(), undone)
	}
	want[undone] = winnow.VerdictUnreadable
	press("unreadable")
	want[current()] = winnow.VerdictKnown
	press("known:3")
	if text := b.html("main"); !strings.Contains(text, "Round 0 is done") {
		t.Errorf("at the end the page says:\n%s", text)
	}

	got := w.decided(p, 0)
	for id, verdict := range want {
		if got[id].Verdict != verdict {
			t.Errorf("image %d is %q, want %q", id, got[id].Verdict, verdict)
		}
	}
	w.roundIs(p, 0, winnow.RoundClosed)
}

func TestLabelingByTouch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("ada", true)
	p := w.openRound(admin, 4)
	b := w.signIn(admin)
	b.phone()
	b.openLabeling(p)

	small := eval[[]string](b, `[...document.querySelectorAll("main button, main a, header a, header button")]
		.filter(e => e.checkVisibility() && (e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44))
		.map(e => e.innerText + " " + JSON.stringify(e.getBoundingClientRect()))`)
	if len(small) > 0 {
		t.Errorf("too small for a thumb: %v", small)
	}
	src := b.image("")
	b.tap(`button[value="known:3"]`)
	again := b.image(src)
	b.tap("button[value=skip]")
	b.image(again)
	b.tap("#label-undo")
	if back := b.image(""); back != again {
		t.Errorf("undo shows %s, want %s", back, again)
	}
	b.tap("button[value=unknown]")
	b.image(again)
	b.saved()
	got := w.decided(p, 0)
	if got[imageID(t, src)].Class != 3 || got[imageID(t, again)].Verdict != winnow.VerdictUnknown || len(got) != 2 {
		t.Errorf("decided: %+v", got)
	}
}

// TestBadInput sends what no page sends.
func TestBadInput(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin, viewer, stranger := w.person("ada", true), w.person("vic", false), w.person("stan", false)
	p := w.openRound(admin, 6)
	foreign := w.openRound(admin, 3)
	dbtest.Join(t, w.store, admin.ID, p.ID, viewer, winnow.RoleViewer)

	c := w.client(admin)
	type claim struct {
		Items []struct {
			ID int64 `json:"id"`
		} `json:"items"`
	}
	var mine, theirs claim
	c.json(labelPath(p)+"/claim", map[string]any{"n": 3}, &mine)
	c.json(labelPath(foreign)+"/claim", map[string]any{"n": 1}, &theirs)
	if len(mine.Items) != 3 || len(theirs.Items) != 1 {
		t.Fatalf("claimed %d and %d items", len(mine.Items), len(theirs.Items))
	}
	first, second := mine.Items[0].ID, mine.Items[1].ID
	decision := func(item int64, verdict string, class int, key string) map[string]any {
		return map[string]any{"item": item, "verdict": verdict, "class": class, "client_key": key, "duration_ms": 5}
	}

	cases := []struct {
		name   string
		who    *client
		path   string
		body   any
		status int
	}{
		{"decide", c, "/decide", decision(first, "known", 1, "a"), 200},
		{"the same again", c, "/decide", decision(first, "known", 1, "a"), 200},
		{"the same key, another verdict", c, "/decide", decision(first, "unknown", -1, "a"), 409},
		{"decided already", c, "/decide", decision(first, "known", 0, "b"), 409},
		{"no such class", c, "/decide", decision(second, "known", 4, "c"), 422},
		{"negative class", c, "/decide", decision(second, "known", -1, "d"), 422},
		{"no such verdict", c, "/decide", decision(second, "<b>maybe</b>", 0, "e"), 422},
		{"no client key", c, "/decide", decision(second, "known", 0, ""), 422},
		{"another project's item", c, "/decide", decision(theirs.Items[0].ID, "known", 0, "f"), 404},
		{"no such item", c, "/decide", decision(1<<40, "known", 0, "g"), 404},
		{"not JSON", c, "/decide", json.RawMessage(`"x"`), 422},
		{"too large", c, "/decide", map[string]any{"client_key": string(make([]byte, 100<<10))}, 413},
		{"too many items", c, "/claim", map[string]any{"n": 1000}, 422},
		{"somebody else's page", c, "/decide", asUser(decision(second, "known", 0, "h"), stranger), 401},
		{"a viewer", w.client(viewer), "/decide", decision(second, "known", 0, "i"), 403},
		{"a stranger", w.client(stranger), "/decide", decision(second, "known", 0, "j"), 404},
		{"nobody", w.anonymous(), "/decide", decision(second, "known", 0, "k"), 401},
	}
	for _, tc := range cases {
		status, body := tc.who.json(labelPath(p)+tc.path, tc.body, nil)
		if status != tc.status {
			t.Errorf("%s: status %d, want %d\n%s", tc.name, status, tc.status, body)
		}
		if strings.Contains(string(body), "<b>") {
			t.Errorf("%s: the answer repeats markup:\n%s", tc.name, body)
		}
	}

	// The forms answer with the page again, its status, and the next image.
	status, body := c.form(labelPath(p), "item", fmt.Sprint(first), "answer", "known:0", "client_key", "l")
	if status != 409 || !strings.Contains(string(body), "label-canvas") {
		t.Errorf("a decided item from the form: status %d\n%s", status, body)
	}
	// A double submit counts once.
	for range 2 {
		if status, body := c.form(labelPath(p), "item", fmt.Sprint(second), "answer", "known:0", "client_key", "m"); status != 303 {
			t.Errorf("double submit: status %d\n%s", status, body)
		}
	}
	if n := len(w.decided(p, 0)); n != 2 {
		t.Errorf("%d labels are there, want 2", n)
	}
	if status, _ := c.get("/projects/999999/label"); status != 404 {
		t.Errorf("an unknown project: status %d", status)
	}
}

// asUser says that a decision was made on the page of somebody.
func asUser(decision map[string]any, u winnow.User) map[string]any {
	decision["user"] = u.ID
	return decision
}
