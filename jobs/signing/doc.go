// Package signing makes and checks the signature of a model in the format of
// OpenSSF Model Signing (OMS) 1.0: a Sigstore bundle, which holds a DSSE
// envelope, which holds an in-toto statement that lists the digest of every
// file. The manifest of a sync has all these digests, so neither side reads the
// model again, and the statement's subject is the manifest's root digest.
//
// Of OMS's methods this is "key": a long-lived pair of elliptic-curve keys. Its
// algorithm registry allows P-256, P-384 and P-521.
package signing
