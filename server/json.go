package server

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"net/http"
)

// writeJSON answers a request with a value.
func writeJSON(w http.ResponseWriter, status int, value any) {
	body := encode(value)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has left is noticed by its context
}

// encode returns a value as a line of JSON.
func encode(value any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil { // a bug: all values are ours
		panic(err)
	}
	return b.Bytes()
}

// newID returns a name for a reply.
func newID() string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
