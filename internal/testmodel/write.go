package testmodel

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/moeflux/moeflux-actor/io/safetensors"
	"github.com/moeflux/moeflux-actor/model/quant"
)

// Write writes config.json and model.safetensors of a checkpoint to dir, which must exist. Each
// tensor's numbers depend on its name, its shape and the seed alone.
func Write(dir string, s Spec, seed uint64) error {
	if err := s.Validate(); err != nil {
		return err
	}
	config, err := s.configJSON()
	if err != nil {
		return err
	}
	var tensors []safetensors.Tensor
	for _, d := range s.tensors() {
		tensors = append(tensors, d.draw(seed))
	}
	if err := safetensors.WriteFile(filepath.Join(dir, "model.safetensors"), tensors, map[string]string{"format": "pt"}); err != nil {
		return fmt.Errorf("testmodel: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		return fmt.Errorf("testmodel: %w", err)
	}
	return nil
}

// draw fills the tensor with its random numbers.
func (d drawn) draw(seed uint64) safetensors.Tensor {
	name := fnv.New64a()
	name.Write([]byte(d.name)) // a hash never fails
	r := rand.New(rand.NewPCG(seed, name.Sum64()))
	n := 1
	for _, axis := range d.shape {
		n *= axis
	}
	t := safetensors.Tensor{Name: d.name, DType: d.dtype, Shape: d.shape}
	for range n {
		x := r.NormFloat64()
		if d.even {
			x = r.Float64()
		}
		// The conversion keeps machines with a fused multiply-add from using it, which would round
		// differently.
		v := float32(d.mean + float64(d.spread*x))
		switch d.dtype {
		case safetensors.F32:
			t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
		case safetensors.U8:
			t.Data = append(t.Data, byte(v))
		default:
			t.Data = binary.LittleEndian.AppendUint16(t.Data, quant.F32ToBF16(v))
		}
	}
	return t
}

func sqrt(n int) float64 { return math.Sqrt(float64(n)) }
