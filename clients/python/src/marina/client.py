"""The client."""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from typing import Any, Callable, Dict, Optional, Union

from .answers import is_event_page, is_page
from .calls import Call
from .contract import LIST_EVENTS, Operation
from .errors import ErrorAnswer, NoAnswerError
from .operations import Operations
from .pages import EventFeed, Pages
from .settings import AnswerDetails, check_function, read_address, read_settings, seconds_of
from .telling import refuse
from .transport import Transport


class Marina(Operations):
    """Marina's operations with a key of yours.

    A call is made again by itself where that is safe: with the same Idempotency-Key, after the time that the gateway asks for.
    What fails is raised as a `MarinaError`. Answers are dicts, as JSON has them. Any number of threads may use a client, and so may
    processes that are forked from one that has it.

    base_url: where the gateway is, as in `https://api.example.com`.
    key: a key, `marina_test_…` or `marina_live_…`.
    attempt_seconds: how long one attempt may take: longer than the gateway waits for an answer that was lost.
    deadline: how long a call may take with all its attempts and waits, in seconds; each call can have its own.
    max_attempts: how often a request is sent at most.
    on_answer: called for every answer, also for those after which the request is sent again. What it raises is logged, and
        changes nothing of the call. It cannot be `async`: `AsyncMarina` takes such a function.
    allow_plaintext: lets the key travel in plain text to another machine.
    ssl_context: which certificates to trust; the system's if absent.
    """

    def __init__(
        self,
        base_url: str,
        key: str,
        *,
        attempt_seconds: float = 45.0,
        deadline: float = 120.0,
        max_attempts: int = 12,
        on_answer: Optional[Callable[[AnswerDetails], None]] = None,
        allow_plaintext: bool = False,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        self._settings = read_settings(key, attempt_seconds, deadline, max_attempts, on_answer)
        address = read_address(base_url, allow_plaintext, ssl_context)
        self._transport = Transport(address)

    def __enter__(self) -> "Marina":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections that are kept. A call after it opens new ones."""
        self._transport.close()

    def follow_events(
        self,
        *,
        cursor: Optional[str] = None,
        limit: int = 100,
        poll_seconds: float = 1.0,
        stop: Optional[threading.Event] = None,
        on_trouble: Optional[Callable[[Union[NoAnswerError, ErrorAnswer], float], None]] = None,
    ) -> EventFeed:
        """Follows the event feed: every event from a cursor on, in order and without a gap. It does not end by itself.

        cursor: where to go on: the `cursor` of an earlier feed. Without it, from the oldest event that is kept, of 30 days.
        limit: how many events are read at once, 1 to 100. A program that stops in the middle of them meets them again.
        poll_seconds: how long to wait when there is nothing new.
        stop: ends the loop when it is set, within a second, whatever the feed waits for.
        on_trouble: called after each attempt that failed, with its error and the seconds until the next attempt. What it raises
            is logged, and changes nothing. It cannot be `async`.
        """

        check_function("on_trouble", on_trouble, awaits=False)
        ends = stop if stop is not None else threading.Event()
        wait = seconds_of("poll_seconds", poll_seconds, 0.0)
        # The feed itself repeats what failed, so that trouble and a stop are noticed soon.
        once = self._settings._replace(max_attempts=1)

        def read(at: Optional[str], most: int) -> Any:
            values = {"cursor": at, "limit": most}
            return self._run(Call(once, LIST_EVENTS, values, None, None, stop=ends, is_expected=is_event_page))

        return EventFeed(
            read, cursor=cursor, limit=limit, poll_seconds=wait, stop=ends, on_trouble=on_trouble
        )

    def _list(self, operation: Operation, values: Dict[str, Any], deadline: Optional[float]) -> Pages[Any, Any]:
        def read(cursor: Optional[str]) -> Any:
            more = values if cursor is None else {**values, "cursor": cursor}
            return self._run(Call(self._settings, operation, more, None, deadline, is_expected=is_page))

        return Pages(read)

    def _call(
        self,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Any:
        return self._run(Call(self._settings, operation, values, idempotency_key, deadline))

    def _run(self, call: Call) -> Any:
        while True:
            attempt = call.begin()
            try:
                answer = self._transport.send(attempt)
            except (OSError, EOFError, http.client.HTTPException) as error:
                wait = call.failed(error)
            else:
                refuse(call.tell(answer))
                again_after, value = call.answered(answer)
                if again_after is None:
                    return value
                wait = again_after
            time.sleep(wait)
