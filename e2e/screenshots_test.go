package e2e

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"winnow"
	"winnow/app/demo"
	"winnow/db"
	"winnow/jobs"
	"winnow/ml/eaoa"
)

// TestPagesAtBothWidths looks at every page of the demo project, 1280 and 390 pixels
// wide: nothing is wider than the screen, there is one heading, every image and script
// loads, and axe-core finds nothing against WCAG in either colour scheme. With WINNOW_SCREENSHOTS=1 it trains as the demo does and writes what
// it sees to docs/screenshots.
func TestPagesAtBothWidths(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	admin := w.person("admin", true)
	s := newStudio(t, w, admin)
	s.seed()
	b := s.b

	p := s.project
	url := func(path string, args ...any) string {
		return fmt.Sprintf("/projects/%d", p.ID) + fmt.Sprintf(path, args...)
	}

	s.answerRound(0)
	w.eventually("round 1 trains", func() (bool, error) {
		r, err := w.store.Round(t.Context(), p.ID, 1)
		return err == nil && r.State != winnow.RoundQueued && (s.out == "" || r.Progress.Fraction > .3), err
	})
	s.shoot("round-training", url("/rounds/1"))
	s.shoot("label-waiting", url("/label"))
	w.roundIs(p, 1, winnow.RoundLabeling)
	s.answerRound(1)
	w.roundIs(p, 2, winnow.RoundLabeling)

	b.desktop()
	b.openLabeling(p)
	src := b.image("")
	for range 11 {
		b.key(s.key(imageID(t, src)))
		src = b.image(src)
	}
	b.saved()
	s.shoot("label", url("/label"))
	b.key("h")
	s.shootHere("label-instructions")

	s.shoot("projects", "/projects")
	s.shoot("project-new", "/projects/new")
	s.shoot("project", url(""))
	s.shoot("round", url("/rounds/2"))
	s.shoot("round-closed", url("/rounds/1"))
	s.shoot("images", url("/images?round=1"))
	s.shoot("image", url("/images/%d", w.items(p, 1)[0].ImageID))
	s.shoot("import", url("/import"))
	s.shoot("people", url("/people"))
	s.shoot("settings", url("/settings"))
	s.shoot("account", "/account")
	s.shoot("not-found", "/nowhere")
	s.shoot("api", "/api/docs")
	token, err := w.store.CreateInvite(t.Context(), admin.ID, winnow.Invite{ProjectID: p.ID, Email: "annotator@example.org", Role: winnow.RoleAnnotator, ExpiresAt: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	b.clearCookies()
	s.shoot("invitation", "/invite/"+token)
	s.shoot("signin", "/signin")
}

// studio takes pictures of one world's pages.
type studio struct {
	w       *world
	admin   winnow.User
	b       *tab
	store   *db.Store // closes rounds and starts the next, as the server's does
	project *winnow.Project
	out     string // directory, "" to look only
}

func newStudio(t *testing.T, w *world, admin winnow.User) *studio {
	t.Helper()
	s := &studio{w: w, admin: admin, b: w.signIn(admin)}
	if os.Getenv("WINNOW_SCREENSHOTS") != "" {
		s.out = filepath.Join("..", "docs", "screenshots")
		if err := os.MkdirAll(s.out, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	enqueue, err := jobs.NewEnqueue()
	if err != nil {
		t.Fatal(err)
	}
	if s.store, err = db.Open(t.Context(), w.url, db.Options{NextK: eaoa.NextK, Enqueue: enqueue}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.store.Close)
	return s
}

// seed makes the demo project and waits until its first round is open. Only what is
// to be seen trains for as long as the demo does.
func (s *studio) seed() {
	t := s.w.t
	t.Helper()
	p, err := demo.NewProject()
	if err != nil {
		t.Fatal(err)
	}
	if s.out == "" {
		tiny := tinySettings()
		p.Settings.Width, p.Settings.InputSize, p.Settings.Epochs = tiny.Width, tiny.InputSize, 6
		p.Settings.CropPad = tiny.CropPad
	}
	if p.ID, err = s.store.CreateProject(t.Context(), s.admin.ID, p); err != nil {
		t.Fatal(err)
	}
	if s.project, err = demo.Seed(t.Context(), s.store, s.admin.ID, nil); err != nil {
		t.Fatal(err)
	}
	s.w.roundIs(s.project, 0, winnow.RoundLabeling)
}

// answerRound answers a whole round by where its images come from.
func (s *studio) answerRound(number int) {
	t := s.w.t
	t.Helper()
	for _, item := range s.w.items(s.project, number) {
		d := winnow.Decision{
			ItemID: item.ID, Verdict: winnow.VerdictUnknown, Class: -1,
			ClientKey: fmt.Sprintf("oracle-%d", item.ID), DurationMS: 900,
		}
		if class, ok := s.class(item.ImageID); ok {
			d.Verdict, d.Class = winnow.VerdictKnown, class.Index
		}
		if _, err := s.store.Decide(t.Context(), s.project.ID, s.admin.ID, d); err != nil {
			t.Fatal(err)
		}
	}
}

// class is the known class that an image shows, by the folder it came from.
func (s *studio) class(id winnow.ImageID) (winnow.Class, bool) {
	s.w.t.Helper()
	image, err := s.store.Image(s.w.t.Context(), s.project.ID, id)
	if err != nil {
		s.w.t.Fatal(err)
	}
	return s.project.ClassByName(path.Base(path.Dir(image.SourcePath)))
}

// key is what to press for an image.
func (s *studio) key(id winnow.ImageID) string {
	s.w.t.Helper()
	if class, ok := s.class(id); ok {
		return class.Key
	}
	return "u"
}

// shoot opens a page and looks at it at both widths.
func (s *studio) shoot(name, path string) {
	s.w.t.Helper()
	s.b.desktop()
	s.b.open(path)
	s.shootHere(name)
}

// shootHere looks at the page that is open.
func (s *studio) shootHere(name string) {
	t, b := s.w.t, s.b
	t.Helper()
	for _, screen := range []struct {
		width, height int64
		options       []chromedp.EmulateViewportOption
	}{
		{1280, 800, nil},
		{390, 844, []chromedp.EmulateViewportOption{chromedp.EmulateMobile, chromedp.EmulateTouch}},
	} {
		width := screen.width
		b.do(chromedp.EmulateViewport(width, screen.height, screen.options...))
		height := eval[int64](b, `document.documentElement.scrollHeight`)
		b.do(chromedp.EmulateViewport(width, min(max(height, screen.height), 1800), screen.options...))
		// Images far below the edge are loaded when somebody comes near.
		b.until(`document.readyState === "complete" && [...document.images].every(i => i.complete || i.loading === "lazy" && i.getBoundingClientRect().top > innerHeight)`)
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
			t.Errorf("%s is %d pixels wide on a screen of %d", name, wide, width)
		}
		// The page that tries the API is a library's.
		if n := eval[int](b, `document.querySelectorAll("h1").length`); n != 1 && name != "api" {
			t.Errorf("%s has %d main headings", name, n)
		}
		if broken := eval[[]string](b, `[...document.images].filter(i => i.src && i.complete && i.naturalWidth === 0).map(i => i.src)`); len(broken) > 0 {
			t.Errorf("%s: images do not load: %v", name, broken)
		}
		if cut := eval[[]string](b, `[...document.querySelectorAll(".tabs a, .chart text")].filter(e => e.getBoundingClientRect().right > innerWidth).map(e => e.textContent)`); len(cut) > 0 {
			t.Errorf("%s: cut off on a screen of %d: %v", name, width, cut)
		}
		if name != "api" { // a library's page
			for _, scheme := range []string{"dark", "light"} {
				b.media("prefers-color-scheme", scheme)
				b.accessible(fmt.Sprintf("%s, %d pixels wide, %s,", name, width, scheme))
			}
		}
		if s.out == "" {
			continue
		}
		file := filepath.Join(s.out, fmt.Sprintf("%s-%d.png", name, width))
		if err := os.WriteFile(file, run(b, chromedp.CaptureScreenshot()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
