// Package route is how a model's router chooses experts: a row's raw scores to picks and weights.
// It is pure, and shared by the stage that routes on the host and by devices that route by
// themselves, so that both find the same bits.
package route
