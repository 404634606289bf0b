package secrets

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// What to do about certificates.
const (
	oneAuthority = "give both sides certificates of one authority, each its own, as the command certs makes them"
	renew        = "make a new one, as by the command certs with --renew"
)

// told says what the other side means by an alert.
var told = map[string]string{
	alert(42):  "it does not take our certificate, and says why in its own log; " + oneAuthority,
	alert(45):  "our certificate has expired, by the clock of the other side; " + renew,
	alert(48):  "our certificate does not come from the authority that it trusts; " + oneAuthority,
	alert(116): "it wants a certificate, and we have none; " + oneAuthority,
}

// alert returns what an alert of TLS says. The errors of connections are of a type that crypto/tls
// keeps to itself.
func alert(n tls.AlertError) string { return n.Error() }

// TrustError reports a side that does not trust the other, or is not trusted. What it says does not
// change with the clock, as Err does.
type TrustError struct {
	Says string // what is wrong, and what to do
	Err  error
}

func (e *TrustError) Error() string { return e.Says }

// Unwrap returns the cause.
func (e *TrustError) Unwrap() error { return e.Err }

// Explain makes an error between an engine and a host a TrustError if certificates are the cause.
func Explain(err error) error {
	if says := explain(err); says != "" {
		return &TrustError{says, err}
	}
	return err
}

func explain(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Op == "remote error" && op.Err != nil {
		return told[op.Err.Error()]
	}
	if errors.As(err, new(x509.UnknownAuthorityError)) {
		return "its certificate does not come from the authority that we trust; " + oneAuthority
	}
	if name, ok := errors.AsType[x509.HostnameError](err); ok {
		return fmt.Sprintf("its certificate is not for %s; make one for the name or address that engines dial", name.Host)
	}
	if bad, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		switch {
		case bad.Reason == x509.IncompatibleUsage:
			return "its certificate is one for the other kind of side, host or engine; give it its own"
		case bad.Reason == x509.Expired && bad.Cert != nil && time.Now().Before(bad.Cert.NotBefore):
			return fmt.Sprintf("its certificate holds from %s on; set the clocks", bad.Cert.NotBefore.UTC().Format(time.DateTime))
		case bad.Reason == x509.Expired && bad.Cert != nil:
			return fmt.Sprintf("its certificate has expired on %s; %s", bad.Cert.NotAfter.UTC().Format(time.DateTime), renew)
		}
	}
	if errors.As(err, new(tls.RecordHeaderError)) {
		return "the other side does not speak TLS; give certificates to both sides or to none"
	}
	return ""
}

// HandshakeError says why TLS with a host has failed.
func HandshakeError(err error) error {
	if errors.Is(err, io.EOF) {
		return fmt.Errorf("it ended the connection amid the handshake; TLS is for both sides or for none: %w", err)
	}
	return Explain(err)
}

// Expired reports an own certificate that holds no more.
func (s *Files) Expired(now time.Time) error {
	own, _, err := s.load()
	if own == nil || err != nil {
		return err
	}
	if ends := own.pair.Leaf.NotAfter; !now.Before(ends) {
		return fmt.Errorf("the certificate %s has expired on %s; %s", s.Cert, ends.UTC().Format(time.DateTime), renew)
	}
	return nil
}
