package actors

import (
	"context"
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/moeflux/moeflux-actor/stages"
	"github.com/moeflux/moeflux-actor/stages/sample"
)

// StopReason is why a generation ended.
type StopReason string

// The reasons.
const (
	StopEOS     StopReason = "eos"     // the model ended the text
	StopLength  StopReason = "length"  // MaxTokens were generated
	StopContext StopReason = "context" // the sequence has no position left
)

// GenerateOptions says how to continue a text. The zero value chooses greedily until the model ends
// the text.
type GenerateOptions struct {
	// 0: no limit but the context. With a limit there is memory for all of them before the prompt
	// is read (Chunk.Until).
	MaxTokens int
	Sampling  sample.Options // how tokens are chosen
	IgnoreEOS bool           // go on where the model would end the text
	// Constraint, if set, bounds what may come; it stands where the text goes on. It allows the
	// tokens that end a text where it may end, and is not told when one has come. A text that is
	// complete ends with StopEOS.
	Constraint sample.Constraint
	// Earlier is the tokens of the text before the prompt, which the sequence already holds. Only
	// the repeat penalty looks at them.
	Earlier []int32
	// Resume says that the prompt is the whole text: what the engine has of its beginning is not
	// read again (Sequence.Resume), and the text is remembered for others that begin alike.
	// Earlier must be empty.
	Resume bool
	// Reused, if set, is written when the prompt has been read: how many of its tokens did not have
	// to be read.
	Reused *int
	// LogProbs, if set, is written before each token is yielded: its log-probability and those of
	// the TopLogProbs most likely tokens. Top is the consumer's to keep.
	LogProbs    *sample.LogProbs
	TopLogProbs int
	// FirstToken, if set, is called when the prompt has been read.
	FirstToken func()
	// StopReason, if set, is written when the generation ends without error.
	StopReason *StopReason
}

// Generate appends the prompt and yields one chosen token after the other. An error ends it. Tokens
// are evaluated when the next one is asked for, so the last token yielded is not yet part of the
// sequence: begin the next prompt with it. Breaking out of the loop is clean at any time and leaves
// the sequence usable; for the end of ctx see EvalChunk. An EOS token is not yielded.
//
// Tokens are chosen in the caller's goroutine, between two evaluations: no actor waits for it.
func (s *Sequence) Generate(ctx context.Context, prompt []int32, o GenerateOptions) iter.Seq2[int32, error] {
	return func(yield func(int32, error) bool) {
		reason, err := s.generate(ctx, prompt, o, yield)
		if err != nil {
			yield(0, err)
		} else if reason != "" && o.StopReason != nil {
			*o.StopReason = reason
		}
	}
}

// reaches returns how many positions a generation declares that the text reaches: all that it may
// evaluate, so that it ends with the length that was asked for and not for lack of memory; of one
// without a limit what Declare says. The last token is not evaluated.
func (s *Sequence) reaches(prompt []int32, o GenerateOptions) int {
	until := s.declared()
	if o.MaxTokens == 0 {
		return until
	}
	before := 0
	if !o.Resume {
		before = s.Len()
	}
	return max(until, min(before+len(prompt)+o.MaxTokens-1, s.e.info.Context))
}

// read tells that the prompt has been read.
func (o *GenerateOptions) read(reused int) {
	if o.Reused != nil {
		*o.Reused = reused
	}
	if o.FirstToken != nil {
		o.FirstToken()
	}
}

// advance tells the constraint, if there is one, of a token, and reports whether the text is
// complete with it.
func (o *GenerateOptions) advance(token int32) (complete bool, err error) {
	if o.Constraint == nil {
		return false, nil
	}
	if err := o.Constraint.Advance(token); err != nil {
		return false, err
	}
	return o.Constraint.Complete(), nil
}

// choice chooses the tokens of a generation.
type choice struct {
	o       *GenerateOptions
	sampler *sample.Sampler
	logits  LogitsWanted
	text    []int32 // that the repeat penalty looks at
	read    int     // tokens of the text that were not chosen here
}

