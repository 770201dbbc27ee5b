"""Commands that repair a stored lease, as templates for `fill_in`."""

from typing import Final

from webhook.admission.rules.registry import RULES
from webhook.analysis.history.status import TakeoverBlock

STAMP: Final = (
    '{kubectl} get lease {name} -o go-template=\'{"apiVersion":"{{.apiVersion}}","kind":"{{.kind}}",'
    '"metadata":{"name":"{{.metadata.name}}","namespace":"{{.metadata.namespace}}","labels":{"stamped":"yes"}}}\''
    " | {kubectl} apply --server-side -f -   # if it is held, another can take it one duration later"
)
"""Makes the API server keep managedFields; an apply without a field does not, if the lease has none either."""
CLEAR_PREFERRED_HOLDER: Final = '{kubectl} patch lease {name} --type=merge -p \'{"spec":{"preferredHolder":null}}\''
"""Tried on kube-apiserver 1.37.1: the former holder led again after four seconds."""
EMPTY_STAMPS: Final = '{kubectl} patch lease {name} --type=merge -p \'{"metadata":{"managedFields":[{}]}}\' && '
_DROP_UNREADABLE_ENTRIES: Final = (
    "{kubectl} get lease {name} -o json --show-managed-fields | jq 'del(.metadata.managedFields[]"
    ' | select((.time // "") | length > 20))\' | {kubectl} replace -f -'
)
_PUT_RENEW_TIME: Final = """\
{kubectl} patch lease {name} --type=merge -p '{"spec":{"renewTime":"'$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)'"}}'"""
_REPAIRS: Final = {"metadata.managedFields": _DROP_UNREADABLE_ENTRIES, "spec.renewTime": _PUT_RENEW_TIME}


def make_repair_command(block: TakeoverBlock) -> str:
    """Return the command after which another replica can take the lease: that of the field, or of the rule."""
    return _REPAIRS.get(block.field) or RULES[block.rule].repair
