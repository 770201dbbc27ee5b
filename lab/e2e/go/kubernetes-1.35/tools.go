//go:build tools

// Package tools pins one API server of the end-to-end run: the newest patch of 1.35 whose modules are published in full.
package tools

import _ "k8s.io/kubernetes/cmd/kube-apiserver"
