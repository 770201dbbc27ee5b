// Package revision makes a fencing token without stamps: the resourceVersion at which this process held the lease.
package revision

import (
	"fmt"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
)

// Of returns the token of this process, 18 digits. Get the lease in OnStartedLeading; identity is that of its lock, which
// no other process may ever use.
//
// Read it once, and send it with every write until the context ends. Never read it again for a write.
func Of(lease *coordinationv1.Lease, identity string) (string, error) {
	if holder := lease.Spec.HolderIdentity; identity == "" || holder == nil || *holder != identity {
		return "", fmt.Errorf("not leading: the lease is held by another process, or by none")
	}
	number, err := strconv.ParseUint(lease.ResourceVersion, 10, 63)
	if err != nil || len(lease.ResourceVersion) > 18 {
		return "", fmt.Errorf("not a version that can be compared: %q", lease.ResourceVersion)
	}
	return fmt.Sprintf("%018d", number), nil
}
