package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// client sends requests as somebody who is signed in.
type client struct {
	t    testing.TB
	base string
	http *http.Client
}

func newJar() http.CookieJar {
	jar, err := cookiejar.New(nil)
	if err != nil {
		panic(err) // it never fails without options
	}
	return jar
}

// get fetches a page.
func (c *client) get(path string) (status int, body []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.base+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.send(request)
}

// form posts a form of pairs of names and values, as a browser does without scripts.
func (c *client) form(path string, pairs ...string) (status int, body []byte) {
	c.t.Helper()
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		values.Add(pairs[i], pairs[i+1])
	}
	return c.post(path, "application/x-www-form-urlencoded", strings.NewReader(values.Encode()))
}

// json posts a value and decodes the answer into out when it is not nil.
func (c *client) json(path string, in, out any) (status int, body []byte) {
	c.t.Helper()
	data, err := json.Marshal(in)
	if err != nil {
		c.t.Fatal(err)
	}
	status, body = c.post(path, "application/json", bytes.NewReader(data))
	if out != nil && status == http.StatusOK {
		if err := json.Unmarshal(body, out); err != nil {
			c.t.Fatalf("POST %s: %v\n%s", path, err, body)
		}
	}
	return status, body
}

func (c *client) post(path, mediaType string, body io.Reader) (int, []byte) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.base+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Content-Type", mediaType)
	return c.send(request)
}

func (c *client) send(request *http.Request) (int, []byte) {
	c.t.Helper()
	response, err := c.http.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return response.StatusCode, body
}
