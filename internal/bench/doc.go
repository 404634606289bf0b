// Package bench measures how fast an engine reads prompts and decodes.
//
// A measurement runs texts: each is a prompt of its own and tokens that are decoded greedily after
// it. Several texts run at once, and count together. There are four ways to measure:
//
//   - Runs measures the same cases several times, warm or from empty expert slots, and compares the
//     figures with the memory's bandwidth and with a forecast.
//   - Soak lets texts decode for a long time and looks for what becomes worse.
//   - Mix lets one text decode while another reads a prompt, for several shares for prompts.
//   - Sweep races settings against the defaults and tests whether the best of them is faster.
//
// The results are plain values with the names that the command prints as JSON. Where the context
// ends after something was measured, a result says what there is and that it was interrupted, and
// there is no error. How results look for people is for the command.
package bench
