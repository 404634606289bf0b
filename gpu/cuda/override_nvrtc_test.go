//go:build nvrtc && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"testing"

	"github.com/moeflux/moeflux-actor/gpu/launch"
	"github.com/moeflux/moeflux-actor/internal/testenv"
)

// limbKernels are the kernels of override/ with the values of their #define lines that package
// launch gives them.
func limbKernels() (all []launch.Kernel) {
	add := func(name, common, format string, values ...any) {
		all = append(all, launch.Kernel{Name: name, Defines: common + fmt.Sprintf(format, values...)})
	}
	for _, bits := range []int{2, 4, 8} {
		for _, group := range []int{32, 64, 128} {
			for layout := range 2 {
				for wide := range 2 {
					c := fmt.Sprintf("#define BITS %d\n#define GROUP %d\n#define LAYOUT %d\n#define WIDE %d\n#define ROUNDED %d\n", bits, group, layout, wide, (bits/4+layout+wide)%2)
					add("limbs_split", c, "")
					c += fmt.Sprintf("#define INPUTS %d\n", 384*(1+3*wide))
					rows := []int{1, 2, 4, 8, 16, 32, 32}[len(all)%7]
					staged := (len(all) % 7) / 6
					add("limbs_matmul", c, "#define XROWS %d\n#define TILES %d\n#define STAGED %d\n#define SPLIT %d\n#define PARTS %d\n", rows, 1+layout, staged, max(staged, (rows/8+wide)%2), 1+wide*3)
					add("limbs_swiglu", c, "#define XROWS %d\n#define SPLIT %d\n#define PARTS 2\n", 1+layout, wide)
					if group != 64 || wide == 0 { // the compiler takes seconds for one
						continue
					}
					gated := bits / 4 % 2
					add("limbs_experts", c,
						"#define XROWS 8\n#define TILES %d\n#define STAGED 0\n#define SPLIT %d\n"+
							"#define GATED %d\n#define BIASED %d\n#define CLAMPED %d\n"+
							"#define WHICH %d\n#define SETTLED %d\n",
						1+max(gated, layout), layout, gated, layout, 1-layout, 2*(1-gated), 1-gated)
					add("limbs_experts", c,
						"#define XROWS 48\n#define TILES 2\n#define STAGED 1\n#define SPLIT 1\n"+
							"#define GATED %d\n#define BIASED %d\n#define CLAMPED %d\n"+
							"#define WHICH 0\n#define SETTLED 0\n",
						wide, 1-layout, 2*layout)
				}
			}
		}
	}
	return all
}

// overrideArchs are the GPUs that kernels of override/ are compiled for here, of those that the
// compiler knows: CUDA 12.8 was the first for sm_100 and sm_120.
func overrideArchs(t *testing.T, c *compiler) []string {
	var major, minor int32
	if err := c.check(c.version(&major, &minor), "nvrtcVersion"); err != nil {
		t.Fatal(err)
	}
	archs := []string{"sm_80", "sm_86", "sm_89", "sm_90"}
	if major > 12 || major == 12 && minor >= 8 {
		archs = append(archs, "sm_100", "sm_120")
	}
	return archs
}

// Every kernel of override/ compiles for every GPU that it serves.
func TestOverridesCompile(t *testing.T) {
	c := openNVRTC(t)
	archs, seen, compiled := overrideArchs(t, c), map[string]int{}, map[string]int{}
	for _, k := range limbKernels() {
		// The compiler takes half a second for one: a kernel's variants go to the architectures in
		// turn, and every second turn is left out unless there is time.
		turn, at := seen[k.Name]/len(archs), seen[k.Name]%len(archs)
		seen[k.Name]++
		if turn%testenv.Rounds(2, 2, 1) != 0 {
			continue
		}
		arch := archs[at]
		source, err := overrideSource(k)
		if err != nil {
			t.Fatal(err)
		}
		compiled[k.Name+" for "+arch]++
		_, log, err := c.build(source, options(arch))
		switch {
		case err != nil:
			t.Fatalf("%s for %s with %q: %v\n%s", k.Name, arch, k.Defines, err, log)
		case log != "":
			t.Logf("%s with %q: %s", k.Name, k.Defines, log)
		}
	}
	for name := range seen {
		for _, arch := range archs {
			if compiled[name+" for "+arch] == 0 {
				t.Errorf("no variant of %s was compiled for %s", name, arch)
			}
		}
	}
	t.Logf("compiled: %v", compiled)
}
