package weights

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Make returns weights in memory that are made of the file at path, which has another form. fill
// writes all size bytes of what model_weights.bin would be; the manifest describes them and is
// checked as Open checks one. Errors are those of fill, *ManifestErrors, or come from the operating
// system.
func Make(path string, m *Manifest, size int64, fill func(data []byte) error) (*File, error) {
	for _, name := range sortedNames(m.Tensors) {
		if why := checkTensor(name, m.Tensors, size); why != "" {
			return nil, &ManifestError{Path: path, Tensor: name, Why: why}
		}
	}
	if size <= 0 {
		return nil, &ManifestError{Path: path, Why: "there are no weights"}
	}
	data, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("weights: %d bytes for the weights of %s: %w", size, path, err)
	}
	if err = fill(data); err == nil {
		err = unix.Mprotect(data, unix.PROT_READ)
	}
	if err != nil {
		return nil, errors.Join(err, unix.Munmap(data))
	}
	return &File{manifest: m, mapping: data, made: path}, nil
}
