package host

import "github.com/moeflux/moeflux-actor/gpu"

// keys and values return the page's memory, float32 [PageRows, Dim].
func keys(kv *gpu.KV, page int) []float32 {
	return floatsAt(kv.Pages.At(page).At(kv.KOffset), kv.PageRows*kv.Dim)
}

func values(kv *gpu.KV, page int) []float32 {
	return floatsAt(kv.Pages.At(page).At(kv.VOffset), kv.PageRows*or(kv.VDim, kv.Dim))
}

// codes returns the codes [PageRows, Dim] and scales [Dim/Group, PageRows] of a page's keys or
// values, which begin at offset. Enough bytes follow the codes for a vector that reads past their
// end.
func codes(kv *gpu.KV, page, offset int) (codes []byte, scales []float32) {
	v := kv.Pages.At(page).At(offset)
	return bytesAt(v, kv.PartBytes()), floatsAt(v.At(kv.ScalesAt()), kv.PageRows*kv.Groups())
}

// keep writes a row of keys or values at a position; they begin at offset in a page.
func keep(kv *gpu.KV, offset, position int, x []float32) {
	page, row := position/kv.PageRows, position%kv.PageRows
	if kv.Format == gpu.KVF32 {
		copy(floatsAt(kv.Pages.At(page).At(offset), kv.PageRows*kv.Dim)[row*kv.Dim:], x)
		return
	}
	q, scales := codes(kv, page, offset)
	q = q[row*kv.Dim:][:kv.Dim]
	for g := range kv.Groups() {
		at := g * kv.Group
		scales[g*kv.PageRows+row] = gpu.KVQuantise(q[at:at+kv.Group], x[at:at+kv.Group])
	}
}

// fetch copies width channels from channel at on, of n positions from p on, to dst [n, width]. The
// keys or values begin at offset in a page.
func (v *vectors) fetch(dst []float32, kv *gpu.KV, offset, at, width, p, n int) {
	for n > 0 {
		row := p % kv.PageRows
		run := min(n, kv.PageRows-row)
		if kv.Format == gpu.KVF32 {
			from := floatsAt(kv.Pages.At(p/kv.PageRows).At(offset), kv.PageRows*kv.Dim)[row*kv.Dim+at:]
			for i := range run {
				copy(dst[i*width:(i+1)*width], from[i*kv.Dim:])
			}
		} else {
			q, scales := codes(kv, p/kv.PageRows, offset)
			v.widen8(dst[:run*width], q[row*kv.Dim+at:], scales[at/kv.Group*kv.PageRows+row:], kv.Group, width, kv.Dim, kv.PageRows)
		}
		dst, p, n = dst[run*width:], p+run, n-run
	}
}

// bring reads into the caches what fetch would copy. A head's rows lie far apart, and kernels that
// compute with them would wait for a few lines at a time.
func (v *vectors) bring(kv *gpu.KV, offset, at, width, p, n int) {
	for n > 0 {
		row := p % kv.PageRows
		run := min(n, kv.PageRows-row)
		part := bytesAt(kv.Pages.At(p/kv.PageRows).At(offset), kv.PartBytes())
		if kv.Format == gpu.KVF32 {
			v.touch(part[4*(row*kv.Dim+at):], 4*width, 4*kv.Dim, run)
		} else {
			v.touch(part[row*kv.Dim+at:], width, kv.Dim, run)
			v.touch(part[kv.ScalesAt()+4*(at/kv.Group*kv.PageRows+row):], 4*run, 4*kv.PageRows, width/kv.Group)
		}
		p, n = p+run, n-run
	}
}

// codeColumns divides the groups that transpose8 takes. The group of float32 caches is 0.
const codeColumns = 16

// transposeKeys writes the channels from at on, of n positions from p on but those before p+from,
// to dst [dim, attnBlock]. p is a multiple of attnBlock; pad is [lanes, dim].
func (v *vectors) transposeKeys(dst, pad []float32, kv *gpu.KV, at, dim, p, from, n int) {
	for j := from; j < n; {
		row := (p + j) % kv.PageRows
		run := min(n-j, kv.PageRows-row)
		if whole := run / v.lanes * v.lanes; whole > 0 && kv.Group%codeColumns == 0 {
			if kv.Format == gpu.KVF32 {
				v.transposeAll(dst[j:], keys(kv, (p+j)/kv.PageRows)[row*kv.Dim+at:], attnBlock, kv.Dim, whole, dim)
			} else {
				q, scales := codes(kv, (p+j)/kv.PageRows, kv.KOffset)
				v.transpose8(dst[j:], q[row*kv.Dim+at:], scales[at/kv.Group*kv.PageRows+row:], kv.Group, dim, attnBlock, kv.Dim, kv.PageRows, whole)
			}
			j += whole
			continue
		}
		// Groups are small, or fewer rows than a vector has lanes are left in the page or block:
		// the next page's first rows are taken as well.
		m := min(v.lanes, n-j)
		v.fetch(pad, kv, kv.KOffset, at, dim, p+j, m)
		rows := m
		if j+v.lanes <= attnBlock {
			rows = v.lanes // rows after the last are ignored, or overwritten later
		}
		v.transposeAll(dst[j:], pad, attnBlock, dim, rows, dim)
		j += m
	}
}

// valueRows are the values of one head: channels from chan0 on in the pages of kv, float32, or a
// block of rows that begins at position first.
type valueRows struct {
	kv    *gpu.KV
	chan0 int
	block []float32
	first int
	width int
}

// at returns the values from position p on, the floats between their beginnings, and how many of n
// lie in one run.
func (v *valueRows) at(p, n int) (rows []float32, stride, run int) {
	if v.block != nil {
		return v.block[(p-v.first)*v.width:], v.width, n
	}
	row := p % v.kv.PageRows
	stride = or(v.kv.VDim, v.kv.Dim)
	return values(v.kv, p/v.kv.PageRows)[row*stride+v.chan0:], stride, min(n, v.kv.PageRows-row)
}
