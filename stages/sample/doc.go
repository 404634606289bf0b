// Package sample turns logits into a token: repeat penalty, temperature, top-k, top-p, min-p, and a seeded draw.
//
// The nouns are Options, which say how, and Sampler, which holds the random stream and scratch memory of one
// text. Nothing here knows of the pipeline or of text.
package sample
