//go:build tools

// Package tools pins the oldest API server of the end-to-end run: the last line that serves LeaseCandidate v1alpha1.
// Later 1.31 patches lack published staging modules, so they cannot be built from modules alone.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
