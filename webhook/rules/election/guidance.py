"""Guidance for the rules about what the API server lets through."""

from collections.abc import Mapping
from typing import Final

from webhook.rules.rule import Guidance

_COORDINATED: Final = "Backup tools that restore objects as an ordinary user (Velero), and scripts that copy a Lease."

GUIDANCE: Final[Mapping[str, Guidance]] = {
    "time-unreadable": Guidance(
        why="The API server accepts `9999-12-31T23:59:59.999999-01:00` and stores year 10000, which no JSON client can "
        "decode and no patch can repair. A running kube-scheduler exited after one such write.",
        who="Attackers, and tests of limits. No known client writes such a time.",
        fix="Write a time between the years 0000 and 9999 in UTC. A stored one is repaired by replacing the object.",
    ),
    "renewal-stamp-tampered": Guidance(
        why="The stamps in managedFields are the only evidence of when a lease was renewed. Without them a live lease "
        "looks expired, or an expired one live.",
        who="Clients that send back an object whose `metadata.managedFields` was edited or comes from an older copy: "
        "Velero restoring over an existing Lease, `kubectl replace` of a saved file, kubectl's migration of a manifest "
        "with `renewTime` to server-side apply.",
        fix="Delete `metadata.managedFields` from the file or the request; the API server then keeps its own.",
    ),
    "lease-without-stamps": Guidance(
        why="Without a stamp only the holder's own clock says whether the lease is live, and it may be wrong.",
        who="Leases whose managedFields were emptied before the webhook was installed. The writer did nothing wrong.",
        fix="Restore the stamps: `kubectl apply --server-side` of apiVersion, kind, name and namespace only. That "
        "stamps the lease at that moment, so a takeover waits one duration.",
    ),
    "takeover-before-expiry": Guidance(
        why="Two processes believe that they lead until the old leader notices, twelve seconds with the defaults of "
        "client-go.",
        who="Electors that compare `renewTime` with their own clock while it runs ahead; Apache Camel, which takes "
        "over as soon as the leader's pod is gone; Istio's default revision; two programs that share one lease.",
        fix="Wait until the lease has expired and retry, as client-go does, or ask the holder to release it. Keep "
        "clocks synchronized. Give each program a lease of its own.",
    ),
    "takeover-by-node": Guidance(
        why="A kubelet's credentials reach leases only to report that the node is alive. One compromised node must not "
        "take a controller's lease.",
        who="No known client. In kube-node-lease a node may put its own name back.",
        fix="Run the elector under a service account instead of the node's credentials.",
    ),
    "takeover-across-namespaces": Guidance(
        why="A service account with a broad role can take the lease of any controller in the cluster.",
        who="Operators that elect in a namespace other than their own (cert-manager in kube-system), but only if they "
        "take a live lease; this rule never denies a takeover after expiry.",
        fix="Wait until the lease has expired. If two installations share the lease, give each its own.",
    ),
    "renew-time-in-future": Guidance(
        why="Clients that compare `renewTime` with their own clock wait for it, so a dead holder keeps the lease.",
        who="kubernetes_asyncio on a machine east of Greenwich, which writes local time as UTC (up to 14 h, a "
        "warning); machines whose clock runs ahead.",
        fix="Correct the client's clock. If the difference is whole hours, the client writes local time as UTC: run it "
        "with `TZ=UTC`.",
    ),
    "renew-time-backwards": Guidance(
        why="A renewTime that falls makes a live lease look expired to clients that trust it.",
        who="Machines whose clock is set back. Correcting a clock must not cause an outage, so no preset denies it.",
        fix="Keep clocks synchronized.",
    ),
    "duration-too-long": Guidance(
        why="A dead holder keeps the lease for the whole duration: 2147483647 s are 68 years.",
        who="Durations in milliseconds instead of seconds; leases used as locks without an end.",
        fix="Configure seconds. The longest default of a known client is 3600.",
    ),
    "duration-shortened": Guidance(
        why="Cutting the duration, or removing `renewTime`, makes a live lease count as expired, the first step of a "
        "steal.",
        who="People who repair a lease by hand. No known client.",
        fix="Renew in the same write (a renewal that lowers the duration is legal), or release the lease instead.",
    ),
    "transitions-jump": Guidance(
        why="client-go writes the old count plus 1 as a 32-bit number. After 2147483647 it writes a negative one, "
        "which the API server refuses: no takeover succeeds again.",
        who="client-go's MultiLock (until 1.27), which copies a count from another object: small jumps, a warning.",
        fix="Write the old count plus 1.",
    ),
    "transitions-decrease": Guidance(
        why="The count says how often the lease changed hands; monitoring relies on it.",
        who="fabric8 up to 6.0, which restarts at 0; kubert, which counts to 65535; Pekko, which removes the count.",
        fix="Upgrade the client, or turn the rule off.",
    ),
    "transitions-mismatch": Guidance(
        why="A count that does not follow the holder hides takeovers from monitoring.",
        who="The coordinated election and both Python clients, which change the holder and leave the count as it is.",
        fix="Nothing to fix in most cases: the rule is for audits.",
    ),
    "acquire-time-changed": Guidance(
        why="`acquireTime` says since when the holder has led.",
        who="Pekko, which writes it at each heartbeat; Java clients, which cut it to milliseconds.",
        fix="Nothing to fix in most cases: the rule is for audits.",
    ),
    "preferred-holder-writer": Guidance(
        why="A client-go holder that sees `preferredHolder` stops renewing, so that the lease expires.",
        who=_COORDINATED,
        fix="Leave `preferredHolder` out of what you restore, or exempt the tool for this rule on CREATE.",
    ),
    "strategy-writer": Guidance(
        why="`strategy` hands the lease to the API server's coordinated election, which then chooses the holder.",
        who=_COORDINATED,
        fix="Leave `strategy` out of what you restore, or exempt the tool for this rule on CREATE.",
    ),
    "foreign-release": Guidance(
        why="Releasing the lease of another pod is the first step of a steal in two writes.",
        who="Electors whose holder identity does not begin with the pod's name, such as kube-vip and host-network "
        "pods.",
        fix="Delete the pod instead, or wait until its lease expires. Set the elector's identity to the pod's name.",
    ),
    "foreign-release-across-namespaces": Guidance(
        why="As for `foreign-release`; the name of the writer's pod proves nothing in another namespace.",
        who="No known client releases a lease outside of its service account's namespace.",
        fix="Release from the holder itself.",
    ),
    "holder-identity-shape": Guidance(
        why="The identity is shown in every `kubectl get lease` and copied into every log; the API server accepts "
        "megabytes of any text.",
        who="No known elector; for example, identities read from a file together with the newline at its end.",
        fix="Use the pod's name, an underscore and a UUID; trim the value.",
    ),
    "holder-identity-mismatch": Guidance(
        why="An identity that begins with the pod's name can be traced to the pod that wrote it.",
        who="kube-vip, kwok, and pods on the host network, whose host name is the node's.",
        fix="Set the elector's identity from the pod's name (downward API), or turn the rule off for those leases.",
    ),
    "identity-binding": Guidance(
        why="The holder string is not an identity. The binding says who may write the lease. Other rules deny a "
        "renewal for a value or a change that it brings; an ordinary renewal is denied by a binding only.",
        who="Writers that are missing from the binding: a second operator, a backup tool, a person with kubectl.",
        fix="Ask the owner of the webhook's policy to add the writer to the binding, if it belongs there.",
    ),
    "node-lease-holder": Guidance(
        why="NodeRestriction checks the name and the namespace of the lease and not its spec, so a node could write "
        "any holder into it.",
        who="No known kubelet.",
        fix="Write the node's own name.",
    ),
    "node-lease-writer": Guidance(
        why="Whoever can write a node's lease can make a failed node look healthy.",
        who="kwok, virtual-kubelet and KubeEdge, which write for their nodes.",
        fix="Exempt that component for this rule.",
    ),
    "apiserver-lease-writer": Guidance(
        why="These leases say which API servers are running, and controllers of the control plane rely on them.",
        who="No known client.",
        fix="Leave the lease to its API server; it repairs or recreates it.",
    ),
    "live-lease-deleted": Guidance(
        why="After a live lease is deleted, another process can create it and lead at the same time as the old leader.",
        who="`helm uninstall` and `kubectl delete` while the program runs; konnectivity and medik8s, which delete "
        "their own leases; a controller that removes its finalizer from a deleted lease that is held again.",
        fix="Stop the holder first, and delete when its lease has expired or was released.",
    ),
    "owner-reference-added": Guidance(
        why="The garbage collector deletes an object whose owner does not exist. With `update` alone, this deletes a "
        "live lease.",
        who="Operators that adopt a lease after its elector created it.",
        fix="Set the owner when the lease is created, or let a writer that a binding lists add it.",
    ),
    "ping-time-writer": Guidance(
        why="A candidate that is pinged must renew; forged pings disturb the coordinated election.",
        who="Backup tools that restore a LeaseCandidate as an ordinary user (Velero).",
        fix="Leave `pingTime` out of what you restore, or exempt the tool for this rule on CREATE.",
    ),
    "candidate-renew-time-in-future": Guidance(
        why="Such a candidate seems to have answered every ping, and is never removed.",
        who="Machines whose clock runs ahead by more than 10 s (a warning).",
        fix="Correct the client's clock.",
    ),
    "candidate-renew-time-backwards": Guidance(
        why="A candidate whose renewTime falls may be removed although it still runs.",
        who="Machines whose clock is set back.",
        fix="Keep clocks synchronized.",
    ),
    "candidate-changed": Guidance(
        why="The election chose by the old versions and strategy; a change makes its choice wrong.",
        who="Manifests applied again after an upgrade. client-go's candidates never change them.",
        fix="Delete the LeaseCandidate and create it again.",
    ),
    "candidate-strategy-conflict": Guidance(
        why="Candidates of the same version that disagree leave the election without a strategy: no leader is elected.",
        who="Two releases of one component that run side by side with different strategies.",
        fix="Give all candidates of the lease the same strategy.",
    ),
}
