// Package clienttest drives the server with the clients that people have: the Go libraries of
// OpenAI and Anthropic, their JavaScript ones (clients.mjs), the conformance suite llmprobe, and
// the cases of Open Responses (openresponses.mjs; its own suite is in no registry). It is a module
// of its own, so that nobody who builds the program fetches them; .ci/run has a step for it,
// clients, which installs package.json's part with npm. The Go libraries, which take longer to
// build than all of the program, need the tag goclients, as the step clients-full gives it.
package clienttest
