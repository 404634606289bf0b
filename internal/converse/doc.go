// Package converse is a conversation with a person at a terminal: what they type, the commands that
// begin with a slash, Ctrl-C, and how answers look. The model is behind Conversation.Ask.
package converse
