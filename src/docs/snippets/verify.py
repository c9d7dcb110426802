import base64
import hashlib
import hmac
import json
import time


def verify(secret, headers, body, now=None):
    """body: the raw bytes of the request. Returns the event, or raises."""
    key = base64.b64decode((secret or "").removeprefix("whsec_"))
    if not key:
        # Anybody can sign with an empty key.
        raise ValueError("there is no secret")

    webhook_id = headers["webhook-id"]
    timestamp = headers["webhook-timestamp"]
    now = time.time() if now is None else now
    if abs(now - int(timestamp)) > 300:
        raise ValueError("too old or too new")

    signed = f"{webhook_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()

    for entry in headers["webhook-signature"].split():
        if hmac.compare_digest(entry, f"v1,{expected}"):
            return json.loads(body)
    raise ValueError("no signature matches")
