//go:build tools

// Package tools pins the Prometheus, and the promtool, that the alerts are tested with.
package tools

import (
	_ "github.com/prometheus/prometheus/cmd/prometheus"
	_ "github.com/prometheus/prometheus/cmd/promtool"
)
