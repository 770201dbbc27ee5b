# The rules of lease-webhook's standard policy that can speak about a Lease, as a person writing Rego would put them.
package lease

main := {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}

response := {"uid": input.request.uid, "allowed": true, "warnings": [text | some text in warnings]} if {
	count(denials) == 0
}

response := {
	"uid": input.request.uid,
	"allowed": false,
	"status": {"code": code, "reason": "Invalid", "message": concat("; ", denials)},
} if {
	count(denials) > 0
}

code := 422 if count(invalid) > 0

else := 403

denials := {text | some text in invalid} | {text | some text in forbidden}

request := input.request

update if request.operation == "UPDATE"

write if request.operation in {"CREATE", "UPDATE"}

spec := object.get(request.object, "spec", {})

old := object.get(request.oldObject, "spec", {}) if update

else := {}

new_fields := object.get(request.object.metadata, "managedFields", [])

old_fields := object.get(request.oldObject.metadata, "managedFields", []) if update

exempt if request.userInfo.username == "system:apiserver"

exempt if "system:masters" in request.userInfo.groups

touched if not update

touched if spec != old

holder := object.get(spec, "holderIdentity", "")

old_holder := object.get(old, "holderIdentity", "")

transitions := object.get(spec, "leaseTransitions", 0)

old_transitions := object.get(old, "leaseTransitions", 0)

now := time.now_ns()

second := 1000000000

day := 86400 * second

# Field rules.
dns_label := `[a-z0-9]([-a-z0-9]*[a-z0-9])?`

qualified := `^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`

invalid contains "metadata.name: must be a DNS-1123 subdomain" if {
	write
	not regex.match($`^{dns_label}(\.{dns_label})*$`, request.object.metadata.name)
}

invalid contains "metadata.namespace: must be a DNS-1123 label" if {
	write
	not regex.match($`^{dns_label}$`, request.object.metadata.namespace)
}

invalid contains $"metadata.{name}: field is immutable" if {
	update
	some name in ["name", "namespace", "uid", "creationTimestamp"]
	request.object.metadata[name] != request.oldObject.metadata[name]
}

invalid contains $"metadata.labels: {key} must be a qualified name" if {
	write
	some key, value in request.object.metadata.labels
	not label_key(key)
}

invalid contains $"metadata.labels: the value of {key} must be a label value" if {
	write
	some key, value in request.object.metadata.labels
	value != ""
	not regex.match(qualified, value)
}

label_key(key) if regex.match(`^([a-z0-9.-]+/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`, key)

invalid contains "spec.leaseDurationSeconds: must be greater than 0" if spec.leaseDurationSeconds <= 0

invalid contains "spec.leaseTransitions: must be greater than or equal to 0" if spec.leaseTransitions < 0

invalid contains "spec.strategy: must be a qualified name" if {
	spec.strategy != "OldestEmulationVersion"
	not label_key(spec.strategy)
}

invalid contains "spec.preferredHolder: may only be specified when strategy is defined" if {
	spec.preferredHolder != ""
	object.get(spec, "strategy", "") == ""
}

# What the API server's stamps prove.
stamps(entries, owned) := [time.parse_rfc3339_ns(entry.time) |
	some entry in entries
	entry.fieldsV1["f:spec"][owned]
]

renewal_before := max(stamps(old_fields, "f:renewTime"))

renewal_after := max(stamps(new_fields, "f:renewTime"))

holder_stamps := stamps(new_fields, "f:holderIdentity")

written := min(holder_stamps) if count(holder_stamps) > 0

else := now

live if {
	old_holder != ""
	duration := old.leaseDurationSeconds * second
	tolerance := min([2 * second, duration / 5])
	(written - renewal_before) + tolerance < duration
}

tampered if {
	count(old_fields) > 0
	count(new_fields) == 0
}

tampered if {
	spec.renewTime == old.renewTime
	renewal_before
	not renewal_after
}

tampered if {
	spec.renewTime == old.renewTime
	renewal_after < renewal_before - (2 * second)
}

# Policy rules.
forbidden contains "metadata.managedFields: this write removes or changes the time of the last renewal" if {
	update
	not exempt
	tampered
}

judged if {
	write
	not exempt
	touched
}

stolen if {
	judged
	update
	holder != ""
	holder != old_holder
	live
}

foreign if {
	startswith(request.userInfo.username, "system:serviceaccount:")
	not startswith(request.userInfo.username, $"system:serviceaccount:{request.namespace}:")
}

node if "system:nodes" in request.userInfo.groups

forbidden contains "spec.holderIdentity: a service account of another namespace may not take a live lease" if {
	stolen
	foreign
}

forbidden contains "spec.holderIdentity: a node may not take a live lease" if {
	stolen
	node
	request.namespace != "kube-node-lease"
}

forbidden contains "spec.holderIdentity: a node may only hold its own lease" if {
	judged
	update
	node
	request.namespace == "kube-node-lease"
	holder != old_holder
	holder != request.name
}

forbidden contains "spec.strategy: only the API server sets a strategy" if {
	judged
	spec.strategy != object.get(old, "strategy", "")
}

forbidden contains "spec.preferredHolder: only the API server sets a preferred holder" if {
	judged
	spec.preferredHolder != object.get(old, "preferredHolder", "")
}

invalid contains "spec.renewTime: must not lie more than a day ahead" if {
	judged
	time.parse_rfc3339_ns(spec.renewTime) > now + day
}

invalid contains "spec.leaseDurationSeconds: must not be longer than a year" if {
	judged
	spec.leaseDurationSeconds > 31536000
	spec.leaseDurationSeconds != object.get(old, "leaseDurationSeconds", 0)
}

invalid contains "spec.leaseTransitions: must not jump so far" if {
	judged
	transitions - old_transitions > 1
	transitions >= 1000000000
}

invalid contains "spec.holderIdentity: must be at most 4096 bytes without control characters" if {
	judged
	holder != old_holder
	bad_shape
}

bad_shape if count(holder) > 4096

bad_shape if regex.match(`[[:cntrl:]]`, holder)

warnings contains "takeover-before-expiry: the lease is held by another" if {
	stolen
	not foreign
	not node
}

warnings contains "duration-shortened: spec.leaseDurationSeconds is lowered without a renewal" if {
	judged
	update
	holder == old_holder
	spec.renewTime == old.renewTime
	spec.leaseDurationSeconds < old.leaseDurationSeconds
}

warnings contains "duration-too-long: spec.leaseDurationSeconds is longer than a day" if {
	judged
	spec.leaseDurationSeconds > 86400
	spec.leaseDurationSeconds != object.get(old, "leaseDurationSeconds", 0)
}

warnings contains "transitions-jump: spec.leaseTransitions rises by more than 1" if {
	judged
	update
	transitions - old_transitions > 1
}
