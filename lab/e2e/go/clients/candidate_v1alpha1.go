//go:build v1alpha1

package main

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
)

// stand keeps a LeaseCandidate alive, as a coordinated component of 1.31 did, when candidates were v1alpha1.
func (s settings) stand(ctx context.Context, config *rest.Config, namespace string) error {
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	candidate, _, err := leaderelection.NewCandidate(clientset, namespace, s.identity, s.lease, s.binary, s.emulation,
		[]coordinationv1.CoordinatedLeaseStrategy{coordinationv1.OldestEmulationVersion})
	if err != nil {
		return err
	}
	candidate.Run(ctx)
	return nil
}
