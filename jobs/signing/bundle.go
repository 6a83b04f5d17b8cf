package signing

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	bundlev1 "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	commonv1 "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	"github.com/sigstore/protobuf-specs/gen/pb-go/dsse"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/kubectl-inference/kubectl-inference/jobs/core/record"
)

const (
	mediaType   = "application/vnd.dev.sigstore.bundle.v0.3+json"
	payloadType = "application/vnd.in-toto+json"
)

// Sign returns the signature of a sealed manifest's files as a bundle in JSON.
func Sign(manifest record.Manifest, signer *Signer) ([]byte, error) {
	content, err := newStatement(manifest)
	if err != nil {
		return nil, err
	}
	payload, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", manifest.ModelID, err)
	}
	signature, err := signer.sign(encode(payloadType, payload))
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", manifest.ModelID, err)
	}
	data, err := protojson.Marshal(&bundlev1.Bundle{
		MediaType: mediaType,
		VerificationMaterial: &bundlev1.VerificationMaterial{
			Content: &bundlev1.VerificationMaterial_PublicKey{PublicKey: &commonv1.PublicKeyIdentifier{Hint: signer.ID}},
		},
		Content: &bundlev1.Bundle_DsseEnvelope{DsseEnvelope: &dsse.Envelope{
			Payload: payload, PayloadType: payloadType, Signatures: []*dsse.Signature{{Sig: signature}},
		}},
	})
	if err != nil {
		return nil, fmt.Errorf("sign %s: %w", manifest.ModelID, err)
	}
	// protojson varies its white space on purpose.
	var indented bytes.Buffer
	if err := json.Indent(&indented, data, "", "  "); err != nil {
		return nil, fmt.Errorf("sign %s: %w", manifest.ModelID, err)
	}
	indented.WriteByte('\n')
	return indented.Bytes(), nil
}

// KeyID returns the id of the key that a bundle names, "" where it names none.
// Anybody can write any id: it helps to find the key, and proves nothing.
func KeyID(bundle []byte) string {
	read, err := parseBundle(bundle)
	if err != nil {
		return ""
	}
	return read.GetVerificationMaterial().GetPublicKey().GetHint()
}

// Inspect returns the id of the key that a bundle names and the root digest that
// its statement is of. Neither is proved without the key: Check does that.
func Inspect(bundle []byte) (keyID, root string, err error) {
	read, err := parseBundle(bundle)
	if err != nil {
		return "", "", err
	}
	content, err := parseStatement(read.GetDsseEnvelope().GetPayload())
	if err != nil {
		return "", "", err
	}
	return read.GetVerificationMaterial().GetPublicKey().GetHint(), content.root(), nil
}

// Unsigned lists the files of a manifest that a bundle's statement does not
// cover. OMS leaves git's own files out, so that anybody could add some.
func Unsigned(bundle []byte, manifest record.Manifest) ([]string, error) {
	read, err := parseBundle(bundle)
	if err != nil {
		return nil, err
	}
	content, err := parseStatement(read.GetDsseEnvelope().GetPayload())
	if err != nil {
		return nil, err
	}
	signed := make(map[string]bool, len(content.Predicate.Resources))
	for _, file := range content.Predicate.Resources {
		signed[file.Name] = true
	}
	var unsigned []string
	for _, file := range manifest.Files {
		if !signed[file.Path] {
			unsigned = append(unsigned, file.Path)
		}
	}
	return unsigned, nil
}

// Check verifies a bundle and compares what it signs with the manifest. An
// error means that the signature itself is not right; problems are differences
// between the manifest and a right signature.
func Check(bundle []byte, manifest record.Manifest, verifier *Verifier) (problems []record.ModelProblem, err error) {
	read, err := parseBundle(bundle)
	if err != nil {
		return nil, err
	}
	if hint := read.GetVerificationMaterial().GetPublicKey().GetHint(); hint != "" && hint != verifier.ID {
		return nil, fmt.Errorf("it was made with key %s, not with the given key %s", short(hint), short(verifier.ID))
	}
	envelope := read.GetDsseEnvelope()
	if !verifier.valid(encode(envelope.GetPayloadType(), envelope.GetPayload()), envelope.GetSignatures()[0].GetSig()) {
		return nil, errors.New("it is not by the given key, or was changed after signing")
	}
	content, err := parseStatement(envelope.GetPayload())
	if err != nil {
		return nil, err
	}
	return content.compare(manifest), nil
}

// parseBundle reads a bundle of the "key" method. Bundles before 1.1.0 hold the
// key itself in a field of the key's identifier that is not read here: the key
// to trust is the one that the user has.
func parseBundle(data []byte) (*bundlev1.Bundle, error) {
	var bundle bundlev1.Bundle
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, &bundle); err != nil {
		// The error of protojson varies on purpose, and quotes the input.
		return nil, errors.New("it is not a Sigstore bundle in JSON")
	}
	envelope := bundle.GetDsseEnvelope()
	switch {
	case !isBundle(bundle.GetMediaType()):
		return nil, fmt.Errorf("its media type %q is not that of a Sigstore bundle", bundle.GetMediaType())
	case envelope == nil || len(envelope.GetSignatures()) != 1:
		return nil, errors.New("it has no envelope with one signature")
	case envelope.GetPayloadType() != payloadType:
		return nil, fmt.Errorf("its payload is %q, not %s", envelope.GetPayloadType(), payloadType)
	case bundle.GetVerificationMaterial().GetCertificate() != nil, bundle.GetVerificationMaterial().GetX509CertificateChain() != nil:
		return nil, errors.New("it was made with a certificate, and only signatures by a key can be checked here")
	case bundle.GetVerificationMaterial().GetPublicKey() == nil:
		return nil, errors.New("it does not say that it was made with a key")
	}
	return &bundle, nil
}

func isBundle(mediaType string) bool {
	for _, version := range []string{"0.1", "0.2", "0.3"} {
		if mediaType == "application/vnd.dev.sigstore.bundle.v"+version+"+json" || mediaType == "application/vnd.dev.sigstore.bundle+json;version="+version {
			return true
		}
	}
	return false
}

// encode is DSSE's pre-authentication encoding, the bytes that are signed:
// https://github.com/secure-systems-lab/dsse/blob/master/protocol.md
func encode(payloadType string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(payloadType), payloadType, len(payload), payload)
}

func short(id string) string { return strings.ToValidUTF8(id[:min(len(id), 12)], "") }
