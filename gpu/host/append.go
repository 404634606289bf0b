package host

import "github.com/moeflux/moeflux-actor/gpu"

// appendTask writes rows to caches; a chunk is some rows of a segment.
type appendTask struct {
	k, v             []float32 // v is nil if values are part of the keys
	kStride, vStride int
	cache            gpu.KVLayout
	segments         []gpu.KVSegment
	per              int // rows in a chunk
}

func (t *appendTask) do(_ *scratch, chunk int) {
	for i := range t.segments {
		s := &t.segments[i]
		if n := chunks(s.Rows, t.per); chunk >= n {
			chunk -= n
			continue
		}
		kv := s.In(&t.cache)
		values := kv.Values()
		for r := chunk * t.per; r < min((chunk+1)*t.per, s.Rows); r++ {
			keep(&kv, kv.KOffset, s.Pos+r, t.k[(s.Row+r)*t.kStride:][:kv.Dim])
			if t.v != nil {
				keep(&values, kv.VOffset, s.Pos+r, t.v[(s.Row+r)*t.vStride:][:values.Dim])
			}
		}
		return
	}
}

// roundNS is how many nanoseconds it takes Go to round a channel.
const roundNS = 2

func (x *executor) runAppendKV(o *gpu.AppendKV) {
	rows, count := 0, 0
	for i := range o.Segments {
		rows = max(rows, o.Segments[i].Row+o.Segments[i].Rows)
		count += o.Segments[i].Rows
	}
	t := &x.append
	dim, vDim := o.Cache.Dim, or(o.Cache.VDim, o.Cache.Dim)
	*t = appendTask{kStride: or(o.KStride, dim), vStride: or(o.VStride, vDim), cache: o.Cache, segments: o.Segments, per: x.width(count, 1)}
	t.k = floatsAt(o.K, (rows-1)*t.kStride+dim)
	if !o.V.IsZero() {
		t.v = floatsAt(o.V, (rows-1)*t.vStride+vDim)
	}
	n := 0
	for i := range o.Segments {
		n += chunks(o.Segments[i].Rows, t.per)
	}
	ns := x.vectors.moving(2 * count * dim)
	if o.Cache.Format != gpu.KVF32 {
		ns = 2 * count * dim * roundNS
	}
	x.parallel(t, n, ns)
	*t = appendTask{}
}

// copyTask copies vectors from stride to stride; a chunk is some rows.
type copyTask struct {
	x, y                                     []float32
	rows, heads, dim, xRow, xHead, yRow, per int
	yHead                                    int
}

func (t *copyTask) do(_ *scratch, chunk int) {
	for r := chunk * t.per; r < min((chunk+1)*t.per, t.rows); r++ {
		for h := range t.heads {
			copy(t.y[r*t.yRow+h*t.yHead:][:t.dim], t.x[r*t.xRow+h*t.xHead:])
		}
	}
}

func (x *executor) runCopyHeads(o *gpu.CopyHeads) {
	t := &x.copying
	*t = copyTask{rows: o.Rows, heads: o.Heads, dim: o.Dim, xRow: o.XRowStride, xHead: o.XHeadStride, yRow: o.YRowStride,
		yHead: o.YHeadStride, per: x.width(o.Rows, 1)}
	t.x = floatsAt(o.X, (o.Rows-1)*o.XRowStride+(o.Heads-1)*o.XHeadStride+o.Dim)
	t.y = floatsAt(o.Y, (o.Rows-1)*o.YRowStride+(o.Heads-1)*o.YHeadStride+o.Dim)
	x.parallel(t, chunks(o.Rows, t.per), x.vectors.moving(o.Rows*o.Heads*o.Dim))
	*t = copyTask{}
}
