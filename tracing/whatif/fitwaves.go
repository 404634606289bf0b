package whatif

// waveLaw says what a wave takes: some time for itself, some for the end of a layer, and some for
// each expert and each pick.
type waveLaw struct{ each [4]float64 }

func (w *wave) features() [4]float64 {
	f := [4]float64{1, 0, float64(w.uses), float64(w.picks)}
	if w.last {
		f[1] = 1
	}
	return f
}

func (l *waveLaw) of(w wave) (ns float64) {
	for i, f := range w.features() {
		ns += f * l.each[i]
	}
	return ns
}

// waveFit gathers waves for a law: the least squares with no coefficient below 0.
type waveFit struct {
	xx [4][4]float64
	xy [4]float64
	n  int
}

func (f *waveFit) add(w wave) {
	x := w.features()
	for i := range x {
		for j := range x {
			f.xx[i][j] += x[i] * x[j]
		}
		f.xy[i] += x[i] * w.ns
	}
	f.n++
}

// law solves by going through the coefficients, each the best beside the others, until they stay.
func (f *waveFit) law() (l waveLaw) {
	for range 20_000 {
		moved := 0.0
		for i := range l.each {
			if f.xx[i][i] == 0 {
				continue
			}
			rest := f.xy[i]
			for j := range l.each {
				if j != i {
					rest -= f.xx[i][j] * l.each[j]
				}
			}
			to := max(0, rest/f.xx[i][i])
			moved = max(moved, (to-l.each[i])*(to-l.each[i]))
			l.each[i] = to
		}
		if moved < 1e-6 {
			break
		}
	}
	return l
}
