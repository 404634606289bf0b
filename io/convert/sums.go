package convert

import (
	"context"
	"io"

	"github.com/moeflux/moeflux-actor/io/expertfile"
)

// recordSums collects the checksums of the records of the layer files that a conversion writes.
type recordSums struct {
	record int   // bytes of a record
	layers []int // that have experts
	done   expertfile.Sums
}

func newRecordSums(record int, layers []int) *recordSums {
	return &recordSums{record: record, layers: layers, done: expertfile.Sums{}}
}

// fill calls fill to write all records of a layer to w, and computes their checksums.
func (s *recordSums) fill(w io.Writer, layer int, fill func(io.Writer) error) error {
	sums := &expertfile.SumWriter{W: w, Record: s.record}
	if err := fill(sums); err != nil {
		return err
	}
	s.done[layer] = sums.Sums
	return nil
}

// write writes the file of all checksums. It reads the layers that an earlier conversion finished.
func (s *recordSums) write(ctx context.Context, o *output) error {
	return o.write(ctx, expertfile.DirName+"/"+expertfile.SumsName, func(w io.Writer) error {
		all := expertfile.Sums{}
		for _, layer := range s.layers {
			if ctx.Err() != nil {
				return interrupted(context.Cause(ctx))
			}
			sums, ok := s.done[layer]
			if !ok {
				var err error
				if sums, err = expertfile.SumRecords(o.path(layerFile(layer)), s.record); err != nil {
					return err
				}
			}
			all[layer] = sums
		}
		_, err := w.Write(all.Encode(s.record))
		return err
	})
}
