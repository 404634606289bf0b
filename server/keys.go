package server

import (
	"bufio"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Key is somebody who may ask.
type Key struct {
	Secret string // what the client sends
	// Name says whose key it is, in logs and figures. Keys of one name share what the name gets.
	Name string
	// Class says whose requests get memory first.
	Class moeflux.Class
	// Running is how many requests may be under way at once; 0 means any number.
	Running int
	// Admin lets its owner see what goes on inside: figures, records, the live views.
	Admin bool
}

// ReadKeys reads keys: one a line, with settings behind it.
//
//	sk-2f9c… name=team-a class=interactive running=8
//
// The class is background, normal (the default) or interactive. Empty lines and those that begin
// with # are left out. No error has a secret in it.
func ReadKeys(r io.Reader) ([]Key, error) {
	var keys []Key
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		fields := strings.Fields(in.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		k := Key{Secret: fields[0], Name: fmt.Sprintf("key-%d", len(keys)+1), Class: moeflux.Normal}
		if strings.ContainsFunc(k.Secret, func(c rune) bool { return !strings.ContainsRune(keyCharacters, c) }) {
			return nil, fmt.Errorf("keys: line %d: a key has letters, digits and -._~+/= alone", n)
		}
		for _, setting := range fields[1:] {
			if err := k.set(setting); err != nil {
				return nil, fmt.Errorf("keys: line %d: %w", n, err)
			}
		}
		keys = append(keys, k)
	}
	if err := in.Err(); err != nil {
		return nil, fmt.Errorf("keys: %w", err)
	}
	if len(keys) == 0 {
		return nil, errors.New("keys: there is none; write one a line")
	}
	return keys, nil
}

// keyCharacters are those of a bearer token (RFC 6750).
const keyCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/="

func (k *Key) set(setting string) error {
	name, value, ok := strings.Cut(setting, "=")
	switch {
	case !ok:
		return errors.New("behind the key there is something that is not NAME=VALUE")
	case name == "name" && value != "":
		k.Name = value
	case name == "class":
		class, ok := map[string]moeflux.Class{"background": moeflux.Background, "normal": moeflux.Normal, "interactive": moeflux.Interactive}[value]
		if !ok {
			return fmt.Errorf("class=%s: it must be background, normal or interactive", value)
		}
		k.Class = class
	case name == "running":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("running=%s: it must be a number from 1", value)
		}
		k.Running = n
	case name == "admin":
		if value != "yes" && value != "no" {
			return fmt.Errorf("admin=%s: it must be yes or no", value)
		}
		k.Admin = value == "yes"
	default:
		return fmt.Errorf("there is no setting %s; there are name, class, running and admin", name)
	}
	return nil
}

// keyring is the keys, by the hashes of their secrets.
type keyring struct {
	keys   []*keyState
	nobody *keyState // who asks where there are no keys
}

type keyState struct {
	Key
	hash [sha256.Size]byte

	mu      sync.Mutex
	running int
}

func newKeyring(keys []Key) (*keyring, error) {
	ring := &keyring{nobody: &keyState{Key: Key{Class: moeflux.Normal}}}
	seen := make(map[string]bool)
	for _, k := range keys {
		if len(k.Secret) < 8 {
			return nil, fmt.Errorf("server: the key of %q has fewer than 8 characters", k.Name)
		}
		if seen[k.Secret] {
			return nil, fmt.Errorf("server: the key of %q is there twice", k.Name)
		}
		seen[k.Secret] = true
		ring.keys = append(ring.keys, &keyState{Key: k, hash: sha256.Sum256([]byte(k.Secret))})
	}
	return ring, nil
}

// find returns whose key a request has. All hashes are compared, each in the same time.
func (ring *keyring) find(r *http.Request) (*keyState, *fault) {
	if len(ring.keys) == 0 {
		return ring.nobody, nil
	}
	secret := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		secret = strings.TrimSpace(bearer)
	}
	if secret == "" {
		return nil, &fault{Status: http.StatusUnauthorized, Type: authentication, Code: "missing_api_key", Message: "send a key, as Authorization: Bearer KEY or as X-Api-Key: KEY"}
	}
	hash, found := sha256.Sum256([]byte(secret)), (*keyState)(nil)
	for _, k := range ring.keys {
		if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			found = k
		}
	}
	if found == nil {
		return nil, &fault{Status: http.StatusUnauthorized, Type: authentication, Code: "invalid_api_key", Message: "the key is not one of this server's"}
	}
	return found, nil
}

// enter counts a request, unless the key has as many as it may.
func (k *keyState) enter(h http.Header) *fault {
	if k.Running == 0 {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(k.Running))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(max(0, k.Running-k.running-1)))
	if k.running >= k.Running {
		return &fault{
			Status: http.StatusTooManyRequests, Type: rateLimit, Code: "too_many_requests", Retry: time.Second,
			Message: fmt.Sprintf("the key has %d requests under way, which is as many as it may have", k.Running),
		}
	}
	k.running++
	return nil
}

func (k *keyState) leave() {
	if k.Running == 0 {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.running--
}
