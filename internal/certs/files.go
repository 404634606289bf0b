package certs

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"regexp"
	"strings"
)

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// readPEM reads the one block of a file.
func readPEM(path, kind string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("a certificate lacks a file: %w", err)
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s holds no %s in PEM", path, strings.ToLower(kind))
	}
	return block.Bytes, nil
}

func readCertificate(path string) (*x509.Certificate, error) {
	der, err := readPEM(path, "CERTIFICATE")
	if err != nil {
		return nil, err
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	return c, nil
}

// hostName is a name that DNS can have.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?)*$`)

// CheckName reports what is neither a name nor an address of a host.
func CheckName(name string) error {
	switch {
	case net.ParseIP(name) != nil:
		return nil
	case name == authorityName || name == EngineName:
		return fmt.Errorf("%q is the name of a file that is made in any case; give the address or the full name of the host", name)
	case len(name) > 253 || !hostName.MatchString(name):
		if h, _, err := net.SplitHostPort(name); err == nil && h != "" {
			return fmt.Errorf("%q has a port; a certificate is for all ports: write %s", name, h)
		}
		return fmt.Errorf("%q is neither an IP address nor a name of DNS; write what engines dial, without the port", name)
	}
	return nil
}
