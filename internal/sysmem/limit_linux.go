package sysmem

// Limit returns the bytes of memory that a cgroup allows all its processes, including this one;
// false if that is no less than the machine has, or unknown. File pages that the processes read
// count too.
func Limit() (bytes int64, ok bool) { return limit("/") }

func limit(root string) (int64, bool) {
	m, err := newMonitor(root)
	if err != nil {
		return 0, false
	}
	defer m.Close()
	info, err := m.Read()
	if err != nil {
		return 0, false
	}
	raw, err := m.read(m.meminfo)
	machine, known := field(raw, "MemTotal:")
	if err != nil || !known || info.Total >= machine<<10 {
		return 0, false
	}
	return info.Total, true
}
