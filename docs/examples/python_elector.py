"""Lead by the official Python client, and stop in time. Needs `pip install 'kubernetes>=37'`, and Kubernetes.

    python python_elector.py shop checkout

It may get, create and update the lease. docs/python-electors.md says what each part is for.
"""

import os
import socket
import sys
import threading
import uuid
from functools import partial

import urllib3
from kubernetes import client, config
from kubernetes.client.rest import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.leaselock import LeaseLock

DURATION, DEADLINE, RETRY = 15, 10, 2
"""Seconds: how long the lease lasts, for how long renewals may fail, and how often it is renewed."""


class Lock(LeaseLock):
    """A LeaseLock whose requests end in time. One that fails is a renewal that failed, not the end of the elector."""

    def __init__(self, name, namespace, identity, seconds):
        super().__init__(name, namespace, identity)
        for verb in ("read", "create", "replace"):
            method = f"{verb}_namespaced_lease"
            bounded = partial(getattr(self.api_instance, method), _request_timeout=seconds)
            setattr(self.api_instance, method, bounded)

    def get(self, name, namespace):
        try:
            return super().get(name, namespace)
        except urllib3.exceptions.HTTPError as error:
            return False, ApiException(reason=str(error))

    def create(self, name, namespace, election_record):
        try:
            return super().create(name, namespace, election_record)
        except urllib3.exceptions.HTTPError:
            return False

    def update(self, name, namespace, updated_record):
        try:
            return super().update(name, namespace, updated_record)
        except urllib3.exceptions.HTTPError:
            return False


def lead():
    """Your work, in a thread. When the lease is lost, the process ends, and so does this."""
    print("leading", flush=True)
    threading.Event().wait()


def stop():
    """End the process, because no one else ends the thread of `lead`; the kubelet starts it again."""
    print("lost the lease", flush=True)
    os._exit(1)


def main(namespace, name, identity="", duration=DURATION, deadline=DEADLINE, retry=RETRY):
    """Elect under an identity that no other process has: by default that of the pod, which is its host, and a UUID."""
    identity = identity or f"{socket.gethostname()}_{uuid.uuid4()}"
    settings = client.Configuration()
    if kubeconfig := os.environ.get("KUBECONFIG"):
        config.load_kube_config(kubeconfig, client_configuration=settings)
    else:
        config.load_incluster_config(client_configuration=settings)
    settings.retries = False  # the elector retries by itself
    client.Configuration.set_default(settings)
    lock = Lock(name, namespace, identity, seconds=retry)
    leaderelection.LeaderElection(electionconfig.Config(lock, duration, deadline, retry, lead, stop)).run()


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
