//go:build !noasm

#include "textflag.h"

// func relax()
TEXT ·relax(SB), NOSPLIT|NOFRAME, $0-0
	PAUSE
	RET
