package schedule_test

import "fmt"

// chunk is a request of the tests.
type chunk struct {
	id     int
	left   int
	alone  bool
	key    string
	weight int
}

func (c *chunk) Left() int      { return c.left }
func (c *chunk) Alone() bool    { return c.alone }
func (c *chunk) Key() string    { return c.key }
func (c *chunk) Weight() int    { return c.weight }
func (c *chunk) String() string { return fmt.Sprintf("%d:%d", c.id, c.left) }
