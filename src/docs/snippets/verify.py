import base64
import hashlib
import hmac
import json
import time


def verify(secret, headers, body, now=None):
    """body: the raw bytes of the request. headers: as your server has them; the environ of WSGI or CGI will do. Returns the
    event, or raises."""
    key = base64.b64decode((secret or "").removeprefix("whsec_"))
    if not key:
        # Anybody can sign with an empty key.
        raise ValueError("there is no secret")

    # One form of each name: `Webhook-Id`, `webhook-id` and `HTTP_WEBHOOK_ID` are the same.
    found = {str(name).lower().replace("_", "-").removeprefix("http-"): value for name, value in headers.items()}
    webhook_id = found["webhook-id"]
    timestamp = found["webhook-timestamp"]
    now = time.time() if now is None else now
    if abs(now - int(timestamp)) > 300:
        raise ValueError("too old or too new")

    signed = f"{webhook_id}.{timestamp}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()

    for entry in found["webhook-signature"].split():
        if hmac.compare_digest(entry.encode(), f"v1,{expected}".encode()):
            return json.loads(body)
    raise ValueError("no signature matches")
