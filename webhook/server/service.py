"""One process of the service: its policy, which may change while it runs, its counters, its log, captured reviews."""

import atexit
import os
import threading
import time
import weakref
from pathlib import Path
from typing import Final

from webhook.admission.policy.file import PolicyFile
from webhook.admission.rules.mode import Mode
from webhook.server.capture import Capture
from webhook.server.hooks import Readiness, ServerStatus
from webhook.server.logs import LOG, STDOUT
from webhook.server.metrics import Metrics, make_metrics
from webhook.server.reviewer import Observer, Respond, Reviewer, ReviewRecord, respond
from webhook.server.settings import Options
from webhook.server.verdict_log import AuditFindingLog, ReviewLog

_UPKEEP_SECONDS: Final = 1.0
_BEGUN_BEFORE_FORK: Final = (
    "began before this process was forked: it uses no changed policy file, and its metrics lag; leave --preload out"
)


class Service:
    """What one process of the webhook holds: policy, reviewer, metrics and observers.

    `start_threads` is called in the process that serves, after any fork. If the server has set `server`, its
    readiness counts as well. The service ends with the process, or when nothing refers to it.
    """

    def __init__(self, options: Options, policy_file: PolicyFile, respond: Respond = respond) -> None:
        self.metrics = metrics = make_metrics()
        self.guards = options.guards
        self._policy_file = policy_file
        self._policy_poll_seconds = options.policy_poll_seconds
        self._capture = Capture(Path(options.capture)) if options.capture else None
        observers: list[Observer] = [metrics.record, ReviewLog().record]
        if options.audit_lines:
            observers.append(AuditFindingLog().record)
        if self._capture:
            observers.append(self._capture.record)
        self._observers = tuple(observers)
        self.reviewer = Reviewer(policy_file.current, self._observers, respond)
        self.server: ServerStatus | None = None
        self._serving_pid = 0
        metrics.show_policy(policy_file.current)

    def start_threads(self) -> None:
        """Log and capture from threads from now on, and look for a changed policy, in this process."""
        if self._serving_pid == os.getpid():
            return
        self._serving_pid = os.getpid()
        self.reviewer.observers = self._observers
        _BEGUN.add(self)
        STDOUT.start()
        if self._capture:
            self._capture.start()
        self._use_policy()
        is_stopping = threading.Event()
        weakref.finalize(self, _shut_down, is_stopping, self.metrics, self._capture)
        seconds = min(_UPKEEP_SECONDS, self._policy_poll_seconds)
        threading.Thread(
            target=_run_upkeep, args=(weakref.ref(self), seconds, is_stopping), name="upkeep", daemon=True
        ).start()

    def lose_threads(self) -> None:
        """Take note that this process is a fork of the one with the threads; it may serve, or do something else.

        Its first review reports it. Reviews are answered all the same: a process that refused them, or was not ready,
        would cost healthy leaders their leases, and the policy that it has was good when it began.
        """
        self.reviewer.observers = (*self._observers, self._report_fork)

    def _report_fork(self, _record: ReviewRecord) -> None:
        self.reviewer.observers = self._observers
        LOG.error(f"the application {_BEGUN_BEFORE_FORK}")

    def find_readiness(self) -> Readiness:
        """Return whether this process should get traffic.

        A refused file does not make it unready: every replica mounts the same file, so all of them would drop out at
        once, and with `failurePolicy: Fail` that stops renewals. The last good one stays in use.
        """
        server = self.server.find_readiness() if self.server else Readiness()
        problems = []
        if self._policy_file.error:
            problems.append(f"policy: {self._policy_file.error}; the last good one is in use")
        if self._policy_file.current.mode is Mode.OFF:
            problems.append("policy: mode is off, every write is allowed; remove it to evaluate writes again")
        if self._serving_pid not in {0, os.getpid()}:
            problems.append(f"application: {_BEGUN_BEFORE_FORK}")
        return Readiness(server.reasons, (*problems, *server.warnings))

    # The upkeep.

    def run_upkeep(self, now: float, due: float) -> float:
        """Show what was dropped, and poll the policy if `due` has come; return when it is due again.

        Both times are in monotonic seconds.
        """
        self.metrics.show_dropped("log", STDOUT.dropped)
        if self._capture:
            self.metrics.show_dropped("capture", self._capture.dropped)
        self.metrics.flush()
        if now < due:
            return due
        result = self._policy_file.poll()
        if result is not None:
            self.metrics.count("reloads", "policy", result)
            if problem := self._policy_file.error:
                LOG.error("policy rejected; the last good one stays in use", extra={"fields": {"problem": problem}})
            else:
                LOG.info("policy reloaded")
                self._use_policy()
        return now + self._policy_poll_seconds

    def _use_policy(self) -> None:
        policy = self._policy_file.current
        self.reviewer.policy = policy
        self.metrics.show_policy(policy)
        fields = {"preset": policy.preset, "hash": policy.digest, "mode": policy.mode.word}
        if policy.mode is Mode.OFF:
            LOG.error("the policy is off: every write is allowed", extra={"fields": fields})
        else:
            LOG.info("policy in use", extra={"fields": fields})


def _run_upkeep(reference: weakref.ref[Service], seconds: float, is_stopping: threading.Event) -> None:
    """Keep a service up until it ends; one round that fails must not end the others."""
    due = time.monotonic() + seconds
    while not is_stopping.wait(seconds):
        if (service := reference()) is None:
            return
        try:
            due = service.run_upkeep(time.monotonic(), due)
        except Exception:  # noqa: BLE001 - any bug in the work; it is logged
            LOG.exception("a periodic task failed")
        del service  # a reference held while waiting would keep it alive


def _shut_down(is_stopping: threading.Event, metrics: Metrics, capture: Capture | None) -> None:
    """Write what was counted and captured."""
    is_stopping.set()
    metrics.flush()
    if capture:
        capture.stop()


def _notice_fork() -> None:
    for service in list(_BEGUN):
        service.lose_threads()


_BEGUN: Final[weakref.WeakSet[Service]] = weakref.WeakSet()
os.register_at_fork(after_in_child=_notice_fork)
# atexit runs backward: registered before the first `weakref.finalize`, STDOUT stops after every service has flushed.
atexit.register(STDOUT.stop)
