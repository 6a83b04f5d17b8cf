// Package openai is a client of the OpenAI inference API made for measuring: it
// stamps every token-bearing chunk, costs little per chunk, says in which phase
// a request failed, and never repeats one.
//
// All stamps come from one clock that the caller passes in.
package openai
