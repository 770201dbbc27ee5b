// A validating webhook for Leases and LeaseCandidates as Go engineers ship one: controller-runtime's server, its decoder into the typed
// API objects, and its metrics. The rules are those of lease-webhook's standard policy that can speak about one of them.
package main

import (
	"context"
	"crypto/tls"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

type leaseHandler struct {
	decoder admission.Decoder
}

func (h *leaseHandler) Handle(_ context.Context, request admission.Request) admission.Response {
	if request.Resource.Resource == "leasecandidates" {
		var candidate, old coordinationv1beta1.LeaseCandidate
		if err := h.decode(request, &candidate, &old); err != nil {
			return admission.Errored(http.StatusBadRequest, err)
		}
		return answer(request, evaluateCandidate(&request, &candidate, &old))
	}
	var lease, old coordinationv1.Lease
	if err := h.decode(request, &lease, &old); err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	return answer(request, evaluate(&change{request: &request, lease: &lease, old: &old}))
}

func (h *leaseHandler) decode(request admission.Request, object, old runtime.Object) error {
	if request.Operation != admissionv1.Delete {
		if err := h.decoder.Decode(request, object); err != nil {
			return err
		}
	}
	if request.Operation != admissionv1.Create {
		return h.decoder.DecodeRaw(request.OldObject, old)
	}
	return nil
}

func answer(request admission.Request, found *findings) admission.Response {
	switch {
	case len(found.invalid) > 0:
		kind := schema.GroupKind{Group: request.Kind.Group, Kind: request.Kind.Kind}
		status := apierrors.NewInvalid(kind, request.Name, found.invalid).Status()
		return admission.Response{AdmissionResponse: admissionv1.AdmissionResponse{Result: &status}}
	case len(found.forbidden) > 0:
		return admission.Denied(found.forbidden.ToAggregate().Error()).WithWarnings(found.warnings...)
	}
	return admission.Allowed("").WithWarnings(found.warnings...)
}

func main() {
	port := flag.Int("port", 9443, "TLS port")
	certificates := flag.String("tls-dir", "certs", "directory with tls.crt and tls.key")
	metrics := flag.String("metrics", "127.0.0.1:0", "address of the metrics server")
	flag.Parse()
	ctrllog.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	scheme := runtime.NewScheme()
	exitOn(coordinationv1.AddToScheme(scheme))
	exitOn(coordinationv1beta1.AddToScheme(scheme))
	server := webhook.NewServer(webhook.Options{
		Host: "127.0.0.1", Port: *port, CertDir: *certificates,
		TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }},
	})
	server.Register("/validate", &webhook.Admission{Handler: &leaseHandler{decoder: admission.NewDecoder(scheme)}})
	metricsServer, err := metricsserver.NewServer(metricsserver.Options{BindAddress: *metrics}, nil, nil)
	exitOn(err)
	go func() { exitOn(metricsServer.Start(ctx)) }()
	exitOn(server.Start(ctx))
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