// choice returns how the tokens after a prompt are chosen. The options are valid.
func (s *Sequence) choice(prompt []int32, o *GenerateOptions) *choice {
	c := &choice{o: o, sampler: sample.New(o.Sampling), logits: LastLogits, text: slices.Concat(o.Earlier, prompt)}
	c.read = len(c.text)
	if o.LogProbs == nil && o.Constraint == nil && o.Sampling.Of(stages.BestOf(s.e.model.VocabSize)) {
		c.logits = BestLogits
	}
	return c
}

// next chooses a token by the logits of an answer.
func (c *choice) next(r *stages.ChunkEvaluated) (int32, error) {
	read, made := c.text[:c.read], c.text[c.read:]
	switch {
	case c.logits == BestLogits:
		return c.sampler.NextOf(sample.Best(r.Largest))
	case c.o.Constraint != nil:
		return c.sampler.NextWithin(c.o.Constraint, r.Logits, read, made)
	}
	return c.sampler.Next(r.Logits, read, made)
}

// describe writes the log-probabilities that the consumer wants of a token.
func (c *choice) describe(r *stages.ChunkEvaluated, token int32) (err error) {
	if c.o.LogProbs != nil {
		*c.o.LogProbs, err = c.sampler.LogProbs(r.Logits, token, c.o.TopLogProbs)
	}
	return err
}

// firstChunk returns the chunk that reads a prompt: what the engine does not have of it, with
// Resume.
func (s *Sequence) firstChunk(ctx context.Context, prompt []int32, o *GenerateOptions, c Chunk) (Chunk, error) {
	c.Tokens = prompt
	if !o.Resume {
		return c, nil
	}
	if len(o.Earlier) > 0 {
		return c, errors.New("GenerateOptions.Resume takes the whole text as the prompt; leave Earlier empty")
	}
	n, err := s.resume(ctx, prompt, c.Until)
	if err != nil {
		return c, err
	}
	c.Tokens, c.Before, c.Remember = prompt[n:], n, true
	return c, nil
}

// generate returns "" if the consumer broke out of the loop.
func (s *Sequence) generate(ctx context.Context, prompt []int32, o GenerateOptions, yield func(int32, error) bool) (StopReason, error) {
	if err := o.Sampling.Validate(); err != nil {
		return "", err
	}
	c, until := s.choice(prompt, &o), s.reaches(prompt, o)
	if o.MaxTokens > 0 { // whatever is left of it is for others when the text ends before
		defer s.e.rt.GiveBack(&stages.TruncateSequence{Seq: s.id, Pos: math.MaxInt})
	}
	chunk, err := s.firstChunk(ctx, prompt, &o, Chunk{Logits: c.logits, Until: until})
	if err != nil {
		return "", err
	}
	// the answer before; its logits are the sampler's until the next token is asked for
	var spent *stages.ChunkEvaluated
	for n := 1; ; n++ {
		if spent != nil {
			s.done(spent)
		}
		r, err := s.eval(ctx, chunk)
		if err != nil {
			return "", err
		}
		spent = r
		if n == 1 {
			o.read(chunk.Before)
		}
		token, err := c.next(r)
		if err != nil {
			return "", err
		}
		if !o.IgnoreEOS && slices.Contains(s.e.model.EOSTokenIDs, token) {
			return StopEOS, nil
		}
		if err := c.describe(r, token); err != nil {
			return "", err
		}
		complete, err := o.advance(token)
		if err != nil {
			return "", err
		}
		if !yield(token, nil) {
			return "", nil
		}
		switch {
		case complete:
			return StopEOS, nil
		case n == o.MaxTokens:
			return StopLength, nil
		case s.Len() >= s.e.info.Context:
			return StopContext, nil
		}
		c.text = append(c.text, token)
		chunk = Chunk{Tokens: c.text[len(c.text)-1:], Logits: c.logits, Until: until}
	}
}
