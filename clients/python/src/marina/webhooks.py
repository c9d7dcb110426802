"""Verifies webhooks."""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import re
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, Optional, Protocol, Tuple, Union, cast

from .answers import UnreadableBodyError, read_object
from .errors import MarinaError
from .settings import seconds_of

if TYPE_CHECKING:
    from .contract import Event


class HeaderMapping(Protocol):
    """Headers by their names, as most servers have them."""

    def items(self) -> Iterable[Tuple[Any, Any]]: ...


# Also the environ of WSGI and CGI, where a name is HTTP_WEBHOOK_ID, and the pairs of bytes of ASGI.
Headers = Union[HeaderMapping, Iterable[Tuple[Any, Any]]]


class WebhookVerificationError(MarinaError):
    """A webhook is not to be believed. Answer 400, and read nothing of it."""


def verify_webhook(
    secret: str,
    headers: Headers,
    body: bytes,
    *,
    tolerance_seconds: float = 300,
    now: Optional[float] = None,
) -> "Event":
    """Verifies a webhook and reads its event.

    `body` is the request's raw bytes, as they came: parsed and written again they have another signature. Accepts if any of the
    signatures is right, which is so while a secret is being changed. Raises a `WebhookVerificationError` otherwise, and a ValueError
    for a secret that is none, or a time that is not finite.

    `headers` are the request's, as your server has them: a mapping whatever the case of its names, the environ of WSGI or CGI
    (Django's `request.META`, `os.environ`), the pairs of ASGI, or a mapping to lists.
    """
    if isinstance(body, str) or not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("Pass the raw bytes of the body: parsed and written again they have another signature.")
    key = _key(secret)
    tolerance = seconds_of("tolerance_seconds", tolerance_seconds, 0.0)
    clock = time.time() if now is None else seconds_of("now", now, -math.inf)
    webhook_id, *_ = _values(headers, "webhook-id")
    timestamp, *_ = _values(headers, "webhook-timestamp")
    signatures = " ".join(_values(headers, "webhook-signature"))
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(clock - int(timestamp)) > tolerance:
        raise WebhookVerificationError("The webhook is too old, or its time is ahead of this clock.")
    expected = _signature(key, webhook_id, timestamp, body).encode("ascii")
    # Servers join two headers of one name with a comma, as there is one within each signature.
    given = re.findall(r"(?<![^\s,])v1,[A-Za-z0-9+/]+=*(?![^\s,])", signatures)
    if not any([hmac.compare_digest(each.encode("ascii"), expected) for each in given]):
        raise WebhookVerificationError("No signature of the webhook is right: the secret or the body is another.")
    try:
        event = read_object(bytes(body))
    except UnreadableBodyError as error:
        raise WebhookVerificationError("The webhook has no event.") from error
    if event.get("id") != webhook_id:
        raise WebhookVerificationError("The webhook has the id of another event.")
    return cast("Event", event)


def sign_webhook(secret: str, webhook_id: str, body: bytes, *, now: Optional[float] = None) -> Dict[str, str]:
    """The headers of a webhook, signed. For tests of an endpoint."""
    timestamp = str(int(time.time() if now is None else seconds_of("now", now, 0.0)))
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": _signature(_key(secret), webhook_id, timestamp, body),
    }


def _signature(key: bytes, webhook_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{webhook_id}.{timestamp}.".encode("utf-8") + bytes(body)
    return "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode("ascii")


def _key(secret: Any) -> bytes:
    try:
        if isinstance(secret, str) and secret.startswith("whsec_"):
            key = base64.b64decode(secret[len("whsec_") :], validate=True)
            if key:
                return key
    except ValueError:
        # Reported below.
        pass
    raise ValueError("The secret has to be `whsec_` and base64.")


def _values(headers: Headers, name: str) -> List[str]:
    """The values of a header, whatever form the server gives it: one or more."""
    pairs: Iterable[Tuple[Any, Any]] = cast(Any, headers).items() if hasattr(headers, "items") else cast(Any, headers)
    environ_name = "HTTP_" + name.upper().replace("-", "_")
    found: Dict[bool, List[str]] = {}
    for each, value in pairs:
        text = _as_text(each)
        # Where the environ has a variable WEBHOOK_ID too, it is the process's and no header.
        is_environ = text == environ_name
        if is_environ or text.lower().replace("_", "-") in (name, "http-" + name):
            found.setdefault(is_environ, []).extend(_texts_of(value))
    values = [each for each in found.get(True, found.get(False, [])) if each]
    if not values:
        raise WebhookVerificationError(f"The webhook has no {name}.")
    return values


def _texts_of(value: Any) -> Iterable[str]:
    """The texts of a value. Some servers have a list of values of each name."""
    for each in value if isinstance(value, (list, tuple)) else [value]:
        # What is no ASCII is in no good header, and a surrogate could not be encoded again.
        yield _as_text(each).strip().encode("ascii", "replace").decode("ascii")


def _as_text(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""
