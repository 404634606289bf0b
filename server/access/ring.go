package access

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/fault"
)

// Ring is the keys, by the hashes of their secrets. They may be replaced at any time: requests
// under way keep theirs.
type Ring struct {
	Nobody *Caller // who asks where there are no keys
	now    func() time.Time

	mu     sync.RWMutex
	keys   []*Caller
	quotas map[string]*Quota // by name, also of keys that are gone: they may come back
}

// Caller is a key. All of it but the quota is never written again.
type Caller struct {
	Key
	hash  [sha256.Size]byte
	Quota *Quota // of its name
}

// NewRing returns a ring of keys. The error says which of them is wrong.
func NewRing(keys []Key, now func() time.Time) (*Ring, error) {
	ring := &Ring{now: now, quotas: make(map[string]*Quota)}
	ring.Nobody = &Caller{Key: Key{Class: moeflux.Normal}, Quota: newQuota(now)}
	return ring, ring.Set(keys)
}

// Set replaces all keys, or none if one of them is wrong. What the keys of a name have used and
// have under way counts on.
func (ring *Ring) Set(keys []Key) error {
	ring.mu.Lock()
	defer ring.mu.Unlock()
	var all []*Caller
	first := make(map[string]*Key) // of each name
	seen := make(map[string]bool)
	for i := range keys {
		k := &keys[i]
		if err := k.check(); err != nil {
			return err
		}
		if seen[k.Secret] {
			return fmt.Errorf("server: the key of %q is there twice", k.Name)
		}
		seen[k.Secret] = true
		if f := first[k.Name]; f == nil {
			first[k.Name] = k
		} else if f.limits() != k.limits() || max(f.Weight, 1) != max(k.Weight, 1) {
			return fmt.Errorf("server: the keys of %q have different weights or limits; they share them, so give all the same", k.Name)
		}
		all = append(all, &Caller{Key: *k, hash: sha256.Sum256([]byte(k.Secret))})
	}
	for _, k := range all {
		if k.Quota = ring.quotas[k.Name]; k.Quota == nil {
			k.Quota = newQuota(ring.now)
			ring.quotas[k.Name] = k.Quota
		}
		k.Quota.set(k.limits())
	}
	ring.keys = all
	return nil
}

// All returns the keys. It is not to be changed.
func (ring *Ring) All() []*Caller {
	ring.mu.RLock()
	defer ring.mu.RUnlock()
	return ring.keys
}

// Admins reports whether a key is an admin's.
func (ring *Ring) Admins() bool {
	return slices.ContainsFunc(ring.All(), func(k *Caller) bool { return k.Admin })
}

// Find returns whose key a request has. All hashes are compared, each in the same time.
func (ring *Ring) Find(r *http.Request) (*Caller, *fault.Fault) {
	keys := ring.All()
	if len(keys) == 0 {
		return ring.Nobody, nil
	}
	secret := r.Header.Get("X-Api-Key")
	if bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); ok {
		secret = strings.TrimSpace(bearer)
	}
	if secret == "" {
		return nil, &fault.Fault{Status: http.StatusUnauthorized, Type: fault.Authentication, Code: "missing_api_key", Message: "send a key, as Authorization: Bearer KEY or as X-Api-Key: KEY"}
	}
	hash, found := sha256.Sum256([]byte(secret)), (*Caller)(nil)
	for _, k := range keys {
		if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			found = k
		}
	}
	if found == nil {
		return nil, &fault.Fault{Status: http.StatusUnauthorized, Type: fault.Authentication, Code: "invalid_api_key", Message: "the key is not one of this server's"}
	}
	return found, nil
}
