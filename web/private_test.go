package web_test

import (
	"net/http/httptest"
	"testing"

	"winnow/web"
)

func TestMetricsArePrivate(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		metrics   string
		trust     bool
		remote    string
		forwarded string
		status    int
	}{
		"this machine":                          {"", false, "127.0.0.1:4000", "", 200},
		"this machine, IPv6":                    {"", false, "[::1]:4000", "", 200},
		"a private network":                     {"", false, "10.1.2.3:4000", "", 200},
		"a private network, IPv6":               {"", false, "[fd00::1]:4000", "", 200},
		"IPv4 within IPv6":                      {"", false, "[::ffff:192.168.1.2]:4000", "", 200},
		"anybody":                               {"", false, "203.0.113.9:4000", "", 404},
		"a proxy here that nobody told us of":   {"", false, "127.0.0.1:4000", "203.0.113.9", 404},
		"somebody who says they are a proxy":    {"", false, "203.0.113.9:4000", "127.0.0.1", 404},
		"anybody by our proxy":                  {"", true, "127.0.0.1:4000", "203.0.113.9", 404},
		"anybody who lies to our proxy":         {"", true, "127.0.0.1:4000", "10.0.0.1, 203.0.113.9", 404},
		"a private network by our proxy":        {"", true, "127.0.0.1:4000", "10.0.0.1", 200},
		"past our proxy, in a header's clothes": {"", true, "203.0.113.9:4000", "10.0.0.1", 404},
		"anybody, as they are for all":          {web.MetricsAll, false, "203.0.113.9:4000", "", 200},
		"this machine, as they are for nobody":  {web.MetricsOff, false, "127.0.0.1:4000", "", 404},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := web.New(web.Config{Metrics: tc.metrics, TrustProxy: tc.trust}, web.Deps{})
			t.Cleanup(s.Close)
			r := httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil)
			r.RemoteAddr = tc.remote
			if tc.forwarded != "" {
				r.Header.Set("X-Forwarded-For", tc.forwarded)
			}
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != tc.status {
				t.Errorf("status %d, want %d", w.Code, tc.status)
			}
		})
	}
}
