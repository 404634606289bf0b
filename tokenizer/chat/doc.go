// Package chat turns conversations into prompts and answers back into messages. It owns where a
// model's chat template is found, what a message is, how a turn ends, and which part of an answer
// is reasoning.
//
// Load makes a Template from a model directory; Template.Prompt gives the prompt of messages and of
// tools, as this template takes them. A Reasoning tells the reasoning of an answer from its content
// while the text comes in. The template language itself is package jinja; calls of functions are
// read by package tools.
package chat
