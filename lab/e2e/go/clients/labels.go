//go:build !v1alpha1

package main

import "k8s.io/client-go/tools/leaderelection/resourcelock"

// labeled has a lock put these labels on the lease with each write.
func labeled(lock *resourcelock.LeaseLock, labels map[string]string) *resourcelock.LeaseLock {
	lock.Labels = labels
	return lock
}
