package web

import (
	"net"
	"net/http"
	"net/netip"

	"winnow"
)

// Who may read /metrics; see Config.Metrics.
const (
	MetricsPrivate = "private"
	MetricsAll     = "all"
	MetricsOff     = "off"
)

// forMetrics lets those through who may read the server's figures. For all others
// there is nothing at this address.
func (s *Server) forMetrics(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.cfg.Metrics == MetricsAll || s.cfg.Metrics == MetricsPrivate && s.fromPrivate(r) {
			next.ServeHTTP(w, r)
			return
		}
		s.base.FailPlain(w, r, winnow.Errorf(winnow.CodeNotFound, "The figures of this server are not shown here."))
	}
}

// fromPrivate reports whether a request comes from this machine or a private network.
// A proxy's own address is private, too, so what it passes on counts by the address
// that it names; a proxy that is not ours may name any.
func (s *Server) fromPrivate(r *http.Request) bool {
	forwarded := r.Header.Get("X-Forwarded-For") != "" || r.Header.Get("Forwarded") != "" || r.Header.Get("X-Real-Ip") != ""
	if forwarded && !s.cfg.TrustProxy {
		return false
	}
	return private(r.RemoteAddr) && private(s.remoteAddress(r))
}

func private(address string) bool {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(address)
	ip = ip.Unmap()
	return err == nil && (ip.IsLoopback() || ip.IsPrivate() || ip.IsLinkLocalUnicast())
}
