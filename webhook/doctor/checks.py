"""Checks of one webhook that may be called for leases: what its outage does, what it reviews, and in which form.

The match condition by which the API server skips plain renewals is compared with the texts in `conditions/`, the one of
deploy/base/90-webhook.yaml last. `make e2e` runs that on API servers with each kind of write, so it is verified as a
whole: a text that differs is reported with the difference.
"""

import base64
import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Final

from cryptography import x509

from webhook.api.request import Resource
from webhook.api.review import REVIEW_PATH
from webhook.api.text import truncate
from webhook.certificate_files import MAX_FILE
from webhook.doctor import configuration
from webhook.findings import Finding
from webhook.policy.schema import OPERATIONS
from webhook.rules.change import KUBE_SYSTEM, NODE_LEASES

Check = Callable[[configuration.Entry], Iterable[Finding]]

MAX_TIMEOUT: Final = 3
"""Leader-election clients give up on a request after 5 s (client-go `leaderelection/resourcelock/interface.go`,
renewDeadline / 2); etcd and the network need the rest."""
MAX_TIMEOUT_WITH_RENEWALS: Final = 2
"""Measured with a webhook that never answers: no leader loses its lease with 2 s, and leaders do with 5 s."""
LISTED_VERSIONS: Final = {Resource.LEASES: ("v1",), Resource.LEASECANDIDATES: ("v1beta1", "v1alpha2")}
"""The versions that a configuration should list: those that are evaluated, whether a server has them or not."""
CHOICES: Final = {KUBE_SYSTEM: "control-plane", NODE_LEASES: "node-leases"}
"""Namespaces that may be reviewed if that is intended, and the annotation that declares it."""

_RISKS: Final = {
    KUBE_SYSTEM: "kube-controller-manager and kube-scheduler elect here. While the webhook does not answer they may"
    " not get their lease, and without them the webhook's pods are not restored (kubernetes/kubernetes#90217).",
    NODE_LEASES: "every kubelet renews here every 10 s. A node whose heartbeat fails for 40 s is marked NotReady, and"
    " its pods are moved; with the webhook down that can be all nodes at once.",
}


def drops_renewals(webhook: configuration.Webhook) -> bool:
    """True if plain renewals of leases never reach the webhook."""
    return not webhook.reviews("leases", "UPDATE") or renewal_condition(webhook) is not None


def check_timeout(entry: configuration.Entry) -> Iterable[Finding]:
    """If the webhook never answers, a leader has time for another try."""
    webhook = entry.webhook
    if webhook.timeout > (MAX_TIMEOUT if drops_renewals(webhook) else MAX_TIMEOUT_WITH_RENEWALS):
        yield entry.finding(
            "timeout-too-long",
            "timeoutSeconds",
            webhook.timeout_seconds or "absent, which means 10",
            f"leader-election clients give up on a write after 5 s. With the webhook unreachable a write waits"
            f" {webhook.timeout} s, even with failurePolicy Ignore, and healthy leaders lose their leases"
            " (kubernetes/kubernetes#90217).",
            "set timeoutSeconds: 2.",
        )


def check_wildcards(entry: configuration.Entry) -> Iterable[Finding]:
    """Rules name group and resources; a wildcard matches leases by accident."""
    for number, rule in enumerate(entry.webhook.rules or ()):
        if rule.is_wild and (rule.matches("leases") or rule.matches("leasecandidates")):
            yield entry.finding(
                "wildcard",
                f"rules[{number}]",
                f"groups {_list(rule.api_groups)}, resources {_list(rule.resources)}",
                "a wildcard matches leases together with everything else: every renewal of every leader then waits for"
                " this webhook, and kinds that are added to the group later are sent to it too.",
                "name the resources: apiGroups [coordination.k8s.io], resources [leases], [leasecandidates]; in a"
                " webhook that is not about leases, leave the group out.",
            )


def check_mutation(entry: configuration.Entry) -> Iterable[Finding]:
    """No webhook changes leases."""
    if entry.configuration.kind == configuration.MUTATING:
        yield configuration.danger(
            "mutates-leases",
            f"kind: {configuration.MUTATING}",
            "a lease that a webhook changes is not what its holder wrote: clients compare, and lose or repeat their"
            " election. Kubernetes advises never to mutate node leases.",
            "leave leases and leasecandidates out of its rules; register lease-webhook as a"
            " ValidatingWebhookConfiguration.",
        )


