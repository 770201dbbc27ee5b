//go:build tools

// Package tools pins the validator that Krew's index runs on every manifest.
package tools

import _ "sigs.k8s.io/krew/cmd/validate-krew-manifest"
