package admission

// Keys returns how many shares are remembered.
func (q *Queue[T]) Keys() (n int) {
	for _, c := range q.classes {
		n += len(c.shares)
	}
	return n
}
