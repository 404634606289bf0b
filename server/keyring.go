package server

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
)

// keyring is the keys, by the hashes of their secrets. They may be replaced at any time: requests
// under way keep theirs.
type keyring struct {
	nobody *keyState // who asks where there are no keys
	now    func() time.Time

	mu     sync.RWMutex
	keys   []*keyState
	quotas map[string]*quota // by name, also of keys that are gone: they may come back
}

// keyState is a key. All of it but the quota is never written again.
type keyState struct {
	Key
	hash  [sha256.Size]byte
	quota *quota // of its name
}

func newKeyring(keys []Key, now func() time.Time) (*keyring, error) {
	ring := &keyring{now: now, quotas: make(map[string]*quota)}
	ring.nobody = &keyState{Key: Key{Class: moeflux.Normal}, quota: newQuota(now)}
	return ring, ring.set(keys)
}

// set replaces all keys, or none if one of them is wrong. What the keys of a name have used and
// have under way counts on.
func (ring *keyring) set(keys []Key) error {
	ring.mu.Lock()
	defer ring.mu.Unlock()
	var all []*keyState
	first := make(map[string]*Key) // of each name
	seen := make(map[string]bool)
	for i := range keys {
		k := &keys[i]
		if len(k.Secret) < 8 {
			return fmt.Errorf("server: the key of %q has fewer than 8 characters", k.Name)
		}
		if seen[k.Secret] {
			return fmt.Errorf("server: the key of %q is there twice", k.Name)
		}
		seen[k.Secret] = true
		if k.Weight < 0 || k.Weight > moeflux.MaxWeight {
			return fmt.Errorf("server: the key of %q has the weight %d; it must be from 1 to %d", k.Name, k.Weight, moeflux.MaxWeight)
		}
		if f := first[k.Name]; f == nil {
			first[k.Name] = k
		} else if f.limits() != k.limits() || max(f.Weight, 1) != max(k.Weight, 1) {
			return fmt.Errorf("server: the keys of %q have different weights or limits; they share them, so give all the same", k.Name)
		}
		all = append(all, &keyState{Key: *k, hash: sha256.Sum256([]byte(k.Secret))})
	}
	for _, k := range all {
		if k.quota = ring.quotas[k.Name]; k.quota == nil {
			k.quota = newQuota(ring.now)
			ring.quotas[k.Name] = k.quota
		}
		k.quota.set(k.limits())
	}
	ring.keys = all
	return nil
}

func (ring *keyring) all() []*keyState {
	ring.mu.RLock()
	defer ring.mu.RUnlock()
	return ring.keys
}

// admins reports whether a key is an admin's.
func (ring *keyring) admins() bool {
	return slices.ContainsFunc(ring.all(), func(k *keyState) bool { return k.Admin })
}

// find returns whose key a request has. All hashes are compared, each in the same time.
func (ring *keyring) find(r *http.Request) (*keyState, *fault) {
	keys := ring.all()
	if len(keys) == 0 {
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
	for _, k := range keys {
		if subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1 {
			found = k
		}
	}
	if found == nil {
		return nil, &fault{Status: http.StatusUnauthorized, Type: authentication, Code: "invalid_api_key", Message: "the key is not one of this server's"}
	}
	return found, nil
}
