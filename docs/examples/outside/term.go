// Package term reads the term of a lease: a number that a store outside Kubernetes can compare. It needs docs/stamp.md.
package term

import (
	"fmt"
	"strconv"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Of returns the term of this pod, 18 digits; podUID is metadata.uid of the downward API.
//
// Read it once, in OnStartedLeading, and send it with every write until the context ends. Never read it again for a
// write: whoever leads then may be another pod.
func Of(lease *coordinationv1.Lease, suffix, podUID string) (string, error) {
	writer := lease.Annotations["lease-webhook/writer-"+suffix]
	if uid, _, _ := strings.Cut(writer, " "); uid != podUID || lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" {
		return "", fmt.Errorf("not leading: the lease was written by [%s]", writer)
	}
	if term := lease.Annotations["lease-webhook/term-"+suffix]; term != "" {
		return padded(term, 0)
	}
	// A lease that was created and not renewed yet has no term; its first renewal stamps this same number.
	return padded(lease.ResourceVersion, 1)
}

func padded(text string, less int64) (string, error) {
	number, err := strconv.ParseInt(text, 10, 64)
	return fmt.Sprintf("%018d", number-less), err
}
