//go:build amd64 && !noasm

#include "textflag.h"

// Every function reads its words in 1, 2, 4 or 8 streams, which divide them into equal parts, and
// adds 512 bytes an iteration (AVX2: 256) into eight accumulators. The short ones have one stream and
// one load an iteration: some prefetchers tell streams by the address of the load instruction.

// How far ahead of its loads a stream prefetches: not at all, into all caches, or into the first
// without the second (on Intel's server cores that leaves a core only its few line fill buffers).
#define NONE(off, reg)
#define ALL(off, reg) PREFETCHT0 (2048+off)(reg)
#define NEAR(off, reg) PREFETCHNTA (2048+off)(reg)

#define BEGIN(streams) \
	MOVQ w+0(FP), SI; \
	MOVQ n+8(FP), CX; \
	SHLQ $3, CX; \
	SHRQ $streams, CX

#define BEGIN2 \
	LEAQ (SI)(CX*1), DI

#define BEGIN4 \
	BEGIN2; \
	LEAQ (SI)(CX*2), R8; \
	LEAQ (DI)(CX*2), R9

#define BEGIN8 \
	BEGIN4; \
	LEAQ (SI)(CX*4), R10; \
	LEAQ (DI)(CX*4), R11; \
	LEAQ (R8)(CX*4), R12; \
	LEAQ (R9)(CX*4), R13

#define ZERO512 \
	VPXORQ Z0, Z0, Z0; \
	VPXORQ Z1, Z1, Z1; \
	VPXORQ Z2, Z2, Z2; \
	VPXORQ Z3, Z3, Z3; \
	VPXORQ Z4, Z4, Z4; \
	VPXORQ Z5, Z5, Z5; \
	VPXORQ Z6, Z6, Z6; \
	VPXORQ Z7, Z7, Z7

#define END512 \
	VPADDQ Z1, Z0, Z0; \
	VPADDQ Z2, Z0, Z0; \
	VPADDQ Z3, Z0, Z0; \
	VPADDQ Z4, Z0, Z0; \
	VPADDQ Z5, Z0, Z0; \
	VPADDQ Z6, Z0, Z0; \
	VPADDQ Z7, Z0, Z0; \
	VEXTRACTI64X4 $1, Z0, Y1; \
	VPADDQ Y1, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPADDQ X1, X0, X0; \
	VPSRLDQ $8, X0, X1; \
	VPADDQ X1, X0, X0; \
	VMOVQ X0, AX; \
	VZEROUPPER; \
	MOVQ AX, ret+16(FP); \
	RET

#define SUM512X1(PREFETCH) \
	PREFETCH(0, SI); \
	VPADDQ 0(SI), Z0, Z0; \
	PREFETCH(64, SI); \
	VPADDQ 64(SI), Z1, Z1; \
	PREFETCH(128, SI); \
	VPADDQ 128(SI), Z2, Z2; \
	PREFETCH(192, SI); \
	VPADDQ 192(SI), Z3, Z3; \
	PREFETCH(256, SI); \
	VPADDQ 256(SI), Z4, Z4; \
	PREFETCH(320, SI); \
	VPADDQ 320(SI), Z5, Z5; \
	PREFETCH(384, SI); \
	VPADDQ 384(SI), Z6, Z6; \
	PREFETCH(448, SI); \
	VPADDQ 448(SI), Z7, Z7; \
	ADDQ $512, SI; \
	SUBQ $512, CX

#define SUM512X2(PREFETCH) \
	PREFETCH(0, SI); \
	PREFETCH(0, DI); \
	PREFETCH(64, SI); \
	PREFETCH(64, DI); \
	PREFETCH(128, SI); \
	PREFETCH(128, DI); \
	PREFETCH(192, SI); \
	PREFETCH(192, DI); \
	VPADDQ 0(SI), Z0, Z0; \
	VPADDQ 0(DI), Z1, Z1; \
	VPADDQ 64(SI), Z2, Z2; \
	VPADDQ 64(DI), Z3, Z3; \
	VPADDQ 128(SI), Z4, Z4; \
	VPADDQ 128(DI), Z5, Z5; \
	VPADDQ 192(SI), Z6, Z6; \
	VPADDQ 192(DI), Z7, Z7; \
	ADDQ $256, SI; \
	ADDQ $256, DI; \
	SUBQ $256, CX

#define SUM512X4(PREFETCH) \
	PREFETCH(0, SI); \
	PREFETCH(0, DI); \
	PREFETCH(0, R8); \
	PREFETCH(0, R9); \
	PREFETCH(64, SI); \
	PREFETCH(64, DI); \
	PREFETCH(64, R8); \
	PREFETCH(64, R9); \
	VPADDQ 0(SI), Z0, Z0; \
	VPADDQ 0(DI), Z1, Z1; \
	VPADDQ 0(R8), Z2, Z2; \
	VPADDQ 0(R9), Z3, Z3; \
	VPADDQ 64(SI), Z4, Z4; \
	VPADDQ 64(DI), Z5, Z5; \
	VPADDQ 64(R8), Z6, Z6; \
	VPADDQ 64(R9), Z7, Z7; \
	ADDQ $128, SI; \
	ADDQ $128, DI; \
	ADDQ $128, R8; \
	ADDQ $128, R9; \
	SUBQ $128, CX

