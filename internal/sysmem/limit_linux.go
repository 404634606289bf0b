package sysmem

// Limit returns the memory that a cgroup allows this process and all others in it, in bytes; false
// if that is no less than the machine has, or if the system does not tell. File pages that they
// read count against it.
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
