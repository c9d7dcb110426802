"""Reads answers."""

from __future__ import annotations

import decimal
import json
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

from .contract import Operation
from .errors import ErrorDetails

# No answer is longer: a page has at most 100 items.
MAX_ANSWER_BYTES = 32 * 1024 * 1024
# No number of the contract has as many. Without a bound, numbers of a million digits take minutes to read.
_MAX_DIGITS = 400
# A body of another server can be nested so deeply, or have such numbers, that it cannot be read.
_UNREADABLE = (ValueError, ArithmeticError, RecursionError, MemoryError)


class HttpAnswer(NamedTuple):
    """An answer, whatever it says."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


class UnreadableBodyError(Exception):
    """A body is not the gateway's: it is no JSON object, is too deep, has a member twice, or has numbers that are too long."""


def read_object(body: bytes) -> Dict[str, Any]:
    """Reads a JSON object, with all digits of all numbers. Raises an UnreadableBodyError, and nothing else.

    `NaN` and `Infinity` are no JSON. If an object has a member twice, two readers can see two different objects.
    """
    try:
        value = json.loads(
            body.decode("utf-8"),
            parse_float=_exact_decimal,
            parse_int=_whole_number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object_of,
        )
    except _UNREADABLE as error:
        raise UnreadableBodyError(f"the body cannot be read: {type(error).__name__}") from error
    if not isinstance(value, dict):
        raise UnreadableBodyError("the body is no JSON object")
    return value


def is_page(value: Dict[str, Any]) -> bool:
    """Whether an object is a page of a list: its objects, and where the next page begins if there is one."""
    data, has_more, cursor = value.get("data"), value.get("has_more"), value.get("next_cursor")
    if not isinstance(data, list) or not all(isinstance(each, dict) for each in data) or not isinstance(has_more, bool):
        return False
    return is_cursor(cursor) or (not has_more and cursor is None)


def is_event_page(value: Dict[str, Any]) -> bool:
    """Whether an object is a page of the feed. It says where the feed goes on, also where nothing follows yet."""
    return is_page(value) and is_cursor(value.get("next_cursor"))


def is_cursor(value: object) -> bool:
    """Whether a value can be sent as a cursor."""
    return isinstance(value, str) and value != ""


def error_details(operation: Operation, answer: HttpAnswer) -> ErrorDetails:
    """Reads an error. A proxy before the gateway may answer with anything."""
    error: Dict[str, Any] = {}
    try:
        body = read_object(answer.body)
        if isinstance(body.get("error"), dict):
            error = body["error"]
    except UnreadableBodyError:
        # Only the status is known.
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
        retry_after_seconds=int(seconds) if re.fullmatch(r"[0-9]{1,5}", seconds) else None,
    )


def _whole_number(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("a number has too many digits")
    return int(digits)


def _exact_decimal(text: str) -> decimal.Decimal:
    if len(text) > _MAX_DIGITS:
        raise ValueError("a number has too many digits")
    return decimal.Decimal(text)


def _refuse_constant(_text: str) -> None:
    raise ValueError("JSON has no such number")


def _object_of(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a member twice")
    return members
