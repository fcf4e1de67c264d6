package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"sync"
	"time"
)

// timeout is how long the page waits for an answer.
const timeout = 15 * time.Second

// browser is one person's: it sends requests with their cookies, and sorts the
// answers as static/js/label/api.js does.
type browser struct {
	base    string // of the site
	address string // that the person comes from
	http    *http.Client
	user    int64

	mu  sync.Mutex
	jar http.CookieJar
}

func newBrowser(base, address string, user int64) *browser {
	b := &browser{base: base, address: address, user: user, http: &http.Client{
		Timeout:       timeout,
		Transport:     &http.Transport{MaxIdleConnsPerHost: 6, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	b.forget()
	return b
}

// forget loses the session.
func (b *browser) forget() {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // it never fails without options
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.jar = jar
}

func (b *browser) cookies() http.CookieJar {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.jar
}

// kind of an answer: see static/js/label/api.js.
type kind string

const (
	ok        kind = "ok"        // the server did it
	refused   kind = "refused"   // it never will
	signedOut kind = "signedout" // keep everything, sign in
	retry     kind = "retry"     // keep everything, ask again
)

// reply is how a request went.
type reply struct {
	kind           kind
	status         int
	message        string
	sent, received time.Time
}

// post sends JSON and reads the answer into out.
func (b *browser) post(ctx context.Context, path string, in map[string]any, out any) reply {
	in["user"] = b.user
	body, err := json.Marshal(in)
	if err != nil {
		panic(err) // numbers and strings
	}
	return b.send(ctx, http.MethodPost, path, "application/json", bytes.NewReader(body), out)
}

func (b *browser) send(ctx context.Context, method, path, mediaType string, body io.Reader, out any) (r reply) {
	r.kind, r.sent = retry, time.Now()
	defer func() { r.received = time.Now() }()
	response, data, err := b.do(ctx, method, path, mediaType, body)
	if err != nil {
		r.message = err.Error()
		return r
	}
	r.status = response.StatusCode
	isJSON := strings.Contains(response.Header.Get("Content-Type"), "json")
	problem := struct{ Detail string }{string(data)}
	if isJSON && r.status >= 400 && json.Unmarshal(data, &problem) != nil {
		return r // cut off
	}
	r.message = problem.Detail
	switch {
	case r.status == http.StatusNoContent:
		r.kind = ok
	case r.status < 300 && isJSON:
		if out != nil && json.Unmarshal(data, out) != nil {
			return r
		}
		r.kind = ok
	case r.status == http.StatusUnauthorized || r.status < 400:
		r.kind = signedOut
	case r.status >= 500 || r.status == http.StatusRequestTimeout || r.status == http.StatusTooManyRequests || !isJSON:
	default:
		r.kind = refused
	}
	return r
}

func (b *browser) do(ctx context.Context, method, path, mediaType string, body io.Reader) (*http.Response, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, b.base+path, body)
	if err != nil {
		return nil, nil, err
	}
	request.Header.Set("Accept", "application/json")
	request.Header.Set("X-Forwarded-For", b.address)
	if mediaType != "" {
		request.Header.Set("Content-Type", mediaType)
	}
	jar := b.cookies()
	for _, c := range jar.Cookies(request.URL) {
		request.AddCookie(c)
	}
	response, err := b.http.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	jar.SetCookies(request.URL, response.Cookies())
	data, err := io.ReadAll(response.Body)
	return response, data, err
}

// signIn signs in by the form, and tries until it works or ctx ends.
func (b *browser) signIn(ctx context.Context, email string) error {
	form := url.Values{"email": {email}, "password": {secret}}.Encode()
	for pause := 500 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		response, _, err := b.do(ctx, http.MethodPost, "/signin", "application/x-www-form-urlencoded", strings.NewReader(form))
		switch {
		case err == nil && response.StatusCode == http.StatusSeeOther:
			return nil
		case err == nil && response.StatusCode < 500 && response.StatusCode != http.StatusTooManyRequests:
			return fmt.Errorf("sign in as %s: status %d", email, response.StatusCode)
		}
		if !sleep(ctx, pause) {
			return ctx.Err()
		}
	}
}

// sleep waits, and reports false when ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
