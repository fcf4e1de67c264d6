package handlers

import (
	"net/http"
	"net/url"
)

// nextURL is the address of this list's next page, "" on the last one.
func nextURL(r *http.Request, after string) string {
	if after == "" {
		return ""
	}
	q := r.URL.Query()
	q.Set("after", after)
	return r.URL.Path + "?" + q.Encode()
}

// firstURL is the address of this list's first page, "" when this is it.
func firstURL(r *http.Request) string {
	q := r.URL.Query()
	if q.Get("after") == "" {
		return ""
	}
	q.Del("after")
	return (&url.URL{Path: r.URL.Path, RawQuery: q.Encode()}).String()
}
