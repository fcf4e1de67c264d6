package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// patience bounds every wait for the page. Nothing is measured by it: it only
// turns a page that never comes into a failure instead of a hang.
const patience = 3 * time.Minute

// chromium is the one browser that all tests share; each test has its own
// profile in it. It is started by the first test that needs it.
var chromium = sync.OnceValues(func() (context.Context, error) {
	path, err := findChromium()
	if err != nil {
		return nil, err
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path),
		chromedp.NoFirstRun,
		chromedp.NoDefaultBrowserCheck,
		chromedp.Headless,
		chromedp.DisableGPU,
		chromedp.NoSandbox, // the tests may run as root
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("force-color-profile", "srgb"),
	}
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	atExit(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	atExit(cancel)
	if err := chromedp.Do(ctx); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return ctx, nil
})

func findChromium() (string, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("no Chromium or Chrome on PATH")
}

// tab is a page in a browser profile of its own, at one server.
type tab struct {
	t    testing.TB
	ctx  context.Context
	base string
}

// newTab opens a tab in a fresh profile, 1280 pixels wide.
func newTab(t testing.TB, base string) *tab {
	t.Helper()
	browser, err := chromium()
	if err != nil {
		t.Skipf("no browser: %v (scripts/need.sh browser installs one)", err)
	}
	ctx, cancel := chromedp.NewContext(browser, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	return startTab(t, ctx, base)
}

// sibling opens another tab in the same profile.
func (b *tab) sibling() *tab {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx)
	b.t.Cleanup(cancel)
	return startTab(b.t, ctx, b.base)
}

// startTab opens the tab. An exception that a page's script does not catch fails
// the test.
func startTab(t testing.TB, ctx context.Context, base string) *tab {
	t.Helper()
	b := &tab{t: t, ctx: ctx, base: base}
	err := chromedp.Listen(ctx, func(ev any) {
		if e, ok := ev.(*runtime.EventExceptionThrown); ok {
			t.Errorf("script error: %s", &chromedp.ExceptionError{ExceptionDetails: e.ExceptionDetails})
		}
	})
	if err != nil {
		t.Fatalf("open a tab: %v", err)
	}
	b.desktop()
	return b
}

func (b *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	run(b, chromedp.Steps(steps...))
}

// run does one action and returns its value, or fails the test.
func run[T any](b *tab, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	value, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatalf("browser: %v%s", err, b.where())
	}
	return value
}

// where describes the page for a failure's message.
func (b *tab) where() string {
	ctx, cancel := context.WithTimeout(b.ctx, 5*time.Second)
	defer cancel()
	seen, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href + "\n" + (document.body?.innerText ?? "")`))
	if err != nil {
		return ""
	}
	return "\nat " + seen
}

// open loads a page of the server.
func (b *tab) open(path string) {
	b.t.Helper()
	b.do(chromedp.Navigate(b.base + path))
}

// leave goes away from the site.
func (b *tab) leave() {
	b.t.Helper()
	b.do(chromedp.Navigate("about:blank"))
}

// reload loads the page again.
func (b *tab) reload() {
	b.t.Helper()
	b.do(chromedp.Reload())
}

// eval runs an expression in the page and decodes its value.
func eval[T any](b *tab, expression string) T {
	b.t.Helper()
	return run(b, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}

// until waits for an expression to be true in the page.
func (b *tab) until(expression string) {
	b.t.Helper()
	b.eventually(expression, func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool](`!!(`+expression+`)`))
		return err == nil && ok // an error means that the page is being replaced
	})
}

// eventually waits for a condition of the page.
func (b *tab) eventually(what string, condition func() bool) {
	b.t.Helper()
	for deadline := time.Now().Add(patience); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			b.t.Fatalf("waited too long until %s%s", what, b.where())
		}
	}
}

// shows waits for text anywhere on the page.
func (b *tab) shows(text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`document.body && document.body.innerText.includes(%s)`, quote(text)))
}

// fill puts a value into a form field.
func (b *tab) fill(selector, value string) {
	b.t.Helper()
	b.do(chromedp.SetValue(chromedp.CSS(selector), value))
}

// click presses an element the way a person does, and fails if it is covered.
func (b *tab) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector)))
}

// tap touches an element.
func (b *tab) tap(selector string) {
	b.t.Helper()
	b.do(chromedp.Tap(chromedp.CSS(selector)))
}

// clickText presses the element whose text starts with the given words. It finds and
// presses it in one go: live parts of a page may be replaced at any moment.
func (b *tab) clickText(tag, text string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`(() => {
		const element = [...document.querySelectorAll(%s)].find(e => e.innerText.trim().startsWith(%s));
		element?.click();
		return element;
	})()`, quote(tag), quote(text)))
}

// check ticks a checkbox.
func (b *tab) check(selector string) {
	b.t.Helper()
	eval[bool](b, fmt.Sprintf(`document.querySelector(%s).checked = true`, quote(selector)))
}

// files chooses files in an upload field.
func (b *tab) files(selector string, files ...string) {
	b.t.Helper()
	b.do(chromedp.SetUploadFiles(chromedp.CSS(selector), files))
}

// key presses and lets go of a key: a character, or one of package kb.
func (b *tab) key(k string) {
	b.t.Helper()
	b.do(chromedp.KeyEvent(k))
}

// desktop makes the tab as wide as a small laptop.
func (b *tab) desktop() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(1280, 800))
}

// phone makes the tab as wide as a phone.
func (b *tab) phone() {
	b.t.Helper()
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateScale(2), chromedp.EmulateTouch))
}

// withoutScripts turns JavaScript off for pages loaded from now on.
func (b *tab) withoutScripts() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
		return err
	}))
}

// clearCookies ends the session of the tab's profile.
func (b *tab) clearCookies() {
	b.t.Helper()
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.ClearBrowserCookies, cdp.Empty{})
		return err
	}))
}

// attribute is an attribute of an element, and html what is inside one. Unlike eval
// they work in pages without scripts.
func (b *tab) attribute(selector, name string) string {
	b.t.Helper()
	return run(b, chromedp.AttributeValue(chromedp.CSS(selector), name)).Value
}

func (b *tab) html(selector string) string {
	b.t.Helper()
	return run(b, chromedp.OuterHTML(chromedp.CSS(selector)))
}

// submit presses a button that loads another page, and waits for that.
func (b *tab) submit(selector string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.Click(chromedp.CSS(selector))); err != nil {
		b.t.Fatalf("press %s: %v%s", selector, err, b.where())
	}
}

func quote(s string) string {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(data)
}

const backspace = kb.Backspace
