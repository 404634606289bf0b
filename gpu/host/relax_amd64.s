//go:build !noasm

#include "textflag.h"

// func relax()
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0-0
	PAUSE
	RET

// func fetch(at uintptr, lines int)
TEXT ·fetch(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ at+0(FP), AX
	MOVQ lines+8(FP), CX
line:
	PREFETCHT1 (AX)
	ADDQ $64, AX
	DECQ CX
	JNZ line
	RET
