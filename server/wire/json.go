// Package wire writes what a server sends: values as JSON, server-sent events, and bytes that a
// client must take within a time.
package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// JSON answers a request with a value.
func JSON(w http.ResponseWriter, status int, value any) {
	body := Encode(value)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left is noticed by its context
}

// Encode returns a value as a line of JSON.
func Encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil { // a bug: all values are ours
		panic(err)
	}
	return b.Bytes()
}

// NewID returns a name for a reply.
func NewID() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
