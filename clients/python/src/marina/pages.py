"""Lists, and the event feed."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Callable, Generic, Iterator, Optional, TypeVar, Union, cast

from .errors import ErrorAnswer, NoAnswerError
from .retries import Failure, wait_before_repeat
from .telling import refuse, tell
from .waits import StoppedError

if TYPE_CHECKING:
    from .contract import Event

Page = TypeVar("Page")
Item = TypeVar("Item")

LONGEST_WAIT = 30.0


class Pages(Generic[Page, Item]):
    """A list. Going through it reads page after page, each when it is needed."""

    def __init__(self, read: Callable[[Optional[str]], Any]) -> None:
        self._read = read

    def page(self) -> Page:
        """The first page, or the one at the cursor that was given."""
        return cast(Page, self._read(None))

    def pages(self) -> Iterator[Page]:
        """Page after page."""
        page = self._read(None)
        yield cast(Page, page)
        while page["has_more"] and page["next_cursor"] is not None:
            page = self._read(page["next_cursor"])
            yield cast(Page, page)

    def __iter__(self) -> Iterator[Item]:
        for page in self.pages():
            yield from cast(Any, page)["data"]


class EventFeed:
    """The event feed from a cursor on.

    It goes on for ever, through outages too, until `stop` is set, the loop is left or the gateway refuses for good, such as
    when the key was revoked.
    """

    def __init__(
        self,
        read: Callable[[Optional[str], int], Any],
        *,
        cursor: Optional[str],
        limit: int,
        poll_seconds: float,
        stop: threading.Event,
        on_trouble: Optional[Callable[[Union[NoAnswerError, ErrorAnswer], float], None]],
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

    def skip_to_end(self) -> None:
        """Goes past all events there are now, without handing them out."""
        while not self._stop.is_set():
            page = self._patiently(100)
            if page is None:
                return
            self._cursor = page["next_cursor"]
            if not page["has_more"]:
                return

    def __iter__(self) -> Iterator["Event"]:
        while not self._stop.is_set():
            page = self._patiently(self._limit)
            if page is None:
                return
            for event in page["data"]:
                yield event
                if self._stop.is_set():
                    return
            self._cursor = page["next_cursor"]
            if not page["has_more"]:
                self._stop.wait(self._poll_seconds)

    def _patiently(self, limit: int) -> Any:
        """Reads what follows, as often as it takes; None once stopped."""
        attempt = 0
        while not self._stop.is_set():
            attempt += 1
            try:
                return self._read(self._cursor, limit)
            except StoppedError:
                return None
            except (NoAnswerError, ErrorAnswer) as error:
                wait = wait_after_trouble(error, attempt)
                if wait is None:
                    raise
                if self._on_trouble is not None:
                    refuse(tell(self._on_trouble, (error, wait), "on_trouble"))
                self._stop.wait(wait)
        return None


def wait_after_trouble(error: Union[NoAnswerError, ErrorAnswer], attempt: int) -> Optional[float]:
    """How many seconds to wait before the feed is read again after a call of it failed; None if it must not be."""
    failure = Failure()
    if isinstance(error, ErrorAnswer):
        failure = Failure(error.status, error.code, error.retry_after_seconds)
    wait = wait_before_repeat(failure, "GET", False, attempt)
    return None if wait is None else min(LONGEST_WAIT, wait)
