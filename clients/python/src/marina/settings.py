"""How a client is made: its options, and where its gateway is."""

from __future__ import annotations

import functools
import inspect
import math
import operator
import re
import ssl
from typing import Any, Awaitable, Callable, NamedTuple, Optional
from urllib.parse import urlsplit

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


class Settings(NamedTuple):
    """How a client was made."""

    key: str
    attempt_seconds: float
    deadline: float
    max_attempts: int
    on_answer: Optional[Callable[[AnswerDetails], Optional[Awaitable[None]]]]


class Address(NamedTuple):
    """Where a gateway is."""

    host: str
    port: Optional[int]
    prefix: str
    is_tls: bool
    ssl_context: Optional[ssl.SSLContext]
    """Which certificates are trusted; the system's if absent."""


def read_settings(
    key: str,
    attempt_seconds: float,
    deadline: float,
    max_attempts: int,
    on_answer: Optional[Callable[[AnswerDetails], Optional[Awaitable[None]]]],
    *,
    awaits: bool = False,
) -> Settings:
    """Checks the options of a client. Raises a ValueError for one that it cannot have. `awaits`: whether it awaits functions."""
    if not isinstance(key, str) or not re.fullmatch(r"[!-~]+", key):
        raise ValueError("The key is empty, or has characters that no key has.")
    check_function("on_answer", on_answer, awaits=awaits)
    return Settings(
        key,
        seconds_of("attempt_seconds", attempt_seconds),
        seconds_of("deadline", deadline),
        count_of("max_attempts", max_attempts),
        on_answer,
    )


def check_function(name: str, value: Any, *, awaits: bool) -> None:
    """Raises a ValueError for what is no function, and for one that has to be awaited if nobody awaits it."""
    if value is None:
        return
    if not callable(value):
        raise ValueError(f"`{name}` has to be a function.")
    if not awaits and _is_asynchronous(value):
        raise ValueError(f"`{name}` has to be a function that is not `async`: only `AsyncMarina` awaits one.")


def _is_asynchronous(function: Any) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    # An object can be called by a method of its class.
    return any(
        inspect.iscoroutinefunction(each) or inspect.isasyncgenfunction(each)
        for each in (function, getattr(type(function), "__call__", None))
    )


def seconds_of(name: str, value: Any, least: float = math.ulp(0.0)) -> float:
    """A number of seconds. Raises a ValueError for what is none, is not finite, or is below `least`: above 0, if absent."""
    try:
        seconds = float(value) if not isinstance(value, (str, bytes, bool)) else math.nan
    except (TypeError, ValueError, OverflowError):
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < least:
        raise ValueError(f"`{name}` has to be a finite number of seconds{'' if least <= 0 else ' above 0'}.")
    return seconds


def count_of(name: str, value: Any) -> int:
    """A whole number of 1 or more. Raises a ValueError for anything else."""
    try:
        count = operator.index(value) if not isinstance(value, bool) else 0
    except TypeError:
        count = 0
    if count < 1:
        raise ValueError(f"`{name}` has to be a whole number of 1 or more.")
    return count


def read_address(base_url: str, allow_plaintext: bool, ssl_context: Optional[ssl.SSLContext]) -> Address:
    """Reads the base URL of a gateway. Raises a ValueError for one that is none, or over which a key must not travel.

    No error has the URL: it may have a password.
    """
    if not isinstance(base_url, str) or not re.fullmatch(r"[!-~]+", base_url):
        raise ValueError("The base URL has to be a URL of http or https.")
    parts = urlsplit(base_url)
    host = parts.hostname
    if host is None or parts.scheme not in ("http", "https"):
        raise ValueError("The base URL has to be a URL of http or https.")
    if "@" in parts.netloc:
        raise ValueError("The base URL must not have a user name or a password: the key alone says who calls.")
    if "?" in base_url or "#" in base_url:
        raise ValueError("The base URL must not have a query or a fragment.")
    if parts.scheme != "https" and not _LOOPBACK.fullmatch(host) and not allow_plaintext:
        raise ValueError(
            "The base URL has to be https: the key would travel in plain text. `allow_plaintext` permits it."
        )
    # Names whose parts are empty or too long are refused here, and not when a call is made.
    host.encode("idna")
    is_tls = parts.scheme == "https"
    return Address(host, parts.port, parts.path.rstrip("/"), is_tls, ssl_context if is_tls else None)