#define SUM512X8(PREFETCH) \
	PREFETCH(0, SI); \
	PREFETCH(0, DI); \
	PREFETCH(0, R8); \
	PREFETCH(0, R9); \
	PREFETCH(0, R10); \
	PREFETCH(0, R11); \
	PREFETCH(0, R12); \
	PREFETCH(0, R13); \
	VPADDQ 0(SI), Z0, Z0; \
	VPADDQ 0(DI), Z1, Z1; \
	VPADDQ 0(R8), Z2, Z2; \
	VPADDQ 0(R9), Z3, Z3; \
	VPADDQ 0(R10), Z4, Z4; \
	VPADDQ 0(R11), Z5, Z5; \
	VPADDQ 0(R12), Z6, Z6; \
	VPADDQ 0(R13), Z7, Z7; \
	ADDQ $64, SI; \
	ADDQ $64, DI; \
	ADDQ $64, R8; \
	ADDQ $64, R9; \
	ADDQ $64, R10; \
	ADDQ $64, R11; \
	ADDQ $64, R12; \
	ADDQ $64, R13; \
	SUBQ $64, CX

// func sum512x1(w *uint64, n int) uint64
TEXT ·sum512x1(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO512

loop:
	SUM512X1(NONE)
	JA loop
	END512

// func sum512x1All(w *uint64, n int) uint64
TEXT ·sum512x1All(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO512

loop:
	SUM512X1(ALL)
	JA loop
	END512

// func sum512x2(w *uint64, n int) uint64
TEXT ·sum512x2(SB), NOSPLIT, $0-24
	BEGIN(1)
	BEGIN2
	ZERO512

loop:
	SUM512X2(NONE)
	JA loop
	END512

// func sum512x2All(w *uint64, n int) uint64
TEXT ·sum512x2All(SB), NOSPLIT, $0-24
	BEGIN(1)
	BEGIN2
	ZERO512

loop:
	SUM512X2(ALL)
	JA loop
	END512

// func sum512x2Near(w *uint64, n int) uint64
TEXT ·sum512x2Near(SB), NOSPLIT, $0-24
	BEGIN(1)
	BEGIN2
	ZERO512

loop:
	SUM512X2(NEAR)
	JA loop
	END512

// func sum512x4(w *uint64, n int) uint64
TEXT ·sum512x4(SB), NOSPLIT, $0-24
	BEGIN(2)
	BEGIN4
	ZERO512

loop:
	SUM512X4(NONE)
	JA loop
	END512

// func sum512x4All(w *uint64, n int) uint64
TEXT ·sum512x4All(SB), NOSPLIT, $0-24
	BEGIN(2)
	BEGIN4
	ZERO512

loop:
	SUM512X4(ALL)
	JA loop
	END512

// func sum512x8(w *uint64, n int) uint64
TEXT ·sum512x8(SB), NOSPLIT, $0-24
	BEGIN(3)
	BEGIN8
	ZERO512

loop:
	SUM512X8(NONE)
	JA loop
	END512

// func sum512x8All(w *uint64, n int) uint64
TEXT ·sum512x8All(SB), NOSPLIT, $0-24
	BEGIN(3)
	BEGIN8
	ZERO512

loop:
	SUM512X8(ALL)
	JA loop
	END512

// func sum512short(w *uint64, n int) uint64
TEXT ·sum512short(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO512

loop:
	VPADDQ 0(SI), Z0, Z0
	ADDQ $64, SI
	SUBQ $64, CX
	JA   loop
	END512

// func sum512shortAll(w *uint64, n int) uint64
TEXT ·sum512shortAll(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO512

loop:
	ALL(0, SI)
	VPADDQ 0(SI), Z0, Z0
	ADDQ $64, SI
	SUBQ $64, CX
	JA   loop
	END512

#define ZERO256 \
	VPXOR Y0, Y0, Y0; \
	VPXOR Y1, Y1, Y1; \
	VPXOR Y2, Y2, Y2; \
	VPXOR Y3, Y3, Y3; \
	VPXOR Y4, Y4, Y4; \
	VPXOR Y5, Y5, Y5; \
	VPXOR Y6, Y6, Y6; \
	VPXOR Y7, Y7, Y7

#define END256 \
	VPADDQ Y1, Y0, Y0; \
	VPADDQ Y2, Y0, Y0; \
	VPADDQ Y3, Y0, Y0; \
	VPADDQ Y4, Y0, Y0; \
	VPADDQ Y5, Y0, Y0; \
	VPADDQ Y6, Y0, Y0; \
	VPADDQ Y7, Y0, Y0; \
	VEXTRACTI128 $1, Y0, X1; \
	VPADDQ X1, X0, X0; \
	VPSRLDQ $8, X0, X1; \
	VPADDQ X1, X0, X0; \
	VMOVQ X0, AX; \
	VZEROUPPER; \
	MOVQ AX, ret+16(FP); \
	RET

#define SUM256X1(PREFETCH) \
	PREFETCH(0, SI); \
	VPADDQ 0(SI), Y0, Y0; \
	VPADDQ 32(SI), Y1, Y1; \
	PREFETCH(64, SI); \
	VPADDQ 64(SI), Y2, Y2; \
	VPADDQ 96(SI), Y3, Y3; \
	PREFETCH(128, SI); \
	VPADDQ 128(SI), Y4, Y4; \
	VPADDQ 160(SI), Y5, Y5; \
	PREFETCH(192, SI); \
	VPADDQ 192(SI), Y6, Y6; \
	VPADDQ 224(SI), Y7, Y7; \
	ADDQ $256, SI; \
	SUBQ $256, CX

#define SUM256X2(PREFETCH) \
	PREFETCH(0, SI); \
	PREFETCH(0, DI); \
	PREFETCH(64, SI); \
	PREFETCH(64, DI); \
	VPADDQ 0(SI), Y0, Y0; \
	VPADDQ 0(DI), Y1, Y1; \
	VPADDQ 32(SI), Y2, Y2; \
	VPADDQ 32(DI), Y3, Y3; \
	VPADDQ 64(SI), Y4, Y4; \
	VPADDQ 64(DI), Y5, Y5; \
	VPADDQ 96(SI), Y6, Y6; \
	VPADDQ 96(DI), Y7, Y7; \
	ADDQ $128, SI; \
	ADDQ $128, DI; \
	SUBQ $128, CX

#define SUM256X4(PREFETCH) \
	PREFETCH(0, SI); \
	PREFETCH(0, DI); \
	PREFETCH(0, R8); \
	PREFETCH(0, R9); \
	VPADDQ 0(SI), Y0, Y0; \
	VPADDQ 0(DI), Y1, Y1; \
	VPADDQ 0(R8), Y2, Y2; \
	VPADDQ 0(R9), Y3, Y3; \
	VPADDQ 32(SI), Y4, Y4; \
	VPADDQ 32(DI), Y5, Y5; \
	VPADDQ 32(R8), Y6, Y6; \
	VPADDQ 32(R9), Y7, Y7; \
	ADDQ $64, SI; \
	ADDQ $64, DI; \
	ADDQ $64, R8; \
	ADDQ $64, R9; \
	SUBQ $64, CX

// func sum256x1(w *uint64, n int) uint64
TEXT ·sum256x1(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO256

loop:
	SUM256X1(NONE)
	JA loop
	END256

// func sum256x1All(w *uint64, n int) uint64
TEXT ·sum256x1All(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO256

loop:
	SUM256X1(ALL)
	JA loop
	END256

// func sum256x2(w *uint64, n int) uint64
TEXT ·sum256x2(SB), NOSPLIT, $0-24
	BEGIN(1)
	BEGIN2
	ZERO256

loop:
	SUM256X2(NONE)
	JA loop
	END256

// func sum256x2All(w *uint64, n int) uint64
TEXT ·sum256x2All(SB), NOSPLIT, $0-24
	BEGIN(1)
	BEGIN2
	ZERO256

loop:
	SUM256X2(ALL)
	JA loop
	END256

// func sum256x2Near(w *uint64, n int) uint64
TEXT ·sum256x2Near(SB), NOSPLIT, $0-24
	BEGIN(1)
	BEGIN2
	ZERO256

loop:
	SUM256X2(NEAR)
	JA loop
	END256

// func sum256x4(w *uint64, n int) uint64
TEXT ·sum256x4(SB), NOSPLIT, $0-24
	BEGIN(2)
	BEGIN4
	ZERO256

loop:
	SUM256X4(NONE)
	JA loop
	END256

// func sum256x4All(w *uint64, n int) uint64
TEXT ·sum256x4All(SB), NOSPLIT, $0-24
	BEGIN(2)
	BEGIN4
	ZERO256

loop:
	SUM256X4(ALL)
	JA loop
	END256

// func sum256short(w *uint64, n int) uint64
TEXT ·sum256short(SB), NOSPLIT, $0-24
	BEGIN(0)
	ZERO256

loop:
	VPADDQ 0(SI), Y0, Y0
	ADDQ $32, SI
	SUBQ $32, CX
	JA   loop
	END256
