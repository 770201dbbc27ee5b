// Verify a Sigstore bundle by a public key, without a transparency log: verify KEY BUNDLE ARTIFACT.
package main

import (
	"crypto"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

type forever struct{ signature.Verifier }

func (forever) ValidAtTime(time.Time) bool { return true }

func check(keyFile, bundleFile, artifact string) (*verify.VerificationResult, error) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		return nil, err
	}
	public, err := cryptoutils.UnmarshalPEMToPublicKey(text)
	if err != nil {
		return nil, err
	}
	verifier, err := signature.LoadVerifier(public, crypto.SHA256)
	if err != nil {
		return nil, err
	}
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) {
		return forever{verifier}, nil
	})
	found, err := bundle.LoadJSONFromPath(bundleFile)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(artifact)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	entity, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps())
	if err != nil {
		return nil, err
	}
	return entity.Verify(found, verify.NewPolicy(verify.WithArtifact(file), verify.WithKey()))
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: verify KEY BUNDLE ARTIFACT")
		os.Exit(2)
	}
	result, err := check(os.Args[1], os.Args[2], os.Args[3])
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println("verified:", os.Args[3])
	// A signature of a file states nothing about it; provenance does.
	if result.Statement != nil {
		text, _ := json.Marshal(result.Statement)
		fmt.Println(string(text))
	}
}
