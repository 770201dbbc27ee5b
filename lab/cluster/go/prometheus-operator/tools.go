//go:build tools

// Package tools pins the operator that reads our ServiceMonitor and our rules.
package tools

import _ "github.com/prometheus-operator/prometheus-operator/cmd/operator"
