"""Lists, and the event feed, for asyncio."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, AsyncIterator, Awaitable, Callable, Coroutine, Generic, Optional, Union, cast

from .async_waits import unless_set
from .errors import ErrorAnswer, NoAnswerError
from .pages import LONGEST_WAIT, Item, Page, wait_after_trouble
from .telling import finish, tell
from .waits import StoppedError

if TYPE_CHECKING:
    from .contract import Event


class AsyncPages(Generic[Page, Item]):
    """A list. Going through it reads page after page, each when it is needed."""

    def __init__(self, read: Callable[[Optional[str]], Awaitable[Any]]) -> None:
        self._read = read

    async def page(self) -> Page:
        """The first page, or the one at the cursor that was given."""
        return cast(Page, await self._read(None))

    async def pages(self) -> AsyncIterator[Page]:
        """Page after page."""
        page = await self._read(None)
        yield cast(Page, page)
        while page["has_more"] and page["next_cursor"] is not None:
            page = await self._read(page["next_cursor"])
            yield cast(Page, page)

    async def __aiter__(self) -> AsyncIterator[Item]:
        async for page in self.pages():
            for item in cast(Any, page)["data"]:
                yield item


class AsyncEventFeed:
    """The event feed from a cursor on.

    It goes on for ever, through outages too, until `stop` is set, the loop is left, its task is cancelled or the gateway refuses for
    good, such as when the key was revoked.
    """

    def __init__(
        self,
        read: Callable[[Optional[str], int], Awaitable[Any]],
        *,
        cursor: Optional[str],
        limit: int,
        poll_seconds: float,
        stop: Optional[asyncio.Event],
        on_trouble: Optional[Callable[[Union[NoAnswerError, ErrorAnswer], float], Optional[Awaitable[None]]]],
    ) -> None:
        self._read = read
        self._limit = limit
        self._poll_seconds = poll_seconds
        self._stop = stop
        self._on_trouble = on_trouble
        self._cursor = cursor

    @property
    def cursor(self) -> Optional[str]:
        """Where to go on later.

        It moves when the loop asks for more after the last event of a page, so everything before it was handled. Store it as
        often as you like.
        """
        return self._cursor

    async def skip_to_end(self) -> None:
        """Goes past all events there are now, without handing them out."""
        while not self._is_stopped():
            page = await self._patiently(100)
            if page is None:
                return
            self._cursor = page["next_cursor"]
            if not page["has_more"]:
                return

    async def __aiter__(self) -> AsyncIterator["Event"]:
        while not self._is_stopped():
            page = await self._patiently(self._limit)
            if page is None:
                return
            for event in page["data"]:
                yield event
                if self._is_stopped():
                    return
            self._cursor = page["next_cursor"]
            if not page["has_more"]:
                await self._wait(self._poll_seconds)

    async def _patiently(self, limit: int) -> Any:
        """Reads what follows, as often as it takes; None once stopped."""
        attempt = 0
        while not self._is_stopped():
            attempt += 1
            try:
                return await unless_set(self._stop, self._read(self._cursor, limit))
            except StoppedError:
                return None
            except (NoAnswerError, ErrorAnswer) as error:
                wait = wait_after_trouble(error, attempt)
                if wait is None:
                    raise
                if self._on_trouble is not None:
                    told = tell(self._on_trouble, (error, wait), "on_trouble")
                    await self._unless_stopped(finish(told, LONGEST_WAIT))
                await self._wait(wait)
        return None

    def _is_stopped(self) -> bool:
        return self._stop is not None and self._stop.is_set()

    async def _wait(self, seconds: float) -> None:
        await self._unless_stopped(asyncio.sleep(seconds))

    async def _unless_stopped(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await unless_set(self._stop, work)
        except StoppedError:
            return
