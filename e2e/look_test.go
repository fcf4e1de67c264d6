package e2e

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"winnow"
	"winnow/app/demo"
	"winnow/db/dbtest"
	"winnow/imaging"
	"winnow/jobs"
)

// gallery makes a project of 24 of the demo's drawings and opens a round that asks for
// all of them, in the worker's place.
func (w *world) gallery(by winnow.User, change func(*winnow.Settings)) *winnow.Project {
	w.t.Helper()
	p, err := demo.NewProject()
	if err != nil {
		w.t.Fatal(err)
	}
	p.Name = strings.ReplaceAll(path.Base(w.t.Name()), "_", " ")
	p.Settings.Budget, p.Settings.AuditShare, p.Settings.GoldEvery = 24, 0, 0
	p.Settings.AutoNext = false
	if change != nil {
		change(&p.Settings)
	}
	if p.ID, err = w.store.CreateProject(w.t.Context(), by.ID, p); err != nil {
		w.t.Fatal(err)
	}
	_, err = jobs.NewImporter(w.store, imaging.DefaultLimits()).Import(w.t.Context(), jobs.ImportRequest{
		Project: p, By: by.ID, Source: demo.NewSet(1).First(6), Prefix: "pool", Split: winnow.SplitPool,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	dbtest.OpenRound(w.t, w.store, by.ID, p.ID)
	return p
}

// look looks at the labeling page as it is, at both widths, dark and light: nothing is
// wider than the screen or hidden behind its edge, every button is large enough for a
// thumb, and axe-core finds nothing against WCAG. With WINNOW_SCREENSHOTS=1 it writes
// what it sees to docs/screenshots/labeling.
func (b *tab) look(name string) {
	t := b.t
	t.Helper()
	for _, width := range []int64{1280, 390} {
		if width == 390 {
			b.phone()
		} else {
			b.desktop()
		}
		for _, theme := range []string{"light", "dark"} {
			b.theme(theme)
			at := fmt.Sprintf("%s, %d pixels wide, %s,", name, width, theme)
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				t.Errorf("%s is %d pixels wide", at, wide)
			}
			if small := eval[[]string](b, tooSmall); len(small) > 0 {
				t.Errorf("%s is too small for a thumb: %v", at, small)
			}
			b.accessible(at)
			if os.Getenv("WINNOW_SCREENSHOTS") != "" {
				b.picture(filepath.Join("..", "docs", "screenshots", "labeling"), fmt.Sprintf("%s-%d-%s", name, width, theme))
			}
		}
	}
	b.desktop()
}

// tooSmall lists what can be pressed and is too small for a thumb.
const tooSmall = `[...document.querySelectorAll("main button, main a, header a, header button")]
	.filter(e => e.checkVisibility({visibilityProperty: true}) && (e.getBoundingClientRect().height < 44 || e.getBoundingClientRect().width < 44))
	.map(e => e.innerText + " " + JSON.stringify(e.getBoundingClientRect()))`

// picture writes a picture of the page, small enough to be kept.
func (b *tab) picture(dir, name string) {
	b.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.t.Fatal(err)
	}
	quality := int64(80)
	data := run(b, func(ctx context.Context, t *chromedp.Target) ([]byte, error) {
		r, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
		return r.Data, err
	})
	if err := os.WriteFile(filepath.Join(dir, name+".webp"), data, 0o644); err != nil {
		b.t.Fatal(err)
	}
}

// theme presses the button for the colours until they are these.
func (b *tab) theme(want string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.documentElement.dataset.theme === %[1]s || (document.querySelector("#label-theme button")?.click(), false)`, quote(want)))
}

// online takes the network away from the tab, or gives it back.
func (b *tab) online(on bool) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		if _, err := cdp.Call(ctx, t, network.Enable, network.EnableParams{}); err != nil {
			return err
		}
		_, err := cdp.Call(ctx, t, network.EmulateNetworkConditionsByRule, network.EmulateNetworkConditionsByRuleParams{
			MatchedNetworkConditions: []*network.Conditions{{Offline: !on, DownloadThroughput: -1, UploadThroughput: -1}},
		})
		if err == nil {
			_, err = cdp.Call(ctx, t, network.OverrideNetworkState, network.OverrideNetworkStateParams{
				Offline: !on, DownloadThroughput: -1, UploadThroughput: -1,
			})
		}
		return err
	}))
}

// beforeLoad runs a script in every page of the tab before the page's own.
func (b *tab) beforeLoad(script string) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// touch is a finger on the screen: down, then moved, then lifted.
func (b *tab) touch(kind input.DispatchTouchEventType, at ...float64) {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		points := []*input.TouchPoint{}
		if len(at) == 2 {
			points = append(points, &input.TouchPoint{X: at[0], Y: at[1]})
		}
		_, err := cdp.Call(ctx, t, input.DispatchTouchEvent, input.DispatchTouchEventParams{Type: kind, TouchPoints: points})
		return err
	}))
}

// drag puts a finger on the image and moves it sideways, without lifting it.
func (b *tab) drag(by float64) {
	b.t.Helper()
	at := eval[[]float64](b, `(() => { const r = document.getElementById("label-canvas").getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2] })()`)
	b.touch(input.DispatchTouchEventTypeTouchStart, at...)
	for i := 1.0; i <= 4; i++ {
		b.touch(input.DispatchTouchEventTypeTouchMove, at[0]+by*i/4, at[1])
	}
}

// swipe drags and lifts the finger.
func (b *tab) swipe(by float64) {
	b.t.Helper()
	b.drag(by)
	b.touch(input.DispatchTouchEventTypeTouchEnd)
}

// press presses a key with Shift or another modifier held.
func (b *tab) press(k string, held chromedp.Modifier) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(k, chromedp.KeyModifiers(held)))
}

// said waits until the page has told a screen reader something that holds the text.
func (b *tab) said(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.getElementById("label-say").textContent.includes(%s)`, quote(text)))
}

// text is the text of an element.
func (b *tab) text(selector string) string {
	b.t.Helper()
	return eval[string](b, fmt.Sprintf(`document.querySelector(%s).innerText.trim()`, quote(selector)))
}
