// Package pagetest drives the server's page in a real browser, a headless Chromium. It is a module
// of its own, so that nobody who builds the program fetches what drives browsers; .ci/run has a
// step for it.
package pagetest
