"""Calls functions that the program gave. What goes wrong in them is logged, and changes nothing of a call."""

from __future__ import annotations

import inspect
import logging
from typing import Any, Awaitable, Callable, NamedTuple, Optional, Tuple

from .async_waits import within

_log = logging.getLogger("marina")


class Told(NamedTuple):
    """What a function returned that has to be awaited."""

    result: Awaitable[Any]
    name: str


def tell(function: Callable[..., object], values: Tuple[Any, ...], name: str) -> Optional[Told]:
    """Calls a function. What it returns, if that has to be awaited. Raises nothing."""
    try:
        result = function(*values)
    except Exception:
        # The order was placed: a mistake in a log must not take its answer and its key away.
        _log.exception("%s failed", name)
        return None
    return Told(result, name) if inspect.isawaitable(result) else None


def refuse(told: Optional[Told]) -> None:
    """Logs that nobody awaits what a function returned."""
    if told is None:
        return
    if inspect.iscoroutine(told.result):
        told.result.close()
    _log.error("%s is asynchronous, and was not run: only AsyncMarina awaits it", told.name)


async def finish(told: Optional[Told], seconds: float) -> None:
    """Awaits what a function returned, so many seconds at most. Raises nothing but a cancel."""
    if told is None:
        return
    try:
        await within(seconds, _await(told.result))
    except Exception:
        _log.exception("%s failed", told.name)


async def _await(result: Awaitable[Any]) -> None:
    await result
