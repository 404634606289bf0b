// Package certs makes a small certificate authority for expert hosts and the engines that ask them:
// a folder with the authority, and a certificate and a key for each machine.
//
// A certificate of a host holds for its name alone and cannot ask hosts; that of an engine can ask
// them and cannot pass for one. actors/remote/secrets is what reads them.
package certs

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/moeflux/moeflux-actor/internal/durable"
)

const (
	// authorityName and EngineName are files that no host can have.
	authorityName = "ca"
	EngineName    = "engine"

	authorityYears = 10
	// backdated is how far clocks of machines may be apart.
	backdated = time.Hour
)

// Files are a certificate and its key.
type Files struct {
	Name    string    `json:"name"` // of the host; "ca" and "engine" for these
	Cert    string    `json:"cert"`
	Key     string    `json:"key"`
	Expires time.Time `json:"expires"`
	Made    bool      `json:"made"` // it was not there before, or is renewed
}

// Authority signs certificates, in a folder of its own.
type Authority struct {
	Files

	dir  string
	cert *x509.Certificate
	key  ed25519.PrivateKey
	now  time.Time
}

// Open opens the authority in a folder, or makes it.
func Open(dir string, now time.Time) (*Authority, error) {
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is not a folder; name one for the authority, or one that does not exist yet", dir)
	}
	a := &Authority{dir: dir, now: now}
	a.Files = a.filesOf(authorityName)
	_, certErr := os.Stat(a.Cert)
	_, keyErr := os.Stat(a.Key)
	if errors.Is(certErr, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		if err := durable.MkdirAll(dir, durable.Private); err != nil {
			return nil, err
		}
		return a, a.make()
	}
	return a, a.read()
}

// filesOf returns the names of the files of a host, an engine or the authority.
func (a *Authority) filesOf(name string) Files {
	file := filepath.Join(a.dir, strings.ReplaceAll(name, ":", "-")) // as in fe80::1
	return Files{Name: name, Cert: file + ".pem", Key: file + ".key"}
}

// make makes an authority that signs itself.
func (a *Authority) make() (err error) {
	a.Made = true
	var public ed25519.PublicKey
	if public, a.key, err = ed25519.GenerateKey(rand.Reader); err != nil {
		return err
	}
	c := a.template("moeflux-actor expert hosts", a.now.AddDate(authorityYears, 0, 0))
	c.IsCA, c.BasicConstraintsValid, c.MaxPathLenZero, c.KeyUsage = true, true, true, x509.KeyUsageCertSign
	a.Expires = c.NotAfter
	der, err := a.write(&a.Files, c, c, signed{public, a.key})
	if err != nil {
		return err
	}
	a.cert, err = x509.ParseCertificate(der)
	return err
}

// read reads an authority that was made before.
func (a *Authority) read() error {
	var err error
	if a.cert, err = readCertificate(a.Cert); err != nil {
		return err
	}
	der, err := readPEM(a.Key, "PRIVATE KEY")
	if err != nil {
		return err
	}
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return fmt.Errorf("%s cannot be read: %w", a.Key, err)
	}
	var ok bool
	if a.key, ok = key.(ed25519.PrivateKey); !ok || !a.key.Public().(ed25519.PublicKey).Equal(a.cert.PublicKey) {
		return fmt.Errorf("%s is not the key of %s; give the folder of one authority, or an empty one", a.Key, a.Cert)
	}
	if a.Expires = a.cert.NotAfter; !a.now.Before(a.Expires) {
		return fmt.Errorf("the authority %s has expired on %s; move it away and make all certificates anew", a.Cert, a.Expires.Format(time.DateOnly))
	}
	return nil
}

// ExistsError reports a certificate that is there, or asked for twice, and that nobody asked to
// replace.
type ExistsError struct{ Path string }

func (e *ExistsError) Error() string { return e.Path + " exists" }

// Wish says what a certificate shall be.
type Wish struct {
	Days  int  // for how long it holds, at most as long as the authority
	Renew bool // it may replace one that exists, and its key
}

// Make makes a certificate for each host, by the name or address that engines dial, and one for
// engines. That of engines is kept if there is one, unless it alone shall be renewed. If any of the
// others exists and shall not be renewed, nothing is made.
func (a *Authority) Make(hosts []string, w Wish) (engine Files, made []Files, err error) {
	for i, name := range hosts {
		if err := CheckName(name); err != nil {
			return engine, nil, err
		}
		if f := a.filesOf(name); !w.Renew && exists(f) || slices.ContainsFunc(hosts[:i], func(n string) bool { return a.filesOf(n).Cert == f.Cert }) {
			return engine, nil, &ExistsError{f.Cert}
		}
	}
	if engine = a.filesOf(EngineName); exists(engine) && (!w.Renew || len(hosts) > 0) {
		c, err := readCertificate(engine.Cert)
		if err != nil {
			return engine, nil, err
		}
		engine.Expires = c.NotAfter
	} else if engine, err = a.engine(w); err != nil {
		return engine, nil, err
	}
	for _, name := range hosts {
		f, err := a.host(name, w)
		if err != nil {
			return engine, made, err
		}
		made = append(made, f)
	}
	return engine, made, nil
}

// exists says whether a certificate or its key is there.
func exists(f Files) bool {
	_, cert := os.Lstat(f.Cert)
	_, key := os.Lstat(f.Key)
	return cert == nil || key == nil
}

// host makes a certificate for a host.
func (a *Authority) host(name string, w Wish) (Files, error) {
	c := a.template(name, a.now.AddDate(0, 0, w.Days))
	if ip := net.ParseIP(name); ip != nil {
		c.IPAddresses = []net.IP{ip}
	} else {
		c.DNSNames = []string{name}
	}
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	return a.issue(name, c)
}

// engine makes a certificate for engines.
func (a *Authority) engine(w Wish) (Files, error) {
	c := a.template("moeflux-actor engine", a.now.AddDate(0, 0, w.Days))
	c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.issue(EngineName, c)
}

// issue signs a certificate and writes it with a key of its own.
func (a *Authority) issue(name string, c *x509.Certificate) (Files, error) {
	f := a.filesOf(name)
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return f, err
	}
	if c.NotAfter.After(a.Expires) {
		c.NotAfter = a.Expires
	}
	c.KeyUsage, f.Expires, f.Made = x509.KeyUsageDigitalSignature, c.NotAfter, true
	_, err = a.write(&f, c, a.cert, signed{public, key})
	return f, err
}

// template is what all certificates have.
func (a *Authority) template(name string, expires time.Time) *x509.Certificate {
	return &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: a.now.Add(-backdated).UTC(), NotAfter: expires.UTC().Truncate(time.Second)}
}

// signed is the keys of a certificate that is signed.
type signed struct {
	public  ed25519.PublicKey
	private ed25519.PrivateKey
}

// write signs a certificate, whose serial number it draws, and writes it after its key.
func (a *Authority) write(f *Files, c, by *x509.Certificate, keys signed) (der []byte, err error) {
	if der, err = x509.CreateCertificate(rand.Reader, c, by, keys.public, a.key); err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(keys.private)
	if err != nil {
		return nil, err
	}
	if err := durable.WriteFile(f.Key, durable.Private, encode("PRIVATE KEY", private)); err != nil {
		return nil, err
	}
	return der, durable.WriteFile(f.Cert, durable.Shared, encode("CERTIFICATE", der))
}
