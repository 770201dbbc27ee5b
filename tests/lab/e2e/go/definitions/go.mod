module lease-webhook.example/e2e/definitions

go 1.26.0

require (
	github.com/cert-manager/cert-manager v1.21.2
	github.com/openreports/reports-api v0.2.1
	github.com/prometheus-operator/prometheus-operator v0.85.0
)
