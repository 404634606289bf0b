package launch

import "github.com/moeflux/moeflux-actor/gpu"

// transfer appends a step that copies or clears memory.
func (x *encoder) transfer(op gpu.Op, do func(x *encoder, s *step) error) {
	x.routed = routed{} // picks may be others now
	x.steps = append(x.steps, step{op: op, index: x.at, other: do})
}

func (x *encoder) upload(o *gpu.Upload)     { x.transfer(o, doUpload) }
func (x *encoder) download(o *gpu.Download) { x.transfer(o, doDownload) }
func (x *encoder) fill(o *gpu.Fill)         { x.transfer(o, doFill) }

func doUpload(x *encoder, s *step) error {
	o := s.op.(*gpu.Upload)
	return x.stream.CopyIn(memoryOf(o.Dst), o.Dst.Offset, o.Src)
}

func doDownload(x *encoder, s *step) error {
	o := s.op.(*gpu.Download)
	return x.stream.CopyOut(o.Dst, memoryOf(o.Src), o.Src.Offset)
}

func doFill(x *encoder, s *step) error {
	o := s.op.(*gpu.Fill)
	return x.stream.Fill(memoryOf(o.Dst), o.Dst.Offset, o.Bytes)
}

func (x *encoder) mark(o *gpu.Mark) {
	x.keepLimbs()
	x.steps = append(x.steps, step{op: o, index: x.at, other: doMark})
}

// doMark does nothing where a stream has no clock for it.
func doMark(x *encoder, s *step) error {
	if m, ok := x.stream.(Marker); ok {
		return m.Mark(&s.op.(*gpu.Mark).NS)
	}
	return nil
}
