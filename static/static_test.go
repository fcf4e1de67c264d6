package static_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"winnow/static"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		static.Handler(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	url := static.URL("css/app.css")
	if w := get(url); w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/css") {
		t.Errorf("%s: status %d, %v", url, w.Code, w.Header())
	}
	plain, _, _ := strings.Cut(url, "?")
	for _, path := range []string{plain, plain + "?v=old"} {
		if w := get(path); w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: status %d, %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/static/", "/static/css", "/static/css/", "/static/static.go", "/static/../static.go"} {
		if w := get(path); w.Code != 404 {
			t.Errorf("%s: status %d, want 404", path, w.Code)
		}
	}
}
