package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	admissionv1 "k8s.io/api/admission/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

const (
	day  = 24 * time.Hour
	year = 365 * day
)

type change struct {
	request    *admission.Request
	lease, old *coordinationv1.Lease
}

type findings struct {
	invalid, forbidden field.ErrorList
	warnings           []string
}

func (f *findings) forbid(path, detail string) {
	f.forbidden = append(f.forbidden, field.Forbidden(field.NewPath(path), detail))
}

func (f *findings) warn(format string, args ...any) {
	f.warnings = append(f.warnings, fmt.Sprintf(format, args...))
}

var specPath = field.NewPath("spec")

// evaluate runs the field rules of kube-apiserver and then the policy rules.
func evaluate(c *change) *findings {
	found := &findings{}
	if c.request.Operation != admissionv1.Delete {
		found.invalid = fieldErrors(c)
	}
	policyErrors(c, found)
	return found
}

func fieldErrors(c *change) field.ErrorList {
	meta := field.NewPath("metadata")
	all := apivalidation.ValidateObjectMeta(&c.lease.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	if c.request.Operation == admissionv1.Update {
		all = append(all, apivalidation.ValidateObjectMetaUpdate(&c.lease.ObjectMeta, &c.old.ObjectMeta, meta)...)
	}
	spec := &c.lease.Spec
	if spec.LeaseDurationSeconds != nil && *spec.LeaseDurationSeconds <= 0 {
		all = append(all, field.Invalid(specPath.Child("leaseDurationSeconds"), *spec.LeaseDurationSeconds, "must be greater than 0"))
	}
	if spec.LeaseTransitions != nil && *spec.LeaseTransitions < 0 {
		all = append(all, field.Invalid(specPath.Child("leaseTransitions"), *spec.LeaseTransitions, "must be greater than or equal to 0"))
	}
	if spec.Strategy != nil && *spec.Strategy != coordinationv1.OldestEmulationVersion {
		for _, text := range utilvalidation.IsQualifiedName(string(*spec.Strategy)) {
			all = append(all, field.Invalid(specPath.Child("strategy"), *spec.Strategy, text))
		}
	}
	if spec.PreferredHolder != nil && *spec.PreferredHolder != "" && (spec.Strategy == nil || *spec.Strategy == "") {
		all = append(all, field.Forbidden(specPath.Child("preferredHolder"), "may only be specified when strategy is defined"))
	}
	return all
}

// evaluateCandidate runs the field rules of kube-apiserver on a LeaseCandidate.
func evaluateCandidate(request *admission.Request, candidate, old *coordinationv1beta1.LeaseCandidate) *findings {
	found := &findings{}
	if request.Operation == admissionv1.Delete {
		return found
	}
	meta := field.NewPath("metadata")
	found.invalid = apivalidation.ValidateObjectMeta(&candidate.ObjectMeta, true, apivalidation.NameIsDNSSubdomain, meta)
	if request.Operation == admissionv1.Update {
		found.invalid = append(found.invalid, apivalidation.ValidateObjectMetaUpdate(&candidate.ObjectMeta, &old.ObjectMeta, meta)...)
		if candidate.Spec.LeaseName != old.Spec.LeaseName {
			found.invalid = append(found.invalid, field.Invalid(specPath.Child("leaseName"), candidate.Spec.LeaseName, "field is immutable"))
		}
	}
	if candidate.Spec.LeaseName == "" {
		found.invalid = append(found.invalid, field.Required(specPath.Child("leaseName"), ""))
	}
	for name, version := range map[string]string{"binaryVersion": candidate.Spec.BinaryVersion, "emulationVersion": candidate.Spec.EmulationVersion} {
		if _, err := utilversion.ParseSemantic(version); version != "" && err != nil {
			found.invalid = append(found.invalid, field.Invalid(specPath.Child(name), version, "must be a semantic version"))
		}
	}
	for _, text := range utilvalidation.IsQualifiedName(string(candidate.Spec.Strategy)) {
		found.invalid = append(found.invalid, field.Invalid(specPath.Child("strategy"), candidate.Spec.Strategy, text))
	}
	return found
}

func text[T ~string](value *T) string {
	if value == nil {
		return ""
	}
	return string(*value)
}

func number(value *int32) int64 {
	if value == nil {
		return 0
	}
	return int64(*value)
}

func moment(value *metav1.MicroTime) time.Time {
	if value == nil {
		return time.Time{}
	}
	return value.Time
}

// seenAt is the latest stamp among the entries that own a field of spec.
func seenAt(meta *metav1.ObjectMeta, owned string) (latest, earliest time.Time) {
	for i := range meta.ManagedFields {
		entry := &meta.ManagedFields[i]
		if entry.Time == nil || entry.FieldsV1 == nil || !strings.Contains(string(entry.FieldsV1.Raw), owned) {
			continue
		}
		if latest.IsZero() || entry.Time.After(latest) {
			latest = entry.Time.Time
		}
		if earliest.IsZero() || entry.Time.Time.Before(earliest) {
			earliest = entry.Time.Time
		}
	}
	return latest, earliest
}

func live(c *change, now time.Time) bool {
	old := &c.old.Spec
	if text(old.HolderIdentity) == "" || old.LeaseDurationSeconds == nil || old.RenewTime == nil {
		return false
	}
	duration := time.Duration(*old.LeaseDurationSeconds) * time.Second
	seen, _ := seenAt(&c.old.ObjectMeta, `"f:renewTime"`)
	if seen.IsZero() {
		seen = old.RenewTime.Time
	}
	_, written := seenAt(&c.lease.ObjectMeta, `"f:holderIdentity"`)
	if written.IsZero() {
		written = now
	}
	return written.Sub(seen)+min(2*time.Second, duration/5) < duration
}

func tampered(c *change, now time.Time) bool {
	if len(c.old.ManagedFields) > 0 && len(c.lease.ManagedFields) == 0 {
		return true
	}
	renewed := moment(c.lease.Spec.RenewTime)
	if renewed.IsZero() || !renewed.Equal(moment(c.old.Spec.RenewTime)) {
		return false
	}
	before, _ := seenAt(&c.old.ObjectMeta, `"f:renewTime"`)
	after, _ := seenAt(&c.lease.ObjectMeta, `"f:renewTime"`)
	if before.IsZero() {
		return false
	}
	return after.IsZero() || after.Before(before.Add(-2*time.Second)) || (after.After(before) && after.After(now.Add(time.Hour)))
}

func policyErrors(c *change, found *findings) {
	user := &c.request.UserInfo
	if user.Username == "system:apiserver" || slices.Contains(user.Groups, "system:masters") {
		return
	}
	now := time.Now()
	switch c.request.Operation {
	case admissionv1.Delete:
		return
	case admissionv1.Update:
		if tampered(c, now) {
			found.forbid("metadata.managedFields", "this write removes or changes the time of the last renewal")
		}
		if apiequality.Semantic.DeepEqual(c.lease.Spec, c.old.Spec) {
			return
		}
		holderErrors(c, found, now)
	}
	valueErrors(c, found, now)
}

func holderErrors(c *change, found *findings, now time.Time) {
	spec, old, user := &c.lease.Spec, &c.old.Spec, &c.request.UserInfo
	holder, before := text(spec.HolderIdentity), text(old.HolderIdentity)
	inNodeNamespace := c.request.Namespace == "kube-node-lease"
	node := slices.Contains(user.Groups, "system:nodes")
	if holder == before {
		if before != "" && number(spec.LeaseDurationSeconds) < number(old.LeaseDurationSeconds) && moment(spec.RenewTime).Equal(moment(old.RenewTime)) {
			found.warn("duration-shortened: spec.leaseDurationSeconds is lowered without a renewal")
		}
		return
	}
	if inNodeNamespace && node && holder != c.request.Name {
		found.forbid("spec.holderIdentity", "a node may only hold its own lease")
	}
	if before == "" || !live(c, now) {
		return
	}
	namespace, foreign := "", false
	if rest, ok := strings.CutPrefix(user.Username, "system:serviceaccount:"); ok {
		namespace, _, _ = strings.Cut(rest, ":")
		foreign = namespace != c.request.Namespace
	}
	if holder == "" {
		pod := ""
		if names := user.Extra["authentication.kubernetes.io/pod-name"]; len(names) > 0 {
			pod = names[0]
		}
		if pod != "" && !strings.HasPrefix(before, pod) && foreign {
			found.warn("foreign-release-across-namespaces: the lease is held by %q", before)
		}
		return
	}
	switch {
	case node && !(inNodeNamespace && holder == c.request.Name):
		found.forbid("spec.holderIdentity", "a node may not take a live lease")
	case foreign:
		found.forbid("spec.holderIdentity", "a service account of another namespace may not take a live lease")
	default:
		found.warn("takeover-before-expiry: the lease is held by %q", before)
	}
}

func valueErrors(c *change, found *findings, now time.Time) {
	spec, old := &c.lease.Spec, &c.old.Spec
	renewed, renewedBefore := moment(spec.RenewTime), moment(old.RenewTime)
	if ahead := renewed.Sub(now); ahead > day && renewed.After(renewedBefore.Add(day)) {
		found.invalid = append(found.invalid, field.Invalid(specPath.Child("renewTime"), spec.RenewTime, "must not lie more than a day ahead"))
	} else if ahead > time.Minute && text(spec.HolderIdentity) != text(old.HolderIdentity) {
		found.warn("renew-time-in-future: spec.renewTime lies %s ahead", ahead)
	}
	unreadable(found, "renewTime", renewed)
	unreadable(found, "acquireTime", moment(spec.AcquireTime))
	if duration := time.Duration(number(spec.LeaseDurationSeconds)) * time.Second; duration > year && number(old.LeaseDurationSeconds) != number(spec.LeaseDurationSeconds) {
		found.invalid = append(found.invalid, field.Invalid(specPath.Child("leaseDurationSeconds"), *spec.LeaseDurationSeconds, "must not be longer than a year"))
	} else if duration > day && number(old.LeaseDurationSeconds) != number(spec.LeaseDurationSeconds) {
		found.warn("duration-too-long: spec.leaseDurationSeconds is longer than a day")
	}
	jump := number(spec.LeaseTransitions) - number(old.LeaseTransitions)
	if jump > 1 && number(spec.LeaseTransitions) >= 1_000_000_000 {
		found.invalid = append(found.invalid, field.Invalid(specPath.Child("leaseTransitions"), *spec.LeaseTransitions, "must not jump so far"))
	} else if jump > 1 && c.request.Operation == admissionv1.Update {
		found.warn("transitions-jump: spec.leaseTransitions rises by %d", jump)
	}
	if strategy := text(spec.Strategy); strategy != "" && strategy != text(old.Strategy) {
		found.forbid("spec.strategy", "only the API server sets a strategy")
	}
	if preferred := text(spec.PreferredHolder); preferred != "" && preferred != text(old.PreferredHolder) {
		found.forbid("spec.preferredHolder", "only the API server sets a preferred holder")
	}
	if holder := text(spec.HolderIdentity); holder != text(old.HolderIdentity) {
		if len(holder) > 4096 || strings.ContainsFunc(holder, unicode.IsControl) {
			found.invalid = append(found.invalid, field.Invalid(specPath.Child("holderIdentity"), "...", "must be at most 4096 bytes without control characters"))
		}
	}
}

func unreadable(found *findings, name string, value time.Time) {
	if year := value.UTC().Year(); year < 0 || year > 9999 {
		found.invalid = append(found.invalid, field.Invalid(specPath.Child(name), value.String(), "must lie in the years 0000 to 9999"))
	}
}
