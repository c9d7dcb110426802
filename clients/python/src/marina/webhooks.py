"""Verifies webhooks."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import time
from typing import TYPE_CHECKING, Any, Dict, Iterable, Optional, Protocol, Tuple, Union, cast

from .answers import UnreadableBodyError, read_object
from .errors import MarinaError

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
    signatures is right, which is so while a secret is being changed. Raises a `WebhookVerificationError` otherwise.

    `headers` are the request's, as your server has them: a mapping whatever the case of its names, the environ of WSGI or CGI
    (Django's `request.META`, `os.environ`), the pairs of ASGI, or a mapping to lists.
    """
    webhook_id = _header(headers, "webhook-id")
    timestamp = _header(headers, "webhook-timestamp")
    signatures = _header(headers, "webhook-signature")
    if isinstance(body, str) or not isinstance(body, (bytes, bytearray, memoryview)):
        raise TypeError("Pass the raw bytes of the body: parsed and written again they have another signature.")
    clock = time.time() if now is None else now
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(clock - int(timestamp)) > tolerance_seconds:
        raise WebhookVerificationError("The webhook is too old, or its time is ahead of this clock.")
    expected = _signature(secret, webhook_id, timestamp, body).encode("ascii")
    if not any([hmac.compare_digest(each.encode("ascii"), expected) for each in signatures.split(" ")]):
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
    timestamp = str(int(time.time() if now is None else now))
    return {
        "webhook-id": webhook_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": _signature(secret, webhook_id, timestamp, body),
    }


def _signature(secret: str, webhook_id: str, timestamp: str, body: bytes) -> str:
    signed = f"{webhook_id}.{timestamp}.".encode("utf-8") + bytes(body)
    return "v1," + base64.b64encode(hmac.new(_key(secret), signed, hashlib.sha256).digest()).decode("ascii")


def _key(secret: str) -> bytes:
    try:
        if secret.startswith("whsec_"):
            key = base64.b64decode(secret[len("whsec_") :], validate=True)
            if key:
                return key
    except binascii.Error:
        # Reported below.
        pass
    raise ValueError("The secret has to be `whsec_` and base64.")


def _header(headers: Headers, name: str) -> str:
    """The value of a header, whatever form the server gives it."""
    pairs: Iterable[Tuple[Any, Any]] = cast(Any, headers).items() if hasattr(headers, "items") else cast(Any, headers)
    names = (name, "http-" + name)
    for each, value in pairs:
        if _as_text(each).lower().replace("_", "-") in names:
            # Some servers have a list of values of each name.
            first = value[0] if isinstance(value, (list, tuple)) and value else value
            # What is no ASCII is in no good header, and a surrogate could not be encoded again.
            text = _as_text(first).strip().encode("ascii", "replace").decode("ascii")
            if text:
                return text
    raise WebhookVerificationError(f"The webhook has no {name}.")


def _as_text(value: object) -> str:
    if isinstance(value, (bytes, bytearray)):
        return value.decode("latin-1")
    return value if isinstance(value, str) else ""
