package main

import (
	"fmt"

	"github.com/moeflux/moeflux-actor/internal/forecast"
)

// forecastText describes the forecast.
func forecastText(f *forecast.Forecast) string {
	s := fmt.Sprintf("%.2f to %.2f tokens/s, bound by %s: a token computes for %.1f ms or more", f.Low, f.TokensPerSecond, f.Bound, 1e3*f.ComputeSeconds)
	if f.DiskSeconds > 0 {
		s += fmt.Sprintf(" and reads for %.1f ms", 1e3*f.DiskSeconds)
	}
	return s + fmt.Sprintf("; kept %.1f%%, %s", 100*f.KeptRate, f.KeptRateFrom)
}
