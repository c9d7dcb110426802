"""One call with all its attempts: what is sent, when it is sent again, and what is raised. It sends nothing itself."""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple
from urllib.parse import quote, urlencode

from .answers import HttpAnswer, UnreadableBodyError, error_details, read_object
from .contract import Operation
from .errors import CallState, CallTimeoutError, NoAnswerError, error_answer
from .retries import Failure, leaves_unknown, settles, wait_before_repeat
from .settings import AnswerDetails, Settings, seconds_of
from .telling import Told, tell
from .values import plain_bytes, plain_value, query_text


class Attempt(NamedTuple):
    """What is sent, and how."""

    method: str
    path: str
    headers: Dict[str, str]
    body: Optional[bytes]
    seconds: float
    """How long it may take."""
    may_reuse: bool
    """Whether it may be sent over a connection that was kept, which may have been closed just now."""
    stop: Optional[threading.Event]
    """Ends it early when it is set."""


class Call:
    """A call. For each attempt a client asks `begin`, sends, and gives the result to `answered` or `failed`."""

    def __init__(
        self,
        settings: Settings,
        operation: Operation,
        values: Dict[str, Any],
        idempotency_key: Optional[object],
        deadline: Optional[float],
        *,
        stop: Optional[threading.Event] = None,
        is_expected: Callable[[Dict[str, Any]], bool] = lambda _: True,
    ) -> None:
        self._settings = settings
        self._stop = stop
        self._is_expected = is_expected
        self._operation = operation
        self._key = _key_of(operation, idempotency_key)
        self._path, self._headers, self._body = _request(settings.key, operation, values, self._key)
        self._ends_at = time.monotonic() + (settings.deadline if deadline is None else seconds_of("deadline", deadline))
        self._attempts = 0
        self._seconds = 0.0
        self._is_unknown = False

    @property
    def seconds_left(self) -> float:
        """How long the call may still take."""
        return max(0.001, self._ends_at - time.monotonic())

    def begin(self) -> Attempt:
        """The next attempt."""
        self._attempts += 1
        self._seconds = min(self._settings.attempt_seconds, self.seconds_left)
        is_safe = self._operation.method != "POST" or self._operation.takes_key
        # The first attempt may meet a connection that was closed just now; the next ones get a new one.
        return Attempt(
            self._operation.method,
            self._path,
            self._headers,
            self._body,
            self._seconds,
            is_safe and self._attempts == 1,
            self._stop,
        )

    def answered(self, answer: HttpAnswer) -> Tuple[Optional[float], Dict[str, Any]]:
        """How long to wait before the next attempt, or None and the body of a good answer. Raises what the call ends with."""
        if 200 <= answer.status < 300:
            try:
                value = read_object(answer.body)
                if self._is_expected(value):
                    return None, value
                raise UnreadableBodyError("the body is no page of a list")
            except UnreadableBodyError as error:
                return self.failed(error), {}
        details = error_details(self._operation, answer)
        failure = Failure(details.status, details.code, details.retry_after_seconds)
        wait = self._wait_after(failure)
        if wait is None:
            raise error_answer(details, self._state(failure))
        return wait, {}

    def failed(self, cause: Exception) -> float:
        """How long to wait before the next attempt, after one without an answer. Raises what the call ends with."""
        wait = self._wait_after(Failure())
        if wait is not None:
            return wait
        state = self._state(Failure())
        if isinstance(cause, TimeoutError):
            raise CallTimeoutError(f"{state.operation} got no answer within {self._seconds:.3g} s{_then(state)}", state) from cause
        raise NoAnswerError(f"{state.operation} got no answer{_then(state)}", state) from cause

    def not_sent_in_time(self) -> CallTimeoutError:
        """The error of a call whose time was over before its next attempt could be sent."""
        state = self._state(Failure())
        return CallTimeoutError(f"{state.operation} could not be sent before its deadline{_then(state)}", state)

    def _wait_after(self, failure: Failure) -> Optional[float]:
        method, takes_key = self._operation.method, self._operation.takes_key
        self._is_unknown = self._is_unknown or (method != "GET" and leaves_unknown(failure))
        wait = wait_before_repeat(failure, method, takes_key, self._attempts)
        if wait is None or self._attempts >= self._settings.max_attempts:
            return None
        return wait if time.monotonic() + wait < self._ends_at else None

    def _state(self, failure: Failure) -> CallState:
        is_unknown = self._is_unknown and not settles(failure)
        return CallState(self._operation.name, self._key, self._attempts, is_unknown)

    def tell(self, answer: HttpAnswer) -> Optional[Told]:
        """Tells `on_answer` of an answer. Raises nothing."""
        on_answer = self._settings.on_answer
        if on_answer is None:
            return None
        is_replayed = answer.headers.get("idempotent-replayed") == "true"
        request_id = answer.headers.get("x-request-id")
        details = AnswerDetails(
            self._operation.name, answer.status, request_id, is_replayed, self._key, self._attempts
        )
        return tell(on_answer, (details,), f"on_answer, called for an answer to {self._operation.name},")


def _then(state: CallState) -> str:
    if not state.is_outcome_unknown:
        return "."
    if state.idempotency_key is None:
        return ". Whether it was done is unknown."
    return ". Whether it was done is unknown: make the same call again with the same Idempotency-Key, `error.idempotency_key`."


def _key_of(operation: Operation, given: Optional[object]) -> Optional[str]:
    if not operation.takes_key:
        return None
    key = str(uuid.uuid4()) if given is None else plain_value("idempotency_key", given)
    if not isinstance(key, str):
        raise TypeError("An Idempotency-Key has to be a str.")
    key = key.strip(" \t")  # Blanks around it do not count, as over every protocol.
    if not re.fullmatch(r"[ -~]{1,255}", key):
        raise ValueError("An Idempotency-Key has 1 to 255 printable ASCII characters, without the blanks around it.")
    return key


def _request(
    own_key: str, operation: Operation, values: Dict[str, Any], key: Optional[str]
) -> Tuple[str, Dict[str, str], Optional[bytes]]:
    """Puts what an operation takes where it belongs: into the path, the query or the body."""
    headers = {"Authorization": f"Bearer {own_key}", "Accept": "application/json"}
    if key is not None:
        headers["Idempotency-Key"] = key
    body: Optional[bytes] = None
    left = dict(values)
    if operation.body == "file":
        body = plain_bytes("file", left.pop("file"))
        headers["Content-Type"] = _media_type(left.pop("media_type"))
    left = {name: plain_value(name, value) for name, value in left.items() if value is not None}
    path = operation.path
    for name in operation.path_names:
        value = left.pop(name, None)
        # An empty segment or one of dots would make another path.
        if not isinstance(value, str) or value in ("", ".", ".."):
            raise TypeError(f"{operation.name} needs `{name}`.")
        path = path.replace("{" + name + "}", quote(value, safe=""))
    query = {name: query_text(left.pop(name)) for name in operation.query_names if name in left}
    if query:
        path += "?" + urlencode(query)
    if operation.body == "json":
        headers["Content-Type"] = "application/json"
        body = json.dumps(left, ensure_ascii=False, allow_nan=False).encode("utf-8")
    return path, headers, body


def _media_type(value: object) -> str:
    media_type = plain_value("media_type", value)
    if not isinstance(media_type, str) or not re.fullmatch(r"[ -~]{1,255}", media_type):
        raise TypeError("`media_type` has to be one of the types that the contract names.")
    return media_type
