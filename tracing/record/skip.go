package record

// End returns a cursor behind the last record that the table has now.
func (t *Table[T]) End() Cursor { return Cursor{next: t.Total()} }

// Skip leaves out what the log has got until now: Drain writes what comes after it.
func (f *Writer) Skip(l *Log) {
	for i, t := range tables {
		f.cursors[i].next = t.total(l)
	}
}
