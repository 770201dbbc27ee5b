"""What one worker serves: ports, policy, certificate and counters, and their periodic tasks."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from webhook.policy_file import PolicyFile
from webhook.rules.mode import Mode
from webhook.server.certificate_reload import CertificateReloader
from webhook.server.flask_app import make_app
from webhook.server.health_port import HealthPort, Readiness
from webhook.server.http.port import Handlers, Port
from webhook.server.logs import LOG, STDOUT
from webhook.server.observe.audit_log import AuditLog
from webhook.server.observe.capture import Capture
from webhook.server.observe.metrics import make_metrics
from webhook.server.observe.review_log import ReviewLog
from webhook.server.review_port import ReviewPort
from webhook.server.reviewer import Observer, Reviewer
from webhook.server.settings import Options

if TYPE_CHECKING:
    from webhook.server.caller_tokens import CallerTokens

LARGEST_PROBE: Final = 4096
SECONDS_BETWEEN_COUNTS: Final = 1.0


class _Periodic(Struct):
    """`due` is in monotonic seconds."""

    seconds: float
    work: Callable[[], object]
    due: float


class WorkerServices:
    """Made in a worker, after the fork. `ports` are those of the reviews and of health, in this order."""

    def __init__(self, options: Options, memory: Path, policy_file: PolicyFile, tokens: "CallerTokens | None") -> None:
        self._policy_file = policy_file
        self._metrics = metrics = make_metrics()
        self._capture = Capture(Path(options.capture)) if options.capture else None
        observers: list[Observer] = [metrics, ReviewLog()]
        if options.audit_lines:
            observers.append(AuditLog())
        if self._capture:
            observers.append(self._capture)
        self._reviewer = Reviewer(policy_file.current, observers)
        self.certificates = CertificateReloader(
            Path(options.tls_dir),
            memory,
            Path(options.client_ca) if options.client_ca else None,
            lambda result: metrics.reloaded("certificate", result),
        )
        self._tokens = tokens
        check_caller = tokens.accept if tokens else None
        app = make_app(self._reviewer, metrics.refused)
        self._review_port = ReviewPort(self._reviewer, app, frozenset(options.client_names), check_caller)
        health = HealthPort(self.readiness, metrics.exposition)
        # A server that stops takes no more probes.
        of_health = replace(options.guards, largest_body=LARGEST_PROBE, drain_seconds=0)
        self.ports = (
            Port(self._review_port.handlers(), options.guards, metrics),
            Port(Handlers(health.respond), of_health, metrics),
        )
        now = time.monotonic()
        self._periodic = [
            _Periodic(SECONDS_BETWEEN_COUNTS, self.show_counts, now),
            _Periodic(options.certificate_poll_seconds, self._poll_certificate, now + options.certificate_poll_seconds),
            _Periodic(options.policy_poll_seconds, self._poll_policy, now + options.policy_poll_seconds),
        ]
        if tokens:
            seconds = options.certificate_poll_seconds
            self._periodic.append(_Periodic(seconds, lambda: self._poll_token_keys(tokens), now + seconds))

    def start(self) -> None:
        """Log from a thread from now on, load the certificate, log what is in use; raises certificates.Unusable."""
        STDOUT.start()
        if self._capture:
            self._capture.start()
        self.certificates.start()
        self._show_certificate()
        self._use_policy()

    def run_due(self, now: float) -> None:
        """Run the tasks that are due; `now` is monotonic seconds."""
        for one in self._periodic:
            if now >= one.due:
                one.due = now + one.seconds
                guarded(one.work)

    def stop(self) -> None:
        """Flush what is counted, captured and logged, and stop."""
        self._review_port.stop()
        if self._capture:
            self._capture.stop()
        self._metrics.flush()
        STDOUT.stop()

    def readiness(self) -> Readiness:
        """Whether this worker can evaluate and be trusted, and what an operator must fix.

        A refused file does not make the server unready: every replica mounts the same file, so all of them would drop
        out at once, and with `failurePolicy: Fail` that stops renewals. The last good one stays in use.
        """
        refused = self._policy_file.error
        warnings = [f"policy: {refused}; the last good one is in use"] if refused else []
        if self._policy_file.current.mode is Mode.OFF:
            warnings.append("policy: mode is off, every write is allowed; remove it to evaluate writes again")
        if self._tokens and self._tokens.problem:
            warnings.append(f"token keys: {self._tokens.problem}; the last good ones are in use")
        return Readiness(self.certificates.reasons(), warnings + self.certificates.warnings())

    def show_counts(self) -> None:
        """Show in the metrics what was counted, and return freed memory."""
        self._metrics.show_in_flight(sum(port.requests_in_flight for port in self.ports))
        self._metrics.lost("log", STDOUT.dropped)
        if self._capture:
            self._metrics.lost("capture", self._capture.dropped)
        self._metrics.flush()
        for port in self.ports:
            port.give_back()

    def _poll_certificate(self) -> None:
        self.certificates.poll()
        self._show_certificate()

    def _poll_token_keys(self, tokens: "CallerTokens") -> None:
        result = tokens.poll()
        if result is None:
            return
        self._metrics.reloaded("token-keys", result)
        if tokens.problem:
            LOG.error(
                "token keys rejected; the last good ones stay in use", extra={"fields": {"problem": tokens.problem}}
            )
        else:
            LOG.info("token keys reloaded")

    def _show_certificate(self) -> None:
        if self.certificates.current is not None:
            self._metrics.show_certificate(self.certificates.current)

    def _poll_policy(self) -> None:
        result = self._policy_file.poll()
        if result is None:
            return
        self._metrics.reloaded("policy", result)
        if problem := self._policy_file.error:
            LOG.error("policy file rejected; the last good policy stays in use", extra={"fields": {"problem": problem}})
        else:
            self._use_policy()

    def _use_policy(self) -> None:
        policy = self._policy_file.current
        self._reviewer.policy = policy
        self._metrics.show_policy(policy)
        fields = {"preset": policy.preset, "hash": policy.digest, "mode": policy.mode.word}
        if policy.mode is Mode.OFF:
            LOG.error("the policy is off: every write is allowed", extra={"fields": fields})
        else:
            LOG.info("policy in use", extra={"fields": fields})


def guarded(work: Callable[[], object]) -> None:
    """A failing periodic task must not stop the loop."""
    try:
        work()
    except Exception:  # noqa: BLE001 - any bug in the work; it is logged
        LOG.exception("a periodic task failed")
