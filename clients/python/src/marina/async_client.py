"""The client for asyncio."""

from __future__ import annotations

import asyncio
import http.client
import ssl
from typing import Any, Awaitable, Callable, Dict, Optional, Union

from .answers import is_event_page, is_page
from .async_operations import AsyncOperations
from .async_pages import AsyncEventFeed, AsyncPages
from .async_transport import AsyncTransport
from .calls import Call
from .contract import LIST_EVENTS, Operation
from .errors import ErrorAnswer, NoAnswerError
from .settings import AnswerDetails, check_function, count_of, read_address, read_settings, seconds_of
from .telling import finish


class AsyncMarina(AsyncOperations):
    """Marina's operations with a key of yours, for programs that use asyncio.

    It has the methods of `Marina`, with the same arguments, answers, retries and errors: await each, and go through lists and events
    with `async for`. A task that is cancelled closes its connection; what was sent stays sent. Any number of tasks and of event
    loops may use a client.

    max_connections: how many requests are under way at once in an event loop. Others wait for one to end, within their deadline.
    on_answer: may be `async` too. It is awaited before the call goes on, within the call's deadline.
    The other arguments are those of `Marina`.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        attempt_seconds: float = 45.0,
        deadline: float = 120.0,
        max_attempts: int = 12,
        on_answer: Optional[Callable[[AnswerDetails], Optional[Awaitable[None]]]] = None,
        allow_plaintext: bool = False,
        ssl_context: Optional[ssl.SSLContext] = None,
        max_connections: int = 64,
    ) -> None:
        self._settings = read_settings(key, attempt_seconds, deadline, max_attempts, on_answer, awaits=True)
        address = read_address(base_url, allow_plaintext, ssl_context)
        self._transport = AsyncTransport(address, count_of("max_connections", max_connections))

    async def __aenter__(self) -> "AsyncMarina":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections that this event loop keeps. A call after it opens new ones."""
        await self._transport.close()

    def follow_events(
        self,
        *,
        cursor: Optional[str] = None,
        limit: int = 100,
        poll_seconds: float = 1.0,
        stop: Optional[asyncio.Event] = None,
        on_trouble: Optional[Callable[[Union[NoAnswerError, ErrorAnswer], float], Optional[Awaitable[None]]]] = None,
    ) -> AsyncEventFeed:
        """Follows the event feed: every event from a cursor on, in order and without a gap. It does not end by itself.

        cursor: where to go on: the `cursor` of an earlier feed. Without it, from the oldest event that is kept, of 30 days.
        limit: how many events are read at once, 1 to 100. A program that stops in the middle of them meets them again.
        poll_seconds: how long to wait when there is nothing new.
        stop: ends the loop when it is set, within a second, whatever the feed waits for.
        on_trouble: called after each attempt that failed, with its error and the seconds until the next attempt. What it raises
            is logged, and changes nothing. It may be `async`, and is awaited, 30 seconds at most.
        """

        check_function("on_trouble", on_trouble, awaits=True)
        wait = seconds_of("poll_seconds", poll_seconds, 0.0)
        # The feed itself repeats what failed, so that trouble is noticed soon.
        once = self._settings._replace(max_attempts=1)

        async def read(at: Optional[str], most: int) -> Any:
            values = {"cursor": at, "limit": most}
            return await self._run(Call(once, LIST_EVENTS, values, None, None, is_expected=is_event_page))

        return AsyncEventFeed(
            read, cursor=cursor, limit=limit, poll_seconds=wait, stop=stop, on_trouble=on_trouble
        )

    def _list(
        self, operation: Operation, values: Dict[str, Any], deadline: Optional[float]
    ) -> AsyncPages[Any, Any]:
        async def read(cursor: Optional[str]) -> Any:
            more = values if cursor is None else {**values, "cursor": cursor}
            return await self._run(Call(self._settings, operation, more, None, deadline, is_expected=is_page))

        return AsyncPages(read)

    async def _call(
        self,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Any:
        return await self._run(Call(self._settings, operation, values, idempotency_key, deadline))

    async def _run(self, call: Call) -> Any:
        while True:
            wait = await self._attempt(call)
            if isinstance(wait, dict):
                return wait
            await asyncio.sleep(wait)

    async def _attempt(self, call: Call) -> Union[float, Dict[str, Any]]:
        """How long to wait before the next attempt, or the body of a good answer."""
        slots = self._transport.slots()
        try:
            await slots.acquire(call.seconds_left)
        except asyncio.TimeoutError:
            raise call.not_sent_in_time() from None
        try:
            answer = await self._transport.send(call.begin())
        except (OSError, EOFError, http.client.HTTPException) as error:
            return call.failed(error)
        finally:
            slots.release()
        await finish(call.tell(answer), call.seconds_left)
        again_after, value = call.answered(answer)
        return value if again_after is None else again_after