def check_namespaces(entry: configuration.Entry) -> Iterable[Finding]:
    """The control plane and the nodes do not depend on the webhook."""
    webhook = entry.webhook
    is_careful = not webhook.fails_closed and webhook.timeout <= 2 and drops_renewals(webhook)
    for namespace, choice in CHOICES.items():
        if configuration.may_select(webhook.namespace_selector, namespace) and not (
            entry.has_chosen(choice) and is_careful
        ):
            yield entry.finding(
                f"{choice}-in-scope",
                "namespaceSelector",
                f"selects {namespace}",
                _RISKS[namespace],
                f"add {namespace} to a namespaceSelector expression with key {configuration.NAMESPACE_NAME} and"
                f" operator NotIn. If it is intended (the `{choice}` component): failurePolicy Ignore,"
                f" timeoutSeconds of at most 2, the renewal condition, and the annotation lease-webhook/{choice}:"
                " reviewed.",
            )


def check_resources(entry: configuration.Entry) -> Iterable[Finding]:
    """Both kinds, every served version, every operation."""
    for resource, versions in LISTED_VERSIONS.items():
        listed = entry.webhook.versions(resource)
        if "*" in listed or (listed and not listed.issuperset(versions)):
            yield entry.finding(
                "versions",
                "rules",
                f"{resource} in {', '.join(sorted(listed))}",
                "a version that is added later is sent in a form that the webhook does not decode, unless the versions"
                " are listed; and an API server that serves none of those never sends this resource for review.",
                f"list the versions: {', '.join(versions)}. One that is not served does no harm.",
            )


def check_path(entry: configuration.Entry) -> Iterable[Finding]:
    """The call goes to a path at which reviews are answered."""
    config = entry.webhook.client_config
    if not REVIEW_PATH.fullmatch(config.path):
        yield entry.finding(
            "path-unknown",
            f"clientConfig.{'service.path' if config.service else 'url'}",
            config.path,
            "lease-webhook responds with 404 there, which counts as a failed call: every write is admitted without"
            " review under Ignore and rejected under Fail.",
            "use the path /validate.",
        )


def check_coverage(entries: Iterable[configuration.Entry]) -> Iterable[Finding]:
    """All entries of a configuration together match both kinds and every operation."""
    together = list(entries)
    for resource in Resource:
        missing = [one for one in OPERATIONS if not any(entry.webhook.reviews(resource, one) for entry in together)]
        if missing:
            yield configuration.danger(
                "operation-missing",
                f"webhooks: {resource} without {', '.join(missing)}",
                f"the rules for {' and '.join(missing)} of {resource} are never in force.",
                f"operations: [{', '.join(OPERATIONS)}] for both resources.",
            )


def _list(values: Iterable[str] | None) -> str:
    return f"[{', '.join(values or ())}]"


def _of_field(
    check: str, field: str, wrong: Callable[[configuration.Webhook, configuration.Entry], object], risk: str, fix: str
) -> Check:
    """Return a check of one field; `wrong` returns what is wrong with it, and something false if nothing is."""
    return lambda entry: (
        [entry.finding(check, field, value, risk, fix)] if (value := wrong(entry.webhook, entry)) else []
    )


