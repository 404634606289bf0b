package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"syscall"
)

// Asked is what a request was for.
type Asked struct {
	Repo     string // ORG/NAME
	Revision string // "" in requests that name none
	File     string // "" in requests for the repository
}

func (a Asked) String() string {
	s := a.Repo
	if a.File != "" {
		s = a.File + " of " + s
	}
	if a.Revision != "" {
		s += " at " + a.Revision
	}
	return s
}

// EndpointError reports an address that is not of a hub.
type EndpointError struct{ Endpoint, Why string }

func (e *EndpointError) Error() string { return fmt.Sprintf("HF_ENDPOINT %q %s", e.Endpoint, e.Why) }

// StatusError is an answer that is not what was asked for.
type StatusError struct {
	URL           string
	Status        int
	Code, Message string // as the server says it, both may be ""
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("%s answers %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		s += fmt.Sprintf(" (%q)", e.Message)
	}
	return s
}

// message returns what a server says of an error, from a header or a body, at most a line of it.
func message(header string, body []byte) string {
	if header == "" {
		var said struct{ Error string }
		if json.Unmarshal(body, &said) != nil {
			return ""
		}
		header = said.Error
	}
	const most = 200
	if len(header) > most {
		header = header[:most] + "…"
	}
	return header
}

// AccessError reports a repository that whoever asks may not read.
type AccessError struct {
	Asked
	Endpoint string
	HasToken bool
	Gated    bool // its owners ask to agree to terms first
	Err      error
}

func (e *AccessError) Error() string {
	s := fmt.Sprintf("%s may not be read", e.Asked)
	page := e.Endpoint + "/" + e.Repo
	switch {
	case e.Gated && e.HasToken:
		s += fmt.Sprintf(": open %s, agree to its terms with the account of HF_TOKEN, wait until access is granted, and try again", page)
	case e.Gated:
		s += fmt.Sprintf(": open %s, agree to its terms, make a token at %s/settings/tokens, and set HF_TOKEN", page, e.Endpoint)
	case e.HasToken:
		s += " with this HF_TOKEN: check that the name is right, that the token is valid and that its account has access"
	default:
		s += ": check the name; a private or gated repository needs HF_TOKEN"
	}
	return s
}

func (e *AccessError) Unwrap() error { return e.Err }

// NotFoundError reports something that the hub does not have.
type NotFoundError struct {
	Asked
	Endpoint string
	Err      *StatusError
}

func (e *NotFoundError) Error() string {
	switch {
	case e.File != "" && e.Err.Code != "RepoNotFound" && e.Err.Code != "RevisionNotFound":
		return fmt.Sprintf("%s has no file %s at %s", e.Repo, e.File, e.Revision)
	case e.Revision != "" && e.Err.Code != "RepoNotFound":
		return fmt.Sprintf("%s has no revision %q", e.Repo, e.Revision)
	}
	return fmt.Sprintf("%s has no repository %s", e.Endpoint, e.Repo)
}

func (e *NotFoundError) Unwrap() error { return e.Err }

// DamagedError reports a file whose content is not what the hub says, twice in a row.
type DamagedError struct {
	File      string
	Want, Got string // checksums in hex
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s came damaged twice (its checksum is %s, the hub says %s): a proxy or the disk may be at fault, or the repository; try again later",
		e.File, e.Got, e.Want)
}

// WriteError reports a file that could not be written. What came so far is kept.
type WriteError struct {
	File string
	Err  error
}

func (e *WriteError) Error() string {
	if errors.Is(e.Err, syscall.ENOSPC) || errors.Is(e.Err, syscall.EDQUOT) {
		return fmt.Sprintf("the disk is full while %s comes: make room and try again, what came is kept: %v", e.File, e.Err)
	}
	return fmt.Sprintf("write %s: %v", e.File, e.Err)
}

func (e *WriteError) Unwrap() error { return e.Err }
