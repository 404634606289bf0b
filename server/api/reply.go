package api

import (
	moeflux "github.com/moeflux/moeflux-actor"
	"github.com/moeflux/moeflux-actor/server/fault"
	"github.com/moeflux/moeflux-actor/server/models"
)

// Reply writes the answer to a call in the form of an API.
type Reply interface {
	// Begin writes what a stream begins with.
	Begin()
	// Piece takes an event of a choice: a streamed reply writes it, the other keeps it.
	Piece(p Piece)
	// Keepalive writes what tells the client that the answer is still to come.
	Keepalive()
	// Fail ends a stream that has begun with an error.
	Fail(f *fault.Fault)
	// End ends the reply.
	End()
}

// Piece is one event of one of the answers to a call.
type Piece struct {
	Choice int
	moeflux.Event
	Err error
}

// Head is what every object of a reply begins with.
type Head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	// Fingerprint names the settings that change results.
	Fingerprint string `json:"system_fingerprint,omitempty"`

	Served *models.Served `json:"-"`
}
