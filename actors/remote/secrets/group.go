package secrets

import (
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
)

// The hosts of a group show each other that they know the token, and encrypt by a key from it what
// they tell each other of who is there. That partly goes by UDP, which TLS does not protect.

// GroupProtocol is what a host names when it dials another host by TLS. It shows no certificate: it
// has one for being asked.
const GroupProtocol = "moeflux-group"

// ErrNoKey reports a host that other machines reach and that has no token.
var ErrNoKey = errors.New("hosts of a group on several machines need a token to encrypt what they tell each other; give all of them the same one, or say that the network is safe")

// CheckGroup reports an address at which a host must not be in a group.
func (s *Files) CheckGroup(addr string) error {
	name, _, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	if s.TokenFile == "" && !s.Insecure && !loopback(name) {
		return fmt.Errorf("%s: %w", addr, ErrNoKey)
	}
	return nil
}

func loopback(name string) bool {
	ip := net.ParseIP(name)
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// GroupKeys returns what hosts of a group encrypt with, nil without a token, and what shows that
// they know it. Neither tells anything of the other or of the token.
func (s *Files) GroupKeys() (key []byte, proof [32]byte, err error) {
	sum, err := s.Token()
	if err != nil || s.TokenFile == "" {
		return nil, proof, err
	}
	key, err = hkdf.Key(sha256.New, sum[:], nil, "moeflux group key", 32)
	if err != nil {
		return nil, proof, err
	}
	shown, err := hkdf.Key(sha256.New, sum[:], nil, "moeflux group proof", len(proof))
	copy(proof[:], shown)
	return key, proof, err
}

// Member returns what dials other hosts of a group by TLS; nil without certificates.
func (s *Files) Member() (*tls.Config, error) {
	own, pool, err := s.load()
	if own == nil {
		return nil, err
	}
	return &tls.Config{RootCAs: pool, NextProtos: []string{GroupProtocol}, MinVersion: tls.VersionTLS13}, nil
}

// forMembers has a server let other hosts in without a certificate. Whoever serves a connection
// must take nothing but a Join from them (IsMember).
func forMembers(server *tls.Config) {
	members := server.Clone()
	members.ClientAuth, members.NextProtos, members.SessionTicketsDisabled = tls.NoClientCert, []string{GroupProtocol}, true
	server.GetConfigForClient = func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
		for _, p := range hello.SupportedProtos {
			if p == GroupProtocol {
				return members, nil
			}
		}
		return nil, nil
	}
}

// IsMember reports whether the other side of a connection by TLS says that it is a host. The
// handshake must be over.
func IsMember(c *tls.Conn) bool {
	return c.ConnectionState().NegotiatedProtocol == GroupProtocol
}
