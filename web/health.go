package web

import (
	"context"
	"net/http"
	"time"
)

// healthz says that the process answers.
func healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte("ok\n"))
}

// readyz says whether the process can do its work. The reason it cannot is for the
// log: whoever asks learns that it is so, not why.
func (s *Server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 3*time.Second)
	defer cancel()
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if s.deps.Ready != nil {
		if err := s.deps.Ready(ctx); err != nil {
			s.deps.Log.WarnContext(r.Context(), "not ready", "error", err)
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte("not ready\n"))
			return
		}
	}
	_, _ = w.Write([]byte("ready\n"))
}
