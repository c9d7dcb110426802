"""Waits of asyncio that never lose a cancel.

Before Python 3.12 `asyncio.wait_for` ignores a cancel that comes together with the result, and the semaphore can lose a turn.
"""

from __future__ import annotations

import asyncio
import collections
from typing import Any, Coroutine, Deque, Optional, TypeVar

from .waits import StoppedError

Result = TypeVar("Result")

# How long an abandoned piece of work may take to end.
_END_SECONDS = 1.0


async def within(seconds: float, work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine. Raises an `asyncio.TimeoutError` and cancels it after so many seconds."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait((task,), timeout=seconds)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,), timeout=_END_SECONDS)
        if not task.done() or task.cancelled():
            raise asyncio.TimeoutError()
        return task.result()
    finally:
        _abandon(task)


async def unless_set(stop: Optional[asyncio.Event], work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine. Raises a StoppedError and cancels it once the event is set."""
    if stop is None:
        return await work
    task, stopping = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait((task, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise StoppedError()
        return task.result()
    finally:
        _abandon(task)
        _abandon(stopping)


def _abandon(task: "asyncio.Future[Any]") -> None:
    """Cancels what is not done. Nobody asks how it ended."""
    task.cancel()
    # An error that nobody reads would be logged.
    task.add_done_callback(lambda done: done.cancelled() or done.exception())


class Slots:
    """So many pieces of work may be under way at once. Others wait for their turn, first come first served."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._waiting: Deque["asyncio.Future[None]"] = collections.deque()

    async def acquire(self, seconds: float) -> None:
        """Waits for a turn. Raises an `asyncio.TimeoutError` if none comes in time."""
        if self._free > 0:
            self._free -= 1
            return
        turn: "asyncio.Future[None]" = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await asyncio.wait((turn,), timeout=seconds)
            if not turn.done():
                raise asyncio.TimeoutError()
        except BaseException:
            if turn.done():
                # It was given together with the cancel, and is another's now.
                self.release()
            else:
                self._waiting.remove(turn)
            raise

    def release(self) -> None:
        """Gives a turn back."""
        if self._waiting:
            self._waiting.popleft().set_result(None)
        else:
            self._free += 1
