package secrets

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// own is the certificate of this side. New connections get what its files hold then, so that a
// renewed one needs no new start.
type own struct {
	cert, key string // files

	mu   sync.Mutex
	as   [2]version // of the files, when they were read
	pair *tls.Certificate
}

// version tells states of a file apart.
type version struct {
	changed time.Time
	bytes   int64
}

func versionOf(file string) (v version) {
	if s, err := os.Stat(file); err == nil {
		v = version{s.ModTime(), s.Size()}
	}
	return v
}

func newOwn(cert, key string) (*own, error) {
	o := &own{cert: cert, key: key}
	return o, o.read()
}

// read reads the files, if they are not as they were.
func (o *own) read() error {
	as := [2]version{versionOf(o.cert), versionOf(o.key)}
	if o.pair != nil && as == o.as {
		return nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return fmt.Errorf("the certificate %s with the key %s cannot be used: %w", o.cert, o.key, err)
	}
	o.as, o.pair = as, &pair
	return nil
}

// now returns the certificate for a new connection. While the files do not fit together, of which
// one may be written before the other, it is the one before, as long as that holds.
func (o *own) now() (*tls.Certificate, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.read(); err != nil && !time.Now().Before(o.pair.Leaf.NotAfter) {
		return nil, err
	}
	return o.pair, nil
}

func (o *own) forServer(*tls.ClientHelloInfo) (*tls.Certificate, error)        { return o.now() }
func (o *own) forClient(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return o.now() }
