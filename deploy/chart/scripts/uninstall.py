"""Deletes the webhook configuration, and waits until the API servers no longer use it."""

import http.client
import os
import ssl
import sys
import time
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PATH = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/lease-webhook"

context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
connection = http.client.HTTPSConnection(host, port, context=context, timeout=30)
connection.request("DELETE", PATH, headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"})
answer = connection.getresponse()
print(answer.status, answer.read().decode())
if answer.status not in {200, 404}:
    sys.exit(1)
# An API server calls webhooks by what it saw some seconds ago.
time.sleep(10)
