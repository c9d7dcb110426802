"""The client."""

from __future__ import annotations

import decimal
import http.client
import json
import re
import ssl
import threading
import time
import uuid
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union
from urllib.parse import quote, urlencode, urlsplit

from .contract import LIST_EVENTS, Operation, Operations
from .errors import CallState, ErrorAnswer, ErrorDetails, NoAnswerError, error_answer
from .pages import EventFeed, Pages
from .retries import Failure, leaves_unknown, settles, wait_before_repeat
from .transport import HttpAnswer, Transport

_LOOPBACK = re.compile(r"(?:localhost|127(?:\.\d{1,3}){3}|::1)")


class AnswerDetails(NamedTuple):
    """What is known about an answer, in addition to its body."""

    operation: str
    status: int
    request_id: Optional[str]
    """Names the answer to support."""
    is_replayed: bool
    """Whether this is the answer to an earlier request with the same Idempotency-Key."""
    idempotency_key: Optional[str]
    attempt: int
    """1 for the first attempt of this call."""


class Marina(Operations):
    """Marina's operations with a key of yours.

    A call is made again by itself where that is safe: with the same Idempotency-Key, after the time that the gateway asks for.
    What fails is raised as a `MarinaError`. Answers are dicts, as JSON has them. Any number of threads may use a client.

    base_url: where the gateway is, as in `https://api.example.com`.
    key: a key, `marina_test_…` or `marina_live_…`.
    attempt_seconds: how long one attempt may take: longer than the gateway waits for an answer that was lost.
    deadline: how long a call may take with all its attempts and waits, in seconds; each call can have its own.
    max_attempts: how often a request is sent at most.
    on_answer: called for every answer, also for those after which the request is sent again.
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
        max_attempts: int = 5,
        on_answer: Optional[Callable[[AnswerDetails], None]] = None,
        allow_plaintext: bool = False,
        ssl_context: Optional[ssl.SSLContext] = None,
    ) -> None:
        parts = urlsplit(base_url)
        if not re.fullmatch(r"[!-~]+", key):
            raise ValueError("The key is empty, or has characters that no key has.")
        if parts.scheme != "https" and not _LOOPBACK.fullmatch(parts.hostname or "") and not allow_plaintext:
            raise ValueError(
                "The base URL has to be https: the key would travel in plain text. `allow_plaintext` permits it."
            )
        self._key = key
        self._attempt_seconds = attempt_seconds
        self._deadline = deadline
        self._max_attempts = max_attempts
        self._on_answer = on_answer
        self._transport = Transport(base_url, ssl_context)

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
        stop: ends the loop when it is set.
        on_trouble: called when the feed cannot be read at the moment. It is tried again.
        """

        def read(at: Optional[str], most: int) -> Any:
            return self._call(LIST_EVENTS, {"cursor": at, "limit": most})

        return EventFeed(
            read, cursor=cursor, limit=limit, poll_seconds=poll_seconds, stop=stop, on_trouble=on_trouble
        )

    def _list(self, operation: Operation, values: Dict[str, Any], deadline: Optional[float]) -> Pages[Any, Any]:
        def read(cursor: Optional[str]) -> Any:
            more = values if cursor is None else {**values, "cursor": cursor}
            return self._call(operation, more, None, deadline)

        return Pages(read)

    def _call(
        self,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[str] = None,
        deadline: Optional[float] = None,
    ) -> Any:
        key = (str(uuid.uuid4()) if idempotency_key is None else idempotency_key) if operation.takes_key else None
        if key is not None and not re.fullmatch(r"[ -~]{1,255}", key):
            raise ValueError("An Idempotency-Key has 1 to 255 printable ASCII characters.")
        path, headers, body = self._request(operation, values, key)
        ends_at = time.monotonic() + (self._deadline if deadline is None else deadline)
        is_safe = operation.method != "POST" or operation.takes_key
        is_unknown = False
        attempt = 0
        while True:
            attempt += 1
            left = max(0.001, min(self._attempt_seconds, ends_at - time.monotonic()))
            details: Optional[ErrorDetails] = None
            cause: Optional[BaseException] = None
            try:
                # The first attempt may meet a connection that was closed just now; the next ones get a new one.
                answer = self._transport.send(
                    operation.method, path, headers, body, left, is_safe and attempt == 1
                )
            except (OSError, http.client.HTTPException) as error:
                cause = error
                failure = Failure()
            else:
                self._tell(operation, answer, key, attempt)
                if 200 <= answer.status < 300:
                    try:
                        return json.loads(answer.body.decode("utf-8"), parse_float=decimal.Decimal)
                    except ValueError as error:
                        cause = error
                        failure = Failure()
                else:
                    details = _error_details(operation, answer)
                    failure = Failure(details.status, details.code, details.retry_after_seconds)
            is_unknown = is_unknown or (operation.method != "GET" and leaves_unknown(failure))
            wait = wait_before_repeat(failure, operation.method, operation.takes_key, attempt)
            if wait is not None and attempt < self._max_attempts and time.monotonic() + wait < ends_at:
                time.sleep(wait)
                continue
            state = CallState(operation.name, key, attempt, is_unknown and not settles(failure))
            if details is not None:
                raise error_answer(details, state)
            raise NoAnswerError(f"{operation.name} got no answer", state) from cause

    def _request(
        self, operation: Operation, values: Dict[str, Any], key: Optional[str]
    ) -> Tuple[str, Dict[str, str], Optional[bytes]]:
        """Puts what an operation takes where it belongs: into the path, the query or the body."""
        left = {name: value for name, value in values.items() if value is not None}
        path = operation.path
        for name in operation.path_names:
            value = left.pop(name, None)
            # An empty segment or one of dots would make another path.
            if not isinstance(value, str) or value in ("", ".", ".."):
                raise TypeError(f"{operation.name} needs `{name}`.")
            path = path.replace("{" + name + "}", quote(value, safe=""))
        query = {name: _query_value(left.pop(name)) for name in operation.query_names if name in left}
        if query:
            path += "?" + urlencode(query)
        headers = {"Authorization": f"Bearer {self._key}", "Accept": "application/json"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if operation.body == "none":
            return path, headers, None
        if operation.body == "file":
            headers["Content-Type"] = left["media_type"]
            return path, headers, bytes(left["file"])
        headers["Content-Type"] = "application/json"
        return path, headers, json.dumps(left, ensure_ascii=False, allow_nan=False).encode("utf-8")

    def _tell(self, operation: Operation, answer: HttpAnswer, key: Optional[str], attempt: int) -> None:
        if self._on_answer is None:
            return
        is_replayed = answer.headers.get("idempotent-replayed") == "true"
        request_id = answer.headers.get("x-request-id")
        self._on_answer(AnswerDetails(operation.name, answer.status, request_id, is_replayed, key, attempt))


def _query_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _error_details(operation: Operation, answer: HttpAnswer) -> ErrorDetails:
    """Reads an error. What stands before the gateway may answer with anything."""
    error: Dict[str, Any] = {}
    try:
        body = json.loads(answer.body.decode("utf-8"))
        if isinstance(body, dict) and isinstance(body.get("error"), dict):
            error = body["error"]
    except ValueError:
        # No JSON: only the status is known.
        error = {}

    def member(name: str) -> Optional[str]:
        value = error.get(name)
        return value if isinstance(value, str) else None

    seconds = answer.headers.get("retry-after", "")
    code = member("code")
    reason = "" if code is None else f" {code}: {member('message')}"
    return ErrorDetails(
        status=answer.status,
        type=member("type"),
        code=code,
        message=f"{operation.name} was answered {answer.status}{reason}",
        doc_url=member("doc_url"),
        param=member("param"),
        reject_reason=member("reject_reason"),
        location=answer.headers.get("location"),
        request_id=answer.headers.get("x-request-id"),
        retry_after_seconds=int(seconds) if re.fullmatch(r"\d{1,5}", seconds) else None,
    )


