// Package sample turns logits into a token: penalties, logit bias, temperature, top-k, top-p,
// min-p, and a seeded draw. It also gives the log-probabilities of a token and of the most likely
// ones.
//
// The nouns are Options, which say how, and Sampler, which holds the random stream and scratch
// memory of one text. Nothing here knows of the pipeline or of text.
//
// Everything runs in the goroutine that calls Next, which is the caller's own and never one of the
// pipeline's actors: a slow choice delays the text that wants it and no other. No path sorts the
// vocabulary. Greedy choice reads the logits once; top-k keeps a heap of K; top-p orders only
// tokens that can be among those it keeps.
package sample
