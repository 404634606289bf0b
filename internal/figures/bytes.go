package figures

import "fmt"

// Bytes writes a number of bytes with three significant digits.
func Bytes(n int64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}
	x, u := float64(n), 0
	for x >= 999.5 && u < len(units)-1 {
		x /= 1024
		u++
	}
	switch {
	case u == 0:
		return fmt.Sprintf("%d B", n)
	case x < 9.995:
		return fmt.Sprintf("%.2f %s", x, units[u])
	case x < 99.95:
		return fmt.Sprintf("%.1f %s", x, units[u])
	default:
		return fmt.Sprintf("%.0f %s", x, units[u])
	}
}

// Counted writes a number and its noun: 1 read, 2 reads.
func Counted[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
