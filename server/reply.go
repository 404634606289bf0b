package server

import moeflux "github.com/moeflux/moeflux-actor"

// reply writes the answer to a call in the form of an API.
type reply interface {
	// begin writes what a stream begins with.
	begin()
	// piece takes an event of a choice: a streamed reply writes it, the other keeps it.
	piece(p piece)
	// keepalive writes what tells the client that the answer is still to come.
	keepalive()
	// fail ends a stream that has begun with an error.
	fail(f *fault)
	// end ends the reply.
	end()
}

// piece is one event of one of the answers to a call.
type piece struct {
	choice int
	moeflux.Event
	err error
}

// head is what every object of a reply begins with.
type head struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	Model   string `json:"model"`
	// Fingerprint names the settings that change results.
	Fingerprint string `json:"system_fingerprint,omitempty"`

	served *Served `json:"-"`
}
