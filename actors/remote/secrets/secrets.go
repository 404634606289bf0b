// Package secrets is how engines and expert hosts know each other: a token, and certificates.
package secrets

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
)

// Files are those by which hosts and engines know each other. Without any both must be on one
// machine.
type Files struct {
	TokenFile string // of a text that both know; "" for none
	Cert, Key string // PEM files of the own certificate, by which the other side knows this one
	CA        string // a PEM file of the authorities that certificates of the other side must come from
	Insecure  bool   // nothing is encrypted, although the other side is on another machine
}

// leastToken is the fewest bytes of a token.
const leastToken = 16

// Token returns the SHA-256 of the token, which is zero without any. Space around it does not
// count.
func (s *Files) Token() (sum [32]byte, err error) {
	if s.TokenFile == "" {
		return sum, nil
	}
	text, err := os.ReadFile(s.TokenFile)
	if err != nil {
		return sum, fmt.Errorf("the token cannot be read: %w", err)
	}
	if text = bytes.TrimSpace(text); len(text) < leastToken {
		return sum, fmt.Errorf("the token in %s has %d bytes; make it %d or more", s.TokenFile, len(text), leastToken)
	}
	return sha256.Sum256(text), nil
}

// errPartial reports some of the files of TLS without the others.
var errPartial = errors.New("TLS needs a certificate, its key, and the authority of the other side's certificates; give all three")

// Client returns what dials hosts by TLS; nil without certificates.
func (s *Files) Client() (*tls.Config, error) {
	own, pool, err := s.load()
	if own == nil {
		return nil, err
	}
	return &tls.Config{GetClientCertificate: own.forClient, RootCAs: pool, MinVersion: tls.VersionTLS13}, nil
}

// Server returns what takes engines by TLS, which must show certificates, too, and hosts of a
// group, which show none (IsMember); nil without certificates.
func (s *Files) Server() (*tls.Config, error) {
	own, pool, err := s.load()
	if own == nil {
		return nil, err
	}
	c := &tls.Config{GetCertificate: own.forServer, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13}
	forMembers(c)
	return c, nil
}

func (s *Files) load() (*own, *x509.CertPool, error) {
	switch {
	case s.Cert+s.Key+s.CA == "":
		return nil, nil, nil
	case s.Cert == "" || s.Key == "" || s.CA == "":
		return nil, nil, errPartial
	}
	own, err := newOwn(s.Cert, s.Key)
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(s.CA)
	if err != nil {
		return nil, nil, fmt.Errorf("the certificate authority cannot be read: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, nil, fmt.Errorf("%s holds no certificate", s.CA)
	}
	return own, pool, nil
}

// ErrUnprotected reports an address that other machines reach, without TLS.
var ErrUnprotected = errors.New("is not an address of this machine alone, and nothing would be encrypted; give certificates for TLS, or say that the network is safe")

// CheckAddr reports an address that is not host:port, or, unless the secrets protect it, one
// that other machines reach.
func (s *Files) CheckAddr(addr string) error {
	name, port, err := net.SplitHostPort(addr)
	if err != nil || port == "" {
		return fmt.Errorf("%q is not an address; write host:port", addr)
	}
	if s.Cert == "" && !s.Insecure && !loopback(name) {
		return fmt.Errorf("%s %w", addr, ErrUnprotected)
	}
	return nil
}
