//go:build v1alpha1

package main

import "k8s.io/client-go/tools/leaderelection/resourcelock"

// labeled returns the lock as it is: client-go of that time knows no labels.
func labeled(lock *resourcelock.LeaseLock, _ map[string]string) *resourcelock.LeaseLock {
	return lock
}
