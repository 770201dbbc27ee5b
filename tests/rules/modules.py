"""The modules that test the rules, whose data other tests use.

`WORDING` has writes with what a rule says of them. `FURTHER_WRITES` has more writes of which a rule speaks, by its id,
where those whose wording is pinned lack a kind: one that API servers send and policies see, one of each event on
which the rule is evaluated in ordinary writes, and a renewal if it denies any. `NOT_IN_CEL` has, by its id, of which
writes a policy of the API server says something else than the rule, as `lacks` of its `RuleInCel` says: a function of
a request and of the field of which the rule speaks, "" where the policy speaks.
"""

import pkgutil
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from types import ModuleType

from tests.rules import election


@cache
def modules() -> Sequence[ModuleType]:
    """Return the modules that test the rules of elections."""
    return [import_module(found.name) for found in pkgutil.iter_modules(election.__path__, f"{election.__name__}.")]
