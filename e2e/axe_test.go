package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axe-core checks pages against the rules of WCAG that a program can check. It is
// no part of Winnow: npm fetches this one version into the user's cache.
const (
	axeVersion = "4.14.1"
	axeSHA512  = "FHfa+lmNjQZfJz1q8wKqIDwC6DExcHt/pkjNQb09a3NPjCKg2rhu5qb2S4r76ASyFNNtuFooJpZe37OgudVGtQ=="
)

// axe is its script.
var axe = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	name := "axe-core-" + axeVersion + ".tgz"
	file := filepath.Join(cache, "winnow-test", name)
	if script, err := readAxe(file); err == nil {
		return script, nil
	}
	npm, err := exec.LookPath("npm")
	if err != nil {
		return "", errors.New("npm, which fetches axe-core, is not on PATH")
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp(filepath.Dir(file), "fetch-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	fetch := exec.CommandContext(ctx, npm, "pack", "--silent", "--ignore-scripts", "axe-core@"+axeVersion)
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		return "", fmt.Errorf("npm pack axe-core@%s: %w\n%s", axeVersion, err, out)
	}
	if err := os.Rename(filepath.Join(dir, name), file); err != nil {
		return "", err
	}
	return readAxe(file)
})

// readAxe takes the script out of the package, if that is the one we know.
func readAxe(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	if sum := sha512.Sum512(data); base64.StdEncoding.EncodeToString(sum[:]) != axeSHA512 {
		return "", fmt.Errorf("%s is not axe-core %s as it was published", file, axeVersion)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return "", err
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return "", fmt.Errorf("%s: axe.min.js: %w", file, err)
		}
		if header.Name == "package/axe.min.js" {
			script, err := io.ReadAll(files)
			return string(script), err
		}
	}
}

// needAxe skips a test that is about nothing else.
func needAxe(t testing.TB) {
	t.Helper()
	if _, err := axe(); err != nil {
		t.Skipf("no axe-core: %v", err)
	}
}

// accessible checks the page, as it is now, against WCAG 2.2 A and AA. Where
// axe-core cannot be had it checks nothing, and says so.
func (b *tab) accessible(name string) {
	b.t.Helper()
	script, err := axe()
	if err != nil {
		b.t.Logf("%s is not checked with axe-core: %v", name, err)
		return
	}
	if !eval[bool](b, `"axe" in window`) {
		b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
			_, err := chromedp.Run(ctx, chromedp.Evaluate[bool](script+"\ntrue"))
			return err
		}))
	}
	violations := eval[[]string](b, `axe.run(document, {
		runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
		resultTypes: ["violations"],
	}).then(r => r.violations.flatMap(v => v.nodes.slice(0, 4).map(n =>
		v.id + " (" + v.help + "): " + n.target.join(" ") + ": " + n.any.concat(n.all).map(c => c.message).join("; "))))`)
	if len(violations) > 0 {
		b.t.Errorf("%s breaks WCAG:\n  %s", name, strings.Join(violations, "\n  "))
	}
}

// media sets what the page is told of its surroundings: pairs of a media feature,
// such as prefers-color-scheme, and its value.
func (b *tab) media(pairs ...string) {
	b.t.Helper()
	var features []*emulation.MediaFeature
	for i := 0; i+1 < len(pairs); i += 2 {
		features = append(features, &emulation.MediaFeature{Name: pairs[i], Value: pairs[i+1]})
	}
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features})
		return err
	}))
}
