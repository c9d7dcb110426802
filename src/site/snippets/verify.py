import base64
import hashlib
import hmac
import json
import re
import time


def verify(secret, headers, body, now=None):
    """body: the raw bytes of the request. headers: as your server has them; the environ of WSGI or CGI and the pairs of ASGI will
    do. Returns the event, or raises."""
    key = base64.b64decode((secret or "").removeprefix("whsec_"))
    if not key:
        # Anybody can sign with an empty key.
        raise ValueError("there is no secret")

    # One form of each name: `Webhook-Id`, `webhook-id` and `HTTP_WEBHOOK_ID` are the same. A name may come twice.
    found = {}
    for name, value in headers.items() if hasattr(headers, "items") else headers:
        form = text(name).lower().replace("_", "-")
        found[form] = f"{found[form]} {text(value)}" if form in found else text(value)

    def header(name):
        # In an environ a variable WEBHOOK_ID is the process's and no header.
        return found.get("http-" + name, found.get(name, ""))

    webhook_id = header("webhook-id")
    timestamp = header("webhook-timestamp")
    now = time.time() if now is None else now
    if not abs(now - int(timestamp)) <= 300:
        raise ValueError("too old or too new")

    signed = f"{webhook_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest())

    for given in re.findall(r"v1,([A-Za-z0-9+/]+=*)", header("webhook-signature")):
        if hmac.compare_digest(given.encode(), expected):
            return json.loads(body)
    raise ValueError("no signature matches")


def text(value):
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)
