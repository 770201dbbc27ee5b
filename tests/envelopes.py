"""Audit events as log services deliver them; `python -m tests.envelopes` writes tests/data/envelopes."""

import gzip
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

from tests.factories import Document
from tests.incidents import incident

FOLDER: Final = Path(__file__).parent / "data" / "envelopes"
INCIDENT: Final = "leader-killed"
_STREAM: Final = "kube-apiserver-audit-1f0e"


def recorded() -> list[str]:
    """The lines of the audit log of one incident."""
    return gzip.decompress(incident(INCIDENT).file("audit.log.gz").read_bytes()).decode().splitlines()


def _moment(line: str) -> str:
    return str(json.loads(line)["stageTimestamp"])


def insights(lines: Sequence[str]) -> Any:
    """`aws logs get-query-results`."""
    fields = ({"@timestamp": _moment(line), "@message": line, "@ptr": "Cl"} for line in lines)
    rows = [[{"field": name, "value": value} for name, value in row.items()] for row in fields]
    return {"results": rows, "statistics": {"recordsMatched": float(len(lines))}, "status": "Complete"}


def insights_console(lines: Sequence[str]) -> Any:
    """Return the events as the console of Logs Insights exports them as JSON."""
    return [{"@timestamp": _moment(line), "@message": json.loads(line)} for line in lines]


def filtered(lines: Sequence[str]) -> Any:
    """`aws logs filter-log-events`."""
    return {"events": [{"logStreamName": _STREAM, "timestamp": 1, "message": line} for line in lines]}


def subscription(lines: Sequence[str]) -> list[Any]:
    """Return the events as a subscription of CloudWatch delivers them, two at a time."""
    return [
        {
            "messageType": "DATA_MESSAGE",
            "owner": "111122223333",
            "logGroup": "/aws/eks/prod/cluster",
            "logStream": _STREAM,
            "subscriptionFilters": ["leases"],
            "logEvents": [{"id": "3", "timestamp": 1, "message": line} for line in lines[first : first + 2]],
        }
        for first in range(0, len(lines), 2)
    ]


def azure(lines: Sequence[str]) -> Any:
    """Return the events as diagnostic settings of AKS send them to an event hub."""
    return {
        "records": [
            {
                "time": _moment(line),
                "category": "kube-audit",
                "operationName": "Microsoft.ContainerService/managedClusters/diagnosticLogs/Read",
                "properties": {"log": line + "\n", "stream": "stdout", "pod": "kube-apiserver-5d"},
            }
            for line in lines
        ]
    }


def azure_storage(lines: Sequence[str]) -> list[Any]:
    """Return the events as diagnostic settings of AKS write them to a storage account: each record alone."""
    return [*azure(lines)["records"]]


def azure_diagnostics(lines: Sequence[str]) -> Any:
    """Return the events as a query of AzureDiagnostics exports them."""
    return [{"TimeGenerated": _moment(line), "Category": "kube-audit", "log_s": line} for line in lines]


def google(lines: Sequence[str]) -> Any:
    """`gcloud logging read --format json`."""
    return [_google(json.loads(line)) for line in lines]


_RPC: Final = {404: 5, 409: 6, 403: 7, 401: 16, 422: 3}


def _google(event: Document) -> Document:
    reference, code = event["objectRef"], event["responseStatus"]["code"]
    group = reference.get("apiGroup", "core")
    place = [group, reference["apiVersion"]]
    place += ["namespaces", reference["namespace"]] if reference.get("namespace") else []
    place += [reference["resource"], reference.get("name", "")]
    method = f"io.k8s.{group.removesuffix('.k8s.io')}.{reference['apiVersion']}.{reference['resource']}.{event['verb']}"
    status = {} if code < 300 else {"code": _RPC[code], "message": event["responseStatus"].get("message", "")}
    payload = {
        "@type": "type.googleapis.com/google.cloud.audit.AuditLog",
        "serviceName": "k8s.io",
        "methodName": method,
        "resourceName": "/".join(place),
        "authenticationInfo": {"principalEmail": event["user"]["username"]},
        "requestMetadata": {"callerIp": event["sourceIPs"][0], "callerSuppliedUserAgent": event.get("userAgent", "")},
        "status": status,
    }
    payload |= {
        name: {"@type": "coordination.k8s.io/v1.Lease", **event[f"{name}Object"]}
        for name in ("request", "response")
        if f"{name}Object" in event
    }
    return {
        "protoPayload": payload,
        "resource": {"type": "k8s_cluster", "labels": {"cluster_name": "prod"}},
        "timestamp": event["stageTimestamp"],
        "labels": event.get("annotations", {}),
        "logName": "projects/prod/logs/cloudaudit.googleapis.com%2Factivity",
        "operation": {"id": event["auditID"], "producer": "k8s.io", "first": True, "last": True},
    }


