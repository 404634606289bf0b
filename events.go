package moeflux

import (
	"io"
	"iter"

	"github.com/moeflux/moeflux-actor/actors"
)

// Events is an answer as it comes: range over it, or let Copy or Wait do so. An error ends it, and
// comes with a zero Event; the last Event has the End. Nothing is done before somebody ranges over
// it, and each time that is a new request. Tokens are made when the next event is asked for, in the
// goroutine that asks; breaking out of the loop ends the request.
type Events iter.Seq2[Event, error]

// Event is what has happened since the one before. It tells one of five things: what the prompt is,
// how far it has been read, that it has been, what one new token has brought, or how the text
// ended. Fields that have nothing to tell are zero.
type Event struct {
	Prompt  *Prompt  // first: the prompt as the model will read it
	Reading *Reading // with Request.Progress: how far that is, at its beginning and after each part
	Read    *Read    // then: the prompt has been read, and the first token comes

	// Text is what the answer says. Characters are whole: one that takes several tokens comes with
	// the last of them. What may be the beginning of a stop string or of a mark comes when that is
	// decided.
	Text string
	// Reasoning is what the model thinks before it answers, in Chat.
	Reasoning string
	// Call is a piece of a call of a tool, in Chat with Request.Tools.
	Call *CallPiece
	// Raw is the text as the model wrote it, with all marks: of Generate that is Text.
	Raw string
	// Token is the new token. The last events of a text may have text that was held back, and no
	// token.
	Token *Token

	End *End // last: why the text ended, and the whole of it
}

// Prompt is what a request comes to.
type Prompt struct {
	Text string  // of Chat: what the template made of the messages
	IDs  []int32 // the tokens; those of a session's text before it are the first
	// Sequence is the number under which the engine's records have the text; 0 of ChatPrompt.
	Sequence uint64
}

// Reading tells how much of a prompt the model knows by now.
type Reading struct {
	Known  int // tokens, of these Reused need not be read
	Reused int
	Total  int
}

// Read tells that a prompt has been read.
type Read struct {
	Reused int // tokens of it that were known and not read again
}

// Token is one token, and with Request.LogProbs how likely it was.
type Token struct {
	ID int32
	// With Request.LogProbs:
	Bytes   []byte  // what it stands for, which may be part of a character
	LogProb float64 // natural
	Top     []Token // the most likely tokens at its place (Request.TopLogProbs), the likeliest first
}

// End is how a text ended.
type End struct {
	Reason StopReason
	Stop   string // the stop string of StopString
	// Message is the answer, to be added to the conversation. Of Generate it is the new text.
	Message Message
	// Malformed tells that a call of a tool was not well formed; it is in the message's text.
	Malformed bool
	// Complete tells that the text is one that Request.Constraint or Request.ToolChoice allows: it
	// may not be where it was cut short. Where a string of Request.Stop ended it nobody looked, and
	// it is false.
	Complete bool
	Seed     *uint64 // of the random stream; nil if nothing was drawn
	Usage    Usage
}

// Usage is what a request took.
type Usage struct {
	PromptTokens int // of these ReusedTokens were known
	ReusedTokens int
	NewTokens    int
	// Account is the engine's: waiting, device, disk, bytes, and experts hit and missed, each the
	// request's own share.
	Account Account
}

// Account is what requests have been given, and what that cost: Read, Reused and Generated tokens;
// QueueNS and TotalNS; DeviceNS and DiskWaitNS; experts' picks Hit, Late and Missed; SlotBytes,
// HostBytes and DiskBytes. Package stages says what each is.
type Account = actors.Account

// StopReason is why a text ended.
type StopReason = actors.StopReason

// The reasons.
const (
	StopEOS         = actors.StopEOS     // the model ended it
	StopLength      = actors.StopLength  // Request.MaxTokens were generated
	StopContext     = actors.StopContext // there is no position left
	StopString      = StopReason("stop") // a string of Request.Stop came
	StopInterrupted = StopReason("interrupted")
)

// Copy writes the text to w as it comes, without reasoning and without the prompt, and returns its
// end. The error is that of the request or of w; the end is nil then. To keep the text so far,
// range over the events, or let Request.Interrupted end it.
func (e Events) Copy(w io.Writer) (*End, error) {
	var end *End
	for event, err := range e {
		if err != nil {
			return nil, err
		}
		if event.Text != "" {
			if _, err := io.WriteString(w, event.Text); err != nil {
				return nil, err
			}
		}
		if event.End != nil {
			end = event.End
		}
	}
	return end, nil
}

// Wait returns the end of the answer, which has the whole of it.
func (e Events) Wait() (*End, error) { return e.Copy(io.Discard) }
