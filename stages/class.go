package stages

// Class says who goes first where memory for states is short: a higher class always does.
type Class int8

// The classes.
const (
	Background Class = iota - 1
	Normal
	Interactive
	NumClasses int = iota
)

var classNames = [NumClasses]string{"background", "normal", "interactive"}

// Rank counts the classes from the lowest, 0.
func (c Class) Rank() int { return int(min(max(c, Background), Interactive) - Background) }

func (c Class) String() string { return classNames[c.Rank()] }
