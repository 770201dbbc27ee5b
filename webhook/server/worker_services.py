"""What one worker serves: policy, certificate, counters, and what watches the files that change."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from a2wsgi import WSGIMiddleware

from webhook.policy_file import PolicyFile
from webhook.rules.mode import Mode
from webhook.server.certificate_reload import Certificates
from webhook.server.flask_app import create_app
from webhook.server.health_port import Readiness
from webhook.server.http.port_state import Load
from webhook.server.logs import LOG, OUTLET
from webhook.server.observe.audit_log import AuditLog
from webhook.server.observe.capture import Capture
from webhook.server.observe.metrics import make_metrics
from webhook.server.observe.review_log import ReviewLog
from webhook.server.reviewer import Observer, Reviewer
from webhook.server.settings import Options

APP_THREADS: Final = 4
"""For Flask, to which no request gets: the protocol answers all of them itself. uvicorn wants an application."""


class Service:
    """Made in a worker, after the fork."""

    def __init__(self, options: Options, memory: Path, policy_file: PolicyFile) -> None:
        self.options = options
        self.metrics = make_metrics()
        self.load = Load(options.guards, self.metrics)
        observers: list[Observer] = [self.metrics, ReviewLog()]
        if options.audit_lines:
            observers.append(AuditLog())
        self._capture = Capture(Path(options.capture)) if options.capture else None
        if self._capture:
            observers.append(self._capture)
        self.reviewer = Reviewer(policy_file.current, options.respond, observers)
        self.certificates = Certificates(
            Path(options.tls_dir),
            memory,
            Path(options.client_ca) if options.client_ca else None,
            lambda result: self.metrics.reloaded("certificate", result),
        )
        app: Any = create_app(self.reviewer, self.metrics.refused)
        self.asgi_app: Any = WSGIMiddleware(app.wsgi_app, workers=APP_THREADS)
        self._policy_file = policy_file

    def start(self) -> None:
        """Log from a thread from now on, load the certificate, say what holds; raises certificate_check.Unusable."""
        OUTLET.start()
        if self._capture:
            self._capture.start()
        self.certificates.start()
        self.metrics.show_certificate(self.certificates)
        self._use_policy()

    def stop(self) -> None:
        """Write out what is still counted, captured and logged."""
        if self._capture:
            self._capture.stop()
        self.metrics.flush()
        OUTLET.stop()

    def readiness(self) -> Readiness:
        """Whether this worker can evaluate and be trusted, and what a person must repair.

        A refused file is no reason to get no traffic: every replica mounts the same file, so all of them would drop
        out at once, and with `failurePolicy: Fail` that stops renewals. What is served is the last good one.
        """
        refused = self._policy_file.error
        warnings = [f"policy: {refused}; the last good one is in use"] if refused else []
        if self._policy_file.current.mode is Mode.OFF:
            warnings.append("policy: mode is off, every write is allowed; remove it to evaluate writes again")
        return Readiness(self.certificates.reasons(), warnings + self.certificates.warnings())

    async def watch_certificate(self) -> None:
        """Look for a new certificate, for ever."""
        while True:
            await asyncio.sleep(self.options.guards.certificate_poll_seconds)
            guarded(self.certificates.poll)
            self.metrics.show_certificate(self.certificates)

    async def watch_policy(self) -> None:
        """Look for a new policy, for ever."""
        while True:
            await asyncio.sleep(self.options.guards.policy_poll_seconds)
            guarded(self._poll_policy)
            self.metrics.lost("log", OUTLET.dropped)
            if self._capture:
                self.metrics.lost("capture", self._capture.dropped)

    def _poll_policy(self) -> None:
        reload = self._policy_file.poll()
        if reload is None:
            return
        if reload.error:
            self.metrics.reloaded("policy", "failure")
            LOG.error("the policy file is refused; the old policy stays", extra={"fields": {"problem": reload.error}})
            return
        self.metrics.reloaded("policy", "success")
        self._use_policy()

    def _use_policy(self) -> None:
        policy = self._policy_file.current
        self.reviewer.policy = policy
        self.metrics.show_policy(policy)
        fields = {"preset": policy.preset, "hash": policy.digest, "mode": policy.mode.word}
        if policy.mode is Mode.OFF:
            LOG.error("the policy is off: every write is allowed", extra={"fields": fields})
        else:
            LOG.info("evaluating by a policy", extra={"fields": fields})


def guarded(work: Callable[[], object]) -> None:
    """A bug in what is done again and again must not end the doing."""
    try:
        work()
    except Exception:  # noqa: BLE001 - any bug in the work; it is logged
        LOG.exception("what is done every few moments met a bug")