def viaq(lines: Sequence[str]) -> list[Any]:
    """OpenShift's collector: the event itself, with keys of its own between."""
    return [
        {
            "@timestamp": _moment(line),
            "annotations": None,
            "hostname": "master-0",
            "k8s_audit_level": "RequestResponse",
            "log_type": "audit",
            "openshift": {"cluster_id": "5e0"},
            **dict(sorted(json.loads(line).items())),
        }
        for line in lines
    ]


def loki(lines: Sequence[str]) -> Any:
    """Loki's answer to a query over a range of time."""
    values = [["1795320000000000000", line] for line in lines]
    data = {"resultType": "streams", "result": [{"stream": {"job": "audit"}, "values": values}], "stats": {}}
    return {"status": "success", "data": data}


def loki_push(lines: Sequence[str]) -> Any:
    """Return the events as they are pushed to Loki."""
    return {"streams": [{"stream": {"job": "audit"}, "values": [["1795320000000000000", line, {}] for line in lines]}]}


def logcli(lines: Sequence[str]) -> list[Any]:
    """`logcli query -o jsonl`."""
    return [{"labels": {"job": "audit"}, "line": line, "timestamp": _moment(line)} for line in lines]


def datadog(lines: Sequence[str]) -> list[Any]:
    """Return the events as logs of Datadog, each alone: it parses a line that is JSON."""
    return [
        {
            "id": "AwAAAZqhGk1",
            "type": "log",
            "attributes": {
                "timestamp": _moment(line),
                "service": "kube-apiserver",
                "status": "info",
                "tags": ["source:kubernetes.audit"],
                "attributes": json.loads(line),
            },
        }
        for line in lines
    ]


def datadog_search(lines: Sequence[str]) -> Any:
    """Return the events as Datadog's API answers a search."""
    return {"data": datadog(lines), "meta": {"elapsed": 132, "page": {}, "status": "done"}}


def datadog_text(lines: Sequence[str]) -> Any:
    """Return the events as Datadog's API answers where the line was not parsed."""
    logs = [{"type": "log", "attributes": {"message": line, "attributes": {"hostname": "cp-1"}}} for line in lines]
    return {"data": logs}


def vector(lines: Sequence[str]) -> list[Any]:
    """Vector's source `file`, encoded as JSON."""
    return [{"file": "/var/log/audit.log", "host": "cp-1", "message": line, "source_type": "file"} for line in lines]


def fluent_bit(lines: Sequence[str]) -> list[Any]:
    """Fluent Bit and Docker."""
    return [{"stream": "stdout", "log": line + "\n", "time": _moment(line)} for line in lines]


def elasticsearch(lines: Sequence[str]) -> Any:
    """An answer of Elasticsearch or OpenSearch."""
    hits = [{"_index": "audit", "_source": json.loads(line)} for line in lines]
    return {"took": 1, "hits": {"total": {"value": 1}, "hits": hits}}


ENVELOPES: Final[dict[str, Callable[[Sequence[str]], Any]]] = {
    "cloudwatch-insights.json": insights,
    "cloudwatch-insights-console.json": insights_console,
    "cloudwatch-filter-log-events.json": filtered,
    "cloudwatch-subscription.json": subscription,
    "azure-event-hub.json": azure,
    "azure-storage-account.jsonl": azure_storage,
    "azure-diagnostics.json": azure_diagnostics,
    "google-cloud-logging.json": google,
    "openshift-viaq.jsonl": viaq,
    "loki-query.json": loki,
    "loki-push.json": loki_push,
    "logcli.jsonl": logcli,
    "datadog.jsonl": datadog,
    "datadog-search.json": datadog_search,
    "datadog-text.json": datadog_text,
    "vector.jsonl": vector,
    "fluent-bit.jsonl": fluent_bit,
    "elasticsearch.json": elasticsearch,
}


def wrapped(name: str, lines: Sequence[str]) -> bytes:
    """The bytes of a delivery; CloudWatch and Firehose put values behind each other without a line break."""
    delivery = ENVELOPES[name](lines)
    between = "" if name == "cloudwatch-subscription.json" else "\n"
    values = delivery if name.endswith(".jsonl") or between == "" else [delivery]
    return between.join(json.dumps(value, separators=(",", ":")) for value in values).encode()


def main() -> None:
    """Write the files."""
    FOLDER.mkdir(exist_ok=True)
    for name in ENVELOPES:
        (FOLDER / f"{name}.gz").write_bytes(gzip.compress(wrapped(name, recorded()), mtime=0))


if __name__ == "__main__":
    main()
