"""An elector that does everything wrong, by which the checks are checked. Nothing here is to be copied.

Arguments: KUBECONFIG NAMESPACE LEASE IDENTITY DURATION DEADLINE RETRY
"""

import base64
import datetime as dt
import http.client
import json
import ssl
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit


class _Api:
    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        config = json.loads(kubeconfig.read_text())
        cluster = config["clusters"][0]["cluster"]
        context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        address = urlsplit(cluster["server"]).netloc
        self._connection = http.client.HTTPSConnection(address, timeout=5, context=context)
        self._path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self._token = config["users"][0]["user"]["token"]

    def send(self, method: str, name: str = "", body: object = None) -> dict[str, Any]:
        media = "application/merge-patch+json" if method == "PATCH" else "application/json"
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": media}
        try:
            path = f"{self._path}/{name}".rstrip("/")
            self._connection.request(method, path, json.dumps(body) if body else None, headers)
            body_of_answer: dict[str, Any] = json.loads(self._connection.getresponse().read())
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise OSError from error
        return body_of_answer


def main() -> None:
    """Lead once the lease has expired by its renewTime, this clock and this duration; never stop.

    A lease that was released is not taken.
    """
    kubeconfig, namespace, lease, identity, duration, _, retry = sys.argv[1:]
    api, leads = _Api(Path(kubeconfig), namespace), False
    while True:
        now = dt.datetime.now(dt.UTC)
        spec = {"holderIdentity": identity, "leaseDurationSeconds": int(duration), "leaseTransitions": 0}
        spec |= dict.fromkeys(("acquireTime", "renewTime"), now.strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
        try:
            stored = api.send("GET", lease).get("spec")
            if stored is None:
                api.send("POST", body={"metadata": {"name": lease}, "spec": spec})
                leads = _print_lead(leads)
            elif leads or (stored["holderIdentity"] and _has_expired(stored["renewTime"], int(duration))):
                api.send("PATCH", lease, {"spec": spec})
                leads = _print_lead(leads)
        except OSError:
            pass
        time.sleep(int(retry))


def _has_expired(renew_time: str, duration: int) -> bool:
    return dt.datetime.fromisoformat(renew_time) + dt.timedelta(seconds=duration) < dt.datetime.now(dt.UTC)


def _print_lead(leads: bool) -> bool:
    if not leads:
        print(json.dumps({"event": "started"}), flush=True)
    return True


if __name__ == "__main__":
    main()
