"""Asks the API server to store a Lease that only the webhook refuses, as a dry run."""

import http.client
import json
import os
import ssl
import sys
from pathlib import Path

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
PATH = "/apis/coordination.k8s.io/v1/namespaces/default/leases?dryRun=All"
LEASE = {
    "apiVersion": "coordination.k8s.io/v1",
    "kind": "Lease",
    "metadata": {"name": "lease-webhook-proof"},
    "spec": {
        "holderIdentity": "nobody",
        "leaseDurationSeconds": 15,
        "renewTime": "9999-12-31T23:59:59.999999-01:00",
    },
}

context = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
host, port = os.environ["KUBERNETES_SERVICE_HOST"], int(os.environ["KUBERNETES_SERVICE_PORT"])
connection = http.client.HTTPSConnection(host, port, context=context, timeout=30)
token = (ACCOUNT / "token").read_text()
headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
connection.request("POST", PATH, json.dumps(LEASE), headers)
answer = connection.getresponse()
said = json.loads(answer.read()).get("message", "")
print(answer.status, said, *answer.headers.get_all("Warning", []))
if "time-unreadable" not in " ".join([said, *answer.headers.get_all("Warning", [])]):
    print("The write was not reviewed: look at the pods, then run `lease-webhook doctor`.")
    sys.exit(1)