_FAILURE_POLICY: Final = _of_field(
    "fails-closed-everywhere",
    "failurePolicy",
    lambda webhook, _: (
        webhook.fails_closed
        and not configuration.is_opt_in(webhook.namespace_selector)
        and (webhook.failure_policy or "absent, which means Fail")
    ),
    "while the webhook is down no lease in any namespace can be created, taken over or deleted: failover stops"
    " in the whole cluster, and clients that need a lease to start do not start.",
    "set failurePolicy: Ignore; for namespaces that want it, use the `strict` component, which selects them by"
    " the label lease-webhook/fail: closed.",
)
_RENEWALS_FAIL_CLOSED: Final = _of_field(
    "renewals-fail-closed",
    "matchConditions",
    lambda webhook, _: (
        webhook.fails_closed and not drops_renewals(webhook) and "no renewal condition, and failurePolicy Fail"
    ),
    "every renewal needs this webhook. When it is down, each leader in scope loses its lease at its renew"
    " deadline (10 s for most) and no successor can take it.",
    "add the renewal condition of deploy/base/90-webhook.yaml, or set failurePolicy: Ignore.",
)
_RENEWALS: Final = _of_field(
    "renewals-reviewed",
    "matchConditions",
    lambda webhook, entry: (
        not (webhook.fails_closed or drops_renewals(webhook))
        and not (entry.has_chosen("renewals") or configuration.is_opt_in(webhook.namespace_selector))
        and "no renewal condition"
    ),
    "every renewal of every leader waits for this webhook: about one call every 2 s per leader, and while the"
    " webhook is unreachable half of the renewals are late.",
    "add the renewal condition of deploy/base/90-webhook.yaml. If it is intended (the `observe` component), add"
    " the annotation lease-webhook/renewals: reviewed.",
)
DANGERS: Final[tuple[Check, ...]] = (
    check_wildcards,
    check_namespaces,
    check_mutation,
    check_timeout,
    _FAILURE_POLICY,
    _RENEWALS_FAIL_CLOSED,
    _RENEWALS,
)
"""For every webhook that may be called for leases, also those of others."""

_LABELS: Final = _of_field(
    "object-selector",
    "objectSelector",
    lambda webhook, _: ", ".join(sorted({one.key for one in configuration.requirements(webhook.object_selector)})),
    "the writer of a lease also sets its labels, and so decides whether the write is reviewed.",
    "remove objectSelector; choose by namespace, or exempt leases by name in the policy.",
)
_CONVERSION: Final = _of_field(
    "match-policy-exact",
    "matchPolicy",
    lambda webhook, _: webhook.match_policy == "Exact" and "Exact",
    "a write in a version that is served but not listed is not reviewed: using another version evades every rule.",
    "set matchPolicy: Equivalent.",
)
MAX_CHARACTERS: Final = 16 * 1024
"""Characters of an expression that are compared; the shipped one has about 2,000."""

_EVERY_WRITE: Final = "true"
"""A condition that excludes nothing: the `observe` and `bindings` components replace the renewal condition by it."""
_SOURCE: Final = "the condition of deploy/base/90-webhook.yaml"
_COMMENT: Final = re.compile(r"//[^\n]*")
_TOKEN: Final = re.compile(r'"[^"]*"|\w+|[^\w\s]')
_EXCLUSION: Final = re.compile(r"""!request\.namespace\.startsWith\((?P<quote>['"])[a-z0-9][-a-z0-9]+(?P=quote)\)""")
"""What needs no finding, as in deploy/overlays/openshift: request.namespace is always a string, so it never errs. A
prefix of one character is not among them: it can exclude every namespace, alone or with others."""

_SHIPPED: Final = [
    path.read_text(encoding="utf-8")
    for path in sorted(files("webhook.doctor").joinpath("conditions").iterdir(), key=lambda path: path.name)
]


def renewal_condition(webhook: configuration.Webhook) -> configuration.MatchCondition | None:
    """Return the condition that is meant to skip plain renewals: it has half of the terms of a shipped text."""
    for condition in webhook.match_conditions or ():
        found = _terms(condition.expression)
        if any(2 * len(terms.keys() & found.keys()) >= len(terms) for terms in map(_terms, _SHIPPED)):
            return condition
    return None


def check_condition(entry: configuration.Entry) -> Iterable[Finding]:
    """Check that the renewal condition is the shipped one, and that no other condition narrows what is reviewed."""
    ours = renewal_condition(entry.webhook)
    for number, condition in enumerate(entry.webhook.match_conditions or ()):
        place = entry.place(f"matchConditions[{number}]", condition.name)
        text = condition.expression.strip()
        if condition is ours:
            yield from _compared(place, text)
        elif text != _EVERY_WRITE and not _EXCLUSION.fullmatch(text):
            yield configuration.danger(
                "condition-unknown",
                place,
                "a write for which this is false is never reviewed, and the condition is not a verified one: an error"
                " in it admits the write without review under Ignore and rejects it under Fail.",
                f"remove it, or compare it with {_SOURCE}; exclude namespaces by namespaceSelector, and writers by an"
                " exemption in the policy.",
            )


