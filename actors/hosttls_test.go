package actors_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	expert "github.com/moeflux/moeflux-actor/actors/remote/host"
	"github.com/moeflux/moeflux-actor/actors/remote/secrets"
	"github.com/moeflux/moeflux-actor/internal/fixtures"
)

// authority makes certificates.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.make("ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, NotAfter: time.Now().Add(time.Hour)})
	return a
}

// make writes NAME.pem and NAME.key, of a certificate that the authority signs, or itself.
func (a *authority) make(name string, c *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	c.SerialNumber, c.Subject, c.NotBefore = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}, time.Now().Add(-2*time.Hour)
	by, with := a.cert, a.key
	if by == nil {
		by, with = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, by, &key.PublicKey, with)
	if err != nil {
		a.t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		a.t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{".pem": {Type: "CERTIFICATE", Bytes: der}, ".key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(a.dir, name+file), pem.EncodeToMemory(block), 0o600); err != nil {
			a.t.Fatal(err)
		}
	}
	return key, made
}

// files are those of a name, of a certificate that ends some time from now.
func (a *authority) files(name string, ends time.Duration) secrets.Files {
	a.make(name, &x509.Certificate{NotAfter: time.Now().Add(ends), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	in := func(file string) string { return filepath.Join(a.dir, file) }
	return secrets.Files{Cert: in(name + ".pem"), Key: in(name + ".key"), CA: in("ca.pem")}
}

// TestHostsTLS has a host serve an engine with a certificate of their authority, and no other.
func TestHostsTLS(t *testing.T) {
	dir := fixtures.Packed(t, fixtures.Qwen35MoEQ4, 0)
	ours, theirs := newAuthority(t), newAuthority(t)
	served := ours.files("host", time.Hour)
	addr := expertHost(t, expert.Config{Model: dir, Secrets: served})
	expired := expertHost(t, expert.Config{Model: dir, Secrets: ours.files("old", -time.Hour)})
	for _, tc := range []struct {
		name, addr string
		engine     secrets.Files
		used       bool
	}{
		{"ours", addr, ours.files("engine", time.Hour), true},
		{"none", addr, secrets.Files{}, false},
		{"expired", addr, ours.files("late", -time.Hour), false},
		{"of another authority", addr, secrets.Files{Cert: theirs.files("x", time.Hour).Cert, Key: filepath.Join(theirs.dir, "x.key"), CA: served.CA}, false},
		{"that trusts another authority", addr, secrets.Files{Cert: served.Cert, Key: served.Key, CA: filepath.Join(theirs.dir, "ca.pem")}, false},
		{"of an expired host", expired, ours.files("engine2", time.Hour), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log syncBuffer
			cfg := asksHosts(dir, tc.addr)
			cfg.HostsCert, cfg.HostsKey, cfg.HostsCA = tc.engine.Cert, tc.engine.Key, tc.engine.CA
			cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			e := open(t, cfg)
			for range 500 {
				if strings.Contains(log.String(), "used") {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if used := strings.Contains(log.String(), "host is used"); used != tc.used {
				t.Errorf("the host is used: %v, want %v: %s", used, tc.used, log.String())
			}
			if _, err := transcript(sequence(t, e), prompt(1, 5, e.Model().VocabSize), 2); err != nil {
				t.Error(err)
			}
			if uses := statsOf(t, e).Hosts[0].Uses; uses > 0 != tc.used {
				t.Errorf("the host has computed %d uses", uses)
			}
		})
	}
}

// TestHostAddresses refuses what would be sent to other machines for everybody to read.
func TestHostAddresses(t *testing.T) {
	for addr, ok := range map[string]bool{"127.0.0.1:1": true, "[::1]:1": true, "localhost:1": true, "10.0.0.2:1": false, ":8090": false, "0.0.0.0:1": false, "example.org:1": false, "127.0.0.1": false} {
		if err := new(secrets.Files).CheckAddr(addr); (err == nil) != ok {
			t.Errorf("%s without TLS: %v", addr, err)
		}
		if err := (&secrets.Files{Cert: "x"}).CheckAddr(addr); (err == nil) != (addr != "127.0.0.1") {
			t.Errorf("%s with TLS: %v", addr, err)
		}
	}
}
