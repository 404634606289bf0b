package stages

// Rank says which reads go first: those of a higher rank. It follows from what the step is that a
// read is for, and from whether somebody waits for it.
type Rank int8

// The ranks. A read is urgent if it is for an urgent step (Batch.Urgent). A guess is one that
// nobody waits for yet.
const (
	GuessRead Rank = iota - 1
	DemandRead
	UrgentGuess
	UrgentRead
)

var rankNames = [...]string{"a guess", "on demand", "an urgent guess", "urgent"}

// RankOf returns the rank of a read.
func RankOf(urgent, guess bool) Rank {
	switch {
	case urgent && guess:
		return UrgentGuess
	case urgent:
		return UrgentRead
	case guess:
		return GuessRead
	}
	return DemandRead
}

// Speculative reports whether nobody waits for the read yet.
func (r Rank) Speculative() bool { return r == GuessRead || r == UrgentGuess }

// Urgent reports whether the read is for an urgent step.
func (r Rank) Urgent() bool { return r > DemandRead }

func (r Rank) String() string { return rankNames[r-GuessRead] }
