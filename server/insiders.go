package server

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/visit"
)

// Some paths tell what goes on inside. Where a key is an admin's, they want such a key. Where none
// is, they are for this machine alone: for connections from the loopback address that no proxy has
// passed on.

// isInside reports whether a path belongs to them. Their handlers check for themselves.
func isInside(path string) bool { return path == "/metrics" || strings.HasPrefix(path, "/debug/") }

// forwarded are the headers by which proxies tell that they have passed a request on.
var forwarded = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip"}

// inside guards a handler of such a path.
func (s *Server) inside(h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if f := s.insider(r); f != nil {
			visit.Refuse(w, r, f)
			return
		}
		h(w, r)
	}
}

// insider decides whether a request may see what goes on inside.
func (s *Server) insider(r *http.Request) *fault.Fault {
	if s.keys.Admins() {
		k, f := s.keys.Find(r)
		if f != nil {
			return f
		}
		visit.Of(r).Key = k
		if !k.Admin {
			return &fault.Fault{Status: http.StatusForbidden, Type: fault.Permission, Code: "not_admin", Message: "this needs the key of an admin"}
		}
		return nil
	}
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	passedOn := slices.ContainsFunc(forwarded, func(name string) bool { return r.Header.Get(name) != "" })
	if err != nil || !peer.Addr().Unmap().IsLoopback() || passedOn {
		return &fault.Fault{
			Status: http.StatusForbidden, Type: fault.Permission, Code: "not_local",
			Message: "this is for the server's own machine, or for a key of an admin, of which there is none: add admin=yes behind one",
		}
	}
	return nil
}

// needsNoKey reports whether a path is open to anybody. What is there tells nothing of the model.
func needsNoKey(p string) bool {
	return p == "/healthz" || p == "/readyz" || p == "/" || strings.HasPrefix(p, "/page/")
}
