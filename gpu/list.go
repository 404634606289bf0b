package gpu

// List is numbers that an operation reads: in device memory from At on, or, if At is zero, in Host,
// with which they travel with the operation. Host is left alone by the caller until the ticket is
// done.
type List[T int32 | float32] struct {
	At   View
	Host []T
}

// list requires n numbers in one of the two places.
func list[T int32 | float32](c *checker, name string, l *List[T], n int) span {
	switch {
	case !l.At.IsZero() && l.Host != nil:
		c.fail("%s lie on the device and travel with the operation", name)
	case !l.At.IsZero():
		return c.floats(name, l.At, n)
	case c.ok() && len(l.Host) != n:
		c.fail("%d %s, want %d", len(l.Host), name, n)
	}
	return span{}
}
