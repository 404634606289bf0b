package frame

import (
	"encoding/binary"
	"fmt"
	"net"
	"strings"
)

// A Group is: how many addresses (4 bytes), and each, as its length (2 bytes) and its text.
const groupFixed = 4

const (
	// MostMembers is the most addresses of a Group.
	MostMembers = 256
	// MostAddress is the most bytes of an address.
	MostAddress = 260
	groupBytes  = groupFixed + MostMembers*(2+MostAddress)
)

// CheckAddress reports what cannot be an address of a host, host:port, of a group.
func CheckAddress(addr string) error {
	host, port, err := net.SplitHostPort(addr)
	odd := func(c rune) bool { return c <= ' ' || c >= 0x7f }
	if err != nil || host == "" || port == "" || len(addr) > MostAddress || strings.ContainsFunc(addr, odd) {
		return fmt.Errorf("%q is not an address that others can dial; write host:port", addr)
	}
	return nil
}

// AppendGroup appends a Group of addresses, which CheckAddress has passed. Those beyond MostMembers
// are left out.
func AppendGroup(dst []byte, addrs []string) []byte {
	from := len(dst)
	addrs = addrs[:min(len(addrs), MostMembers)]
	dst = binary.LittleEndian.AppendUint32(begin(dst, Group, 0), uint32(len(addrs)))
	for _, a := range addrs {
		dst = append(binary.LittleEndian.AppendUint16(dst, uint16(len(a))), a...)
	}
	return end(dst, from)
}

// Members reads a Group. It is empty if the host is in no group.
func (f *Frame) Members() (addrs []string, err error) {
	if f.Kind != Group {
		return nil, ErrKind
	}
	b := f.Body
	if len(b) < groupFixed || binary.LittleEndian.Uint32(b) > MostMembers {
		return nil, fmt.Errorf("%w: a group of %d bytes", ErrContent, len(b))
	}
	n := binary.LittleEndian.Uint32(b)
	for b = b[groupFixed:]; n > 0; n-- {
		if len(b) < 2 || len(b) < 2+int(binary.LittleEndian.Uint16(b)) {
			return nil, fmt.Errorf("%w: a group that ends early", ErrContent)
		}
		size := 2 + int(binary.LittleEndian.Uint16(b))
		addr := string(b[2:size])
		if err := CheckAddress(addr); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrContent, err)
		}
		addrs, b = append(addrs, addr), b[size:]
	}
	if len(b) != 0 {
		return nil, fmt.Errorf("%w: a group with %d bytes too many", ErrContent, len(b))
	}
	return addrs, nil
}
