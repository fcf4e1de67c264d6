package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"winnow"
	"winnow/db/dbtest"
)

// dispute is a round that two people have answered, with three images left to an admin:
// two on which they disagree, and one that they flagged.
type dispute struct {
	*world
	project         *winnow.Project
	admin, ann, bob winnow.User
	items           []winnow.Item // by rank
}

// said are the answers of ann and bob by rank: class indices, or -1 for unknown.
var said = [][2]int{{0, -1}, {2, 2}, {1, 3}, {-1, -1}, {0, 0}, {0, 0}}

func newDispute(t *testing.T) *dispute {
	t.Helper()
	d := &dispute{world: newWorld(t)}
	d.admin = d.person("admin", true)
	d.project = d.world.project(d.admin, "Boats and birds", func(s *winnow.Settings) {
		s.Overlap, s.Budget, s.AuditShare, s.GoldEvery = 2, len(said), 0, 0
	})
	dbtest.AddImages(t, d.store, d.project.ID, dbtest.Images(1, len(said), 64))
	dbtest.OpenRound(t, d.store, d.admin.ID, d.project.ID)
	d.ann, d.bob = d.person("ann", false), d.person("bob", false)
	for _, u := range []winnow.User{d.ann, d.bob} {
		dbtest.Join(t, d.store, d.admin.ID, d.project.ID, u, winnow.RoleAnnotator)
	}
	d.items = d.world.items(d.project, 0)
	for who, u := range []winnow.User{d.ann, d.bob} {
		for rank, item := range d.items {
			d.answer(u, item, said[rank][who])
		}
	}
	if err := d.store.Flag(t.Context(), d.project.ID, d.bob.ID, d.items[4].ID, "Is this not the harbour?\nPlease look."); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *dispute) answer(u winnow.User, item winnow.Item, class int) {
	d.t.Helper()
	decision := winnow.Decision{
		ItemID: item.ID, Verdict: winnow.VerdictKnown, Class: class, DurationMS: 900, ClientKey: fmt.Sprintf("%d-%d", u.ID, item.ID),
	}
	if class < 0 {
		decision.Verdict = winnow.VerdictUnknown
	}
	if _, _, err := d.store.Claim(d.t.Context(), d.project.ID, u.ID, len(said)); err != nil {
		d.t.Fatal(err)
	}
	if _, err := d.store.Decide(d.t.Context(), d.project.ID, u.ID, decision); err != nil {
		d.t.Fatal(err)
	}
}

func (d *dispute) url(path string) string { return fmt.Sprintf("/projects/%d%s", d.project.ID, path) }

// openReview opens the review queue and waits until its script has taken over.
func (d *dispute) openReview(b *tab) {
	b.t.Helper()
	b.open(d.url("/review"))
	b.until(`document.documentElement.dataset.review === "ready"`)
}

