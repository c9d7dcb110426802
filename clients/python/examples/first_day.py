"""A partner's first day: place an order, repeat it, lose an answer, settle it, follow events, verify webhooks.

    MARINA_BASE_URL=http://127.0.0.1:8080 MARINA_KEY=marina_test_… MARINA_ACCOUNT=… python3 first_day.py

With MARINA_WEBHOOK_SECRET and MARINA_WEBHOOK_PORT it also receives webhooks on that port, and verifies each.
"""

import os
import queue
import sys
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from marina import ErrorAnswer, Marina, NoAnswerError, OrderError, WebhookVerificationError, verify_webhook
from marina.contract import Event, Order

# What nothing follows. A state that is not here may still change, also one that is new.
FINAL_STATES = {"filled", "rejected", "refused", "cancelled", "expired"}


def main() -> None:
    account = os.environ["MARINA_ACCOUNT"]
    webhooks = start_endpoint()
    replays = []
    marina = Marina(
        os.environ["MARINA_BASE_URL"],
        os.environ["MARINA_KEY"],
        on_answer=lambda answer: replays.append(answer.idempotency_key) if answer.is_replayed else None,
    )

    # What happened before is not news: the feed is followed from here.
    feed = marina.follow_events(poll_seconds=0.1)
    feed.skip_to_end()

    def place(symbol: str, key: str) -> Order:
        return marina.create_order(
            account=account,
            symbol=symbol,
            side="buy",
            quantity=100,
            type="limit",
            price_kobo=1_000,
            idempotency_key=key,
        )

    # Place an order. The key is stored before the order is sent, so that it can be sent again after a crash.
    first_key = str(uuid.uuid4())
    filled = place("SIM-FILL", first_key)
    print("placed", filled["id"])

    # Repeat: the same request with the same key is the same order.
    again = place("SIM-FILL", first_key)
    assert again["id"] == filled["id"] and first_key in replays
    print("repeated", again["id"])

    # Lose an answer: the exchange has the order, and nobody knows.
    lost = place("SIM-LOST", str(uuid.uuid4()))
    print("lost", lost["id"], lost["state"])

    # Lose one that the exchange never took.
    hung = place("SIM-HANG", str(uuid.uuid4()))
    print("lost", hung["id"], hung["state"])

    # A refusal says why.
    try:
        place("SIM-FUNDS", str(uuid.uuid4()))
    except OrderError as error:
        print("refused", error.code, error.reject_reason)

    # Follow events until each order is where it belongs.
    wanted = {filled["id"]: "filled", lost["id"]: "pending", hung["id"]: "refused"}
    versions: "dict[str, int]" = {}
    for event in feed:
        data = event["data"]
        if data["object"] != "order" or event["version"] <= versions.get(data["id"], 0):
            continue
        versions[data["id"]] = event["version"]
        if wanted.get(data["id"]) == data["state"]:
            del wanted[data["id"]]
            print("settled", data["id"], data["state"])
        if not wanted:
            break

    # What rests is cancelled.
    cancelled = marina.cancel_order(id=lost["id"])
    assert cancelled["state"] in FINAL_STATES
    print("cancelled", cancelled["id"])

    # A list is read to its end, page after page.
    orders = [order["id"] for order in marina.list_orders(account=account, limit=2)]
    assert {filled["id"], lost["id"], hung["id"]} <= set(orders)
    print("listed", len(orders))

    # Each of these changes came as a webhook too.
    if webhooks is not None:
        missing = {filled["id"], lost["id"], hung["id"]}
        while missing:
            missing.discard(webhooks.get(timeout=30)["data"]["id"])
        print("verified webhooks")


def start_endpoint() -> "queue.Queue[Event] | None":
    """Receives webhooks: verify, store, answer. What is done with an event comes after the answer."""
    secret = os.environ.get("MARINA_WEBHOOK_SECRET")
    if secret is None:
        return None
    received: "queue.Queue[Event]" = queue.Queue()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            try:
                received.put(verify_webhook(secret, self.headers, body))
                self.send_response(204)
            except WebhookVerificationError:
                self.send_response(400)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", int(os.environ["MARINA_WEBHOOK_PORT"])), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return received


if __name__ == "__main__":
    try:
        main()
    except NoAnswerError as failure:
        # Send it again with failure.call.idempotency_key, as soon as the gateway can be reached.
        sys.exit(f"{failure}: {failure.__cause__}")
    except ErrorAnswer as failure:
        sys.exit(f"{failure} (x-request-id {failure.request_id})")
