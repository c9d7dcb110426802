"""Verifies webhooks."""

from __future__ import annotations

import base64
import binascii
import decimal
import hashlib
import hmac
import json
import re
import time
from typing import TYPE_CHECKING, Dict, Iterable, Optional, Protocol, Tuple, cast

from .errors import MarinaError

if TYPE_CHECKING:
    from .contract import Event


class Headers(Protocol):
    """The headers of a request: a mapping, or what Python's servers have."""

    def items(self) -> Iterable[Tuple[str, str]]: ...


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
    """
    webhook_id = _header(headers, "webhook-id")
    timestamp = _header(headers, "webhook-timestamp")
    signatures = _header(headers, "webhook-signature")
    clock = time.time() if now is None else now
    if not re.fullmatch(r"[0-9]{1,12}", timestamp) or abs(clock - int(timestamp)) > tolerance_seconds:
        raise WebhookVerificationError("The webhook is too old, or its time is ahead of this clock.")
    expected = _signature(secret, webhook_id, timestamp, body).encode("ascii")
    if not any([hmac.compare_digest(each.encode("utf-8"), expected) for each in signatures.split(" ")]):
        raise WebhookVerificationError("No signature of the webhook is right: the secret or the body is another.")
    event = json.loads(body.decode("utf-8"), parse_float=decimal.Decimal)
    if not isinstance(event, dict) or event.get("id") != webhook_id:
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
    signed = f"{webhook_id}.{timestamp}.".encode("utf-8") + body
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
    for each, value in headers.items():
        if each.lower() == name and value:
            return value
    raise WebhookVerificationError(f"The webhook has no {name}.")
