"""Why a policy file is refused."""

from webhook.api.text import cut, escape


class PolicyError(Exception):
    """A policy file is refused as a whole; the text says where, what, and the nearest valid name where there is one.

    `path` is such as `overrides[2].rules.takeover-before-expiry.mode`, empty for the whole file; `line` counts from 1,
    0 where unknown.
    """

    def __init__(self, problem: str, path: str = "", line: int = 0) -> None:
        super().__init__(problem, path, line)
        self.problem = problem
        self.path = path
        self.line = line

    def __str__(self) -> str:
        where = [f"line {self.line}"] if self.line else []
        return ": ".join([*where, *filter(None, [escape(cut(self.path))]), self.problem])