// reviewing waits until the review queue shows the item.
func (d *dispute) reviewing(b *tab, item winnow.Item) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.getElementById("review-entry").dataset.image === "%d"`, item.ImageID))
}

func (d *dispute) settled(b *tab) {
	b.t.Helper()
	b.until(`document.documentElement.dataset.pending === "0"`)
}

// Two people disagree; the admin resolves by keyboard; counts and precision follow.
func TestReviewByKeyboard(t *testing.T) {
	t.Parallel()
	d := newDispute(t)
	b := d.signIn(d.admin)

	// The round waits for the admin, and says so.
	round := d.roundIs(d.project, 0, winnow.RoundLabeling)
	if diff := cmp.Diff(winnow.ItemCounts{Total: 6, Known: 3, Unknown: 1}, round.Counts); diff != "" {
		t.Errorf("counts before (-want +got):\n%s", diff)
	}
	b.open(d.url("/rounds/0"))
	b.shows("2 disagreements and 1 flagged image wait for you")
	if badge := eval[string](b, `document.querySelector(".tabs .count").firstChild.textContent`); badge != "3" {
		t.Errorf("the tab says that %q wait", badge)
	}
	b.clickText("a", "2 disagreements")
	b.until(`document.documentElement.dataset.review === "ready"`)

	// What is there to decide by, and what would anchor: hidden.
	d.reviewing(b, d.items[0])
	b.shows("2 answers, no majority")
	b.shows("ann")
	b.shows("bob")
	if eval[bool](b, `document.querySelector(".review-scores").open`) {
		t.Error("the model's scores are shown")
	}
	if height := eval[float64](b, `document.querySelector(".review-image img").getBoundingClientRect().height`); height < 500 {
		t.Errorf("the image is %.0f pixels high on a screen of 800", height)
	}

	// One key each: a class, unknown, and a flagged label that is right as it is.
	b.key("1")
	d.reviewing(b, d.items[2])
	b.key("u")
	d.reviewing(b, d.items[4])
	b.shows("Flagged by bob")
	b.shows("Is this not the harbour?")
	// Back, and otherwise: a further correction.
	b.key(backspace)
	d.reviewing(b, d.items[2])
	b.key("4")
	d.reviewing(b, d.items[4])
	b.key("k")
	b.until(`document.getElementById("review-entry").dataset.end !== undefined`)
	b.shows("Nothing to decide")
	d.settled(b)

	round = d.roundIs(d.project, 0, winnow.RoundClosed)
	if diff := cmp.Diff(winnow.ItemCounts{Total: 6, Known: 5, Unknown: 1}, round.Counts); diff != "" {
		t.Errorf("counts after (-want +got):\n%s", diff)
	}
	b.open(d.url("/rounds/0"))
	b.until(`[...document.querySelectorAll(".figure")].some(f => f.innerText.includes("Precision") && f.innerText.includes(".83"))`)
	if n := eval[int](b, `document.querySelectorAll(".tabs .count").length`); n != 0 {
		t.Error("the tab still says that something waits")
	}
	image, err := d.store.Image(t.Context(), d.project.ID, d.items[2].ImageID)
	if err != nil || image.Verdict != winnow.VerdictKnown || image.Class != 3 {
		t.Errorf("the image corrected twice is %q, class %d (%v)", image.Verdict, image.Class, err)
	}

	// From an image's own page, also in a closed round; everything stays in its history.
	b.open(d.url(fmt.Sprintf("/images/%d", d.items[3].ImageID)))
	b.fill("#answer", "known:0")
	b.clickText("button", "Correct")
	b.shows("The label is corrected")
	b.shows("corrected")
	if n := eval[int](b, `document.querySelectorAll(".timeline li").length`); n != 3 {
		t.Errorf("the history has %d entries, want two answers and a correction", n)
	}
	round = d.roundIs(d.project, 0, winnow.RoundClosed)
	if diff := cmp.Diff(winnow.ItemCounts{Total: 6, Known: 6}, round.Counts); diff != "" {
		t.Errorf("counts after the last correction (-want +got):\n%s", diff)
	}
}

// Corrections wait while the server is away, and none is lost or counted twice.
func TestReviewOffline(t *testing.T) {
	t.Parallel()
	d := newDispute(t)
	b := d.signIn(d.admin)
	d.openReview(b)
	d.reviewing(b, d.items[0])
	// The next two are fetched ahead.
	b.until(`performance.getEntriesByType("resource").filter(e => e.name.endsWith("/display") && e.responseEnd > 0).length >= 3`)
	d.stop()
	b.key("1")
	d.reviewing(b, d.items[2])
	b.shows("1 kept here; trying again")
	d.start()
	d.settled(b)
	history, err := d.store.ImageHistory(t.Context(), d.project.ID, d.items[0].ImageID)
	if err != nil || len(history) != 3 || history[0].Kind != winnow.EventCorrection {
		t.Errorf("history %+v (%v)", history, err)
	}
}

// Without JavaScript the same pages work as forms.
func TestReviewWithoutScripts(t *testing.T) {
	t.Parallel()
	d := newDispute(t)
	b := d.signIn(d.admin)
	b.withoutScripts()
	b.open(d.url("/review"))
	shows := func(item winnow.Item) {
		t.Helper()
		if got := b.attribute("#review-entry", "data-image"); got != fmt.Sprint(item.ImageID) {
			t.Fatalf("shows image %s, want %d", got, item.ImageID)
		}
	}
	shows(d.items[0])
	b.submit("#review-next")
	shows(d.items[2])
	b.submit(`button[value="known:3"]`)
	shows(d.items[4])
	b.submit(`button[value="keep"]`)
	if html := b.html("main"); !strings.Contains(html, "That was the last one") || !strings.Contains(html, "1 left for later") {
		t.Errorf("the end of the list: %s", html)
	}
	b.submit("#review-entry a")
	shows(d.items[0])
	b.submit(`button[value="unknown"]`)
	if html := b.html("main"); !strings.Contains(html, "Nothing to decide") {
		t.Errorf("the empty queue: %s", html)
	}
	round := d.roundIs(d.project, 0, winnow.RoundClosed)
	if diff := cmp.Diff(winnow.ItemCounts{Total: 6, Known: 4, Unknown: 2}, round.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

// What people's labels are like: for admins of everybody, for annotators of themselves,
// and nothing of the gold set for the latter.
func TestAnnotatorPages(t *testing.T) {
	t.Parallel()
	d := newDispute(t)
	ctx := t.Context()
	for i, item := range []winnow.Item{d.items[0], d.items[2]} {
		if _, err := d.store.Correct(ctx, d.project.ID, d.admin.ID, item.ImageID, winnow.VerdictKnown, said[2*i][0], fmt.Sprint("c", i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.store.SetGold(ctx, d.project.ID, d.admin.ID, d.items[1].ImageID, true); err != nil {
		t.Fatal(err)
	}
	b := d.signIn(d.admin)
	b.open(d.url("/annotators"))
	rows := eval[[]string](b, `[...document.querySelectorAll(".annotators tbody tr")].map(r => r.innerText.replace(/\s+/g, " "))`)
	if len(rows) != 2 || !strings.Contains(rows[0], "ann 6 ") || !strings.Contains(rows[0], "6 of 6") || !strings.Contains(rows[1], "4 of 6") {
		t.Errorf("rows: %q", rows)
	}
	for _, row := range rows {
		if !strings.Contains(row, "too few to judge by") {
			t.Errorf("%q makes much of a small base", row)
		}
	}
	// The figure of agreement leads to the images behind it.
	b.clickText("td a", "4 of 6")
	b.until(`location.search.includes("answers=differ")`)
	if n := eval[int](b, `document.querySelectorAll(".tile").length`); n != 2 {
		t.Errorf("%d images on which bob differs, want 2", n)
	}
	b.open(d.url("/images?answers=differ"))
	if n := eval[int](b, `document.querySelectorAll(".tile").length`); n != 2 {
		t.Errorf("%d images on which somebody differs, want 2", n)
	}
	b.open(d.url("/images?gold=true"))
	if n := eval[int](b, `document.querySelectorAll(".tile").length`); n != 1 {
		t.Errorf("%d gold images, want 1", n)
	}

	a := d.signIn(d.bob)
	a.open(d.url(""))
	a.clickText(".tabs a", "Your labels")
	a.until(`location.pathname.endsWith("/annotators/me")`)
	a.shows("4 of 6")
	a.shows("By day")
	for _, path := range []string{"/annotators", "/review", "/images?gold=true", "/images?answers=differ", fmt.Sprintf("/images?by=%d", d.ann.ID)} {
		if status, _ := d.client(d.bob).get(d.url(path)); status != http.StatusForbidden {
			t.Errorf("%s: status %d for an annotator, want 403", path, status)
		}
	}
}

// Exports name each annotator's answer, and say what was corrected.
func TestExportOfAnswers(t *testing.T) {
	t.Parallel()
	d := newDispute(t)
	if _, err := d.store.Correct(t.Context(), d.project.ID, d.admin.ID, d.items[0].ImageID, winnow.VerdictKnown, 0, "c"); err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(d.project.ID)
	var answers []string
	for line := range strings.Lines(d.winnow("export", "--project", id, "--answers")) {
		var r winnow.AnswerRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		answers = append(answers, fmt.Sprintf("%d %s %s %s|%s %s", r.Rank, strings.TrimSuffix(r.Annotator, "@example.org"), r.Status, r.Class, r.Decided, r.DecidedClass))
	}
	want := []string{
		"1 ann known ship|known ship", "1 bob unknown |known ship", "2 ann known horse|known horse", "2 bob known horse|known horse",
		"3 ann known bird| ", "3 bob known deer| ",
	}
	if len(answers) != 12 {
		t.Errorf("%d answers, want 12", len(answers))
	} else if diff := cmp.Diff(want, answers[:6]); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
	var origins []string
	for line := range strings.Lines(d.winnow("export", "--project", id)) {
		var r winnow.LabelRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		origins = append(origins, fmt.Sprintf("%d %s %s %s", r.Rank, r.Slice, r.Origin, strings.TrimSuffix(r.Annotator, "@example.org")))
	}
	want = []string{"1 query correction admin", "2 query label ann", "4 query label ann", "5 query label ann", "6 query label ann"}
	if diff := cmp.Diff(want, origins); diff != "" {
		t.Errorf("origins (-want +got):\n%s", diff)
	}
}

// TestReviewPagesAtBothWidths looks at the pages of this file in both widths and both
// colour schemes, with axe-core. WINNOW_REVIEW_SCREENSHOTS names a directory for pictures.
func TestReviewPagesAtBothWidths(t *testing.T) {
	t.Parallel()
	needAxe(t)
	d := newDispute(t)
	if _, err := d.store.Correct(t.Context(), d.project.ID, d.admin.ID, d.items[2].ImageID, winnow.VerdictKnown, 1, "c"); err != nil {
		t.Fatal(err)
	}
	if err := d.store.SetGold(t.Context(), d.project.ID, d.admin.ID, d.items[1].ImageID, true); err != nil {
		t.Fatal(err)
	}
	out := os.Getenv("WINNOW_REVIEW_SCREENSHOTS")
	b := d.signIn(d.admin)
	for name, path := range map[string]string{
		"review": "/review", "annotators": "/annotators", "annotator": fmt.Sprintf("/annotators/%d", d.bob.ID),
		"answers": fmt.Sprintf("/images?by=%d&answers=differ", d.bob.ID), "gold": "/images?gold=true", "round": "/rounds/0",
		"project": "", "image": fmt.Sprintf("/images/%d", d.items[1].ImageID), "settings": "/settings", "people": "/people",
		"review-end": "/review?end=1", "import": "/import",
	} {
		for width, height := range map[int64]int64{1280: 800, 390: 844} {
			var options []chromedp.EmulateViewportOption
			if width < 1000 {
				options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch)
			}
			for _, scheme := range []string{"dark", "light"} {
				b.do(chromedp.EmulateViewport(width, height, options...))
				b.media("prefers-color-scheme", scheme)
				b.open(d.url(path))
				b.until(`document.readyState === "complete"`)
				if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
					t.Errorf("%s is %d pixels wide on a screen of %d", name, wide, width)
				}
				b.accessible(fmt.Sprintf("%s, %d pixels wide, %s,", name, width, scheme))
				if out == "" {
					continue
				}
				full := eval[int64](b, `document.documentElement.scrollHeight`)
				b.do(chromedp.EmulateViewport(width, min(max(height, full), 2400), options...))
				file := filepath.Join(out, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
				if err := os.WriteFile(file, run(b, chromedp.CaptureScreenshot()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
