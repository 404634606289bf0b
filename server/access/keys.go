// Package access says who may ask a server: keys and their files, whose a request is, and what the
// keys of a name may use (quota) of requests and tokens, and in which order.
package access

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"

	moeflux "github.com/moeflux/moeflux-actor"
)

// Key is somebody who may ask.
type Key struct {
	Secret string // what the client sends
	// Name says whose key it is, in logs and figures. Keys of one name share what the name gets, so
	// their weights and limits must be the same.
	Name string
	// Class says whose requests get memory first.
	Class moeflux.Class
	// Weight is how large the shares of the name are within its class, of memory and of the time
	// of prompts: twice as large with 2 as with 1. From 1 to moeflux.MaxWeight; 0 means 1.
	Weight int
	// Running is how many requests may run at once; 0 means any number. Queued is how many more may
	// wait for their turn; those beyond are refused.
	Running, Queued int
	// RequestsPerMinute and TokensPerMinute bound what is asked and computed; 0 means any number. A
	// minute's worth may come at once. Tokens are those of answers, and of prompts what was not
	// known; a request runs to its end even where that is more than is left.
	RequestsPerMinute, TokensPerMinute int
	// Admin lets its owner see what goes on inside: figures, records, the live views.
	Admin bool
}

// Others is the name that figures give to all keys that have no room of their own there.
const Others = "other"

// check returns what is wrong with a key by itself.
func (k *Key) check() error {
	if len(k.Secret) < 8 {
		return fmt.Errorf("server: the key of %q has fewer than 8 characters", k.Name)
	}
	if k.Weight < 0 || k.Weight > moeflux.MaxWeight {
		return fmt.Errorf("server: the key of %q has the weight %d; it must be from 1 to %d", k.Name, k.Weight, moeflux.MaxWeight)
	}
	if k.Name == Others {
		return fmt.Errorf("server: a key has the name %q, which figures give to all keys that have no room of their own; choose another name", k.Name)
	}
	return nil
}

// Read reads keys: one a line, with settings behind it.
//
//	sk-2f9c… name=team-a class=interactive weight=3 running=8 tokens=100000
//
// The class is background, normal (the default) or interactive. Running, queued, requests and
// tokens (a minute) are limits; weight is 1 by default; admin is yes or no. A key without a name is
// named after its hash. Empty lines and those that begin with # are left out. No error has a secret
// in it.
func Read(r io.Reader) ([]Key, error) {
	var keys []Key
	in := bufio.NewScanner(r)
	for n := 1; in.Scan(); n++ {
		fields := strings.Fields(in.Text())
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		k := Key{Secret: fields[0], Name: nameOf(fields[0]), Class: moeflux.Normal}
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

// ReadFile reads a file of keys; see ReadKeys.
func ReadFile(path string) ([]Key, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Read(f)
}

// keyCharacters are those of a bearer token (RFC 6750).
const keyCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/="

// keyNumber is a setting that is a number from 1 to most.
type keyNumber struct {
	most int
	of   func(*Key) *int
}

var keyNumbers = map[string]keyNumber{
	"weight":   {moeflux.MaxWeight, func(k *Key) *int { return &k.Weight }},
	"running":  {math.MaxInt32, func(k *Key) *int { return &k.Running }},
	"queued":   {math.MaxInt32, func(k *Key) *int { return &k.Queued }},
	"requests": {math.MaxInt32, func(k *Key) *int { return &k.RequestsPerMinute }},
	"tokens":   {math.MaxInt32, func(k *Key) *int { return &k.TokensPerMinute }},
}

// nameOf returns a name for a key without one. It does not depend on the place in the file, so that
// what belongs to a key stays its own when the file changes.
func nameOf(secret string) string {
	hash := sha256.Sum256([]byte(secret))
	return "key-" + hex.EncodeToString(hash[:4])
}

func (k *Key) set(setting string) error {
	name, value, ok := strings.Cut(setting, "=")
	switch {
	case !ok:
		return errors.New("what follows the key is not NAME=VALUE")
	case name == "name" && value != "":
		k.Name = value
	case name == "class":
		class, ok := map[string]moeflux.Class{"background": moeflux.Background, "normal": moeflux.Normal, "interactive": moeflux.Interactive}[value]
		if !ok {
			return fmt.Errorf("class=%s: it must be background, normal or interactive", value)
		}
		k.Class = class
	case keyNumbers[name].most > 0:
		number := keyNumbers[name]
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > number.most {
			return fmt.Errorf("%s=%s: it must be a number from 1 to %d", name, value, number.most)
		}
		*number.of(k) = n
	case name == "admin":
		if value != "yes" && value != "no" {
			return fmt.Errorf("admin=%s: it must be yes or no", value)
		}
		k.Admin = value == "yes"
	default:
		return fmt.Errorf("there is no setting %s; the settings are name, class, weight, running, queued, requests, tokens and admin", name)
	}
	return nil
}