FORM: Final[tuple[Check, ...]] = (check_condition, _LABELS, check_resources, _CONVERSION, check_path)
"""For entries that are about leases."""


def _compared(place: str, expression: str) -> Iterator[Finding]:
    if _tokens(expression) == _tokens(_SHIPPED[-1]):
        return
    found, shipped = _terms(expression), _terms(_SHIPPED[-1])
    missing = [text for term, text in shipped.items() if term not in found]
    added = [text for term, text in found.items() if term not in shipped]
    difference = "; ".join([*_listed("without", missing), *_listed("with", added)]) or "in another order"
    yield configuration.danger(
        "condition-changed",
        place,
        "each term of the verified text has one kind of write reviewed, or keeps the expression from failing, which"
        f" admits the write without review under Ignore and rejects it under Fail. This text is {difference}.",
        f"copy {_SOURCE} again, as a whole, or apply the overlay again, if the text is that of an earlier version;"
        " docs/renewals.md says what each term is for.",
    )


def _listed(word: str, terms: Sequence[str], most: int = 4) -> list[str]:
    shown = [truncate(text, 200) for text in terms[:most]]
    shown += [f"{len(terms) - most} more"] if len(terms) > most else []
    return [f"{word} {', '.join(shown)}"] if terms else []


def _terms(expression: str) -> dict[str, str]:
    """Return the parts between `||`: their tokens, by which they are compared, and their text."""
    if len(expression) > MAX_CHARACTERS:
        return {}
    text = " ".join(_COMMENT.sub("", expression).split())
    return {_tokens(term): term.strip() for term in text.split("||")}


def _tokens(expression: str) -> str:
    """Return the expression without layout and comments; no shipped text has strings that these could be in."""
    return " ".join(_TOKEN.findall(_COMMENT.sub("", expression)))


SOON: Final = dt.timedelta(days=14)
"""As the alert in deploy/components/monitoring."""

FILLED_IN_LATER: Final = ("cert-manager.io/inject-ca-from", "service.beta.openshift.io/inject-cabundle")
"""Annotations by which a controller writes the caBundle into the cluster's object."""

_UNTRUSTED: Final = (
    "the API server refuses the TLS connection, so no write is reviewed: all are admitted under Ignore and rejected"
    " under Fail."
)


def check_bundle(entry: configuration.Entry, now: dt.datetime) -> Iterable[Finding]:
    """The caBundle is present, readable and not expired."""
    place = entry.place("clientConfig.caBundle")
    is_absent, end = entry.webhook.client_config.ca_bundle is None, bundle_end(entry.webhook.client_config)
    annotations = entry.configuration.metadata.annotations or {}
    if is_absent and any(annotation in annotations for annotation in FILLED_IN_LATER):
        return
    if is_absent:
        yield configuration.danger(
            "ca-bundle-missing",
            place,
            f"then only the system's roots are trusted; with a certificate of your own {_UNTRUSTED}",
            "put `lease-webhook certs --ca-bundle` there, or use an overlay that does.",
        )
    elif end is None:
        yield configuration.danger(
            "ca-bundle-unreadable",
            place,
            "it does not contain PEM certificates in base64; the API server rejects the configuration.",
            "put `lease-webhook certs --ca-bundle` there.",
        )
    elif end < now + SOON:
        is_over = end <= now
        yield configuration.danger(
            "ca-bundle-expired" if is_over else "certificate-ends-soon",
            f"{place}, until {end:%Y-%m-%d}",
            f"{'all roots in it have expired:' if is_over else 'after that'} {_UNTRUSTED}",
            "make a new CA (`lease-webhook certs --new-ca`) and change it in four steps: docs/certificates.md.",
        )


def bundle_end(config: configuration.ClientConfig) -> dt.datetime | None:
    """Return when the last root in the caBundle expires; None if there is no root."""
    try:
        # Go's decoder ignores line breaks.
        pem = base64.b64decode("".join((config.ca_bundle or "").splitlines()), validate=True)
        roots = x509.load_pem_x509_certificates(pem) if len(pem) <= MAX_FILE else []
    except ValueError:
        return None
    return max((root.not_valid_after_utc for root in roots), default=None)
