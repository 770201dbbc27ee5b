"""A property that is computed once."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

__all__ = ["cached_property"]

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 - used as a decorator, like `property`
        """`functools.cached_property` without its lock.

        Before Python 3.12 the lock costs more than most of these properties do, and one review belongs to one thread.
        """

        def __init__(self, compute: Callable[[Any], Any]) -> None:
            self._compute = compute
            self.__doc__ = compute.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self._name = name

        def __get__(self, instance: object | None, owner: type) -> Any:  # noqa: ANN401 - of the computation
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._compute(instance)
            return value
