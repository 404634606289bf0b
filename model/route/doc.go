// Package route chooses experts as a model's router does: it turns a row's raw scores into picks
// and weights.
// It is pure, and shared by the stage that routes on the host and by devices that route by
// themselves, so that both find the same bits.
package route
