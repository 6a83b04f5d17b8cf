// Package hub is a stand-in for the Hugging Face Hub: a real HTTP server that
// speaks the part of its protocol a downloader needs, with genuine safetensors
// models that it generates, and with switches for the faults that users report.
//
// Two handlers make one Hub, as in production: the Hub itself answers the API
// and `/resolve/`, and sends large files on to signed, expiring URLs of the
// CDN, which is another origin and must never see the user's token.
package hub
