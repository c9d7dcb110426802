"""The client against a gateway that runs, which the environment names. Without one these tests are skipped."""

from __future__ import annotations

import asyncio
import os
import threading
import time
import unittest
import uuid
from typing import Any, Dict, List, Optional

import marina
from marina import Marina

URL = os.environ.get("MARINA_TEST_URL", "")
LOSSY_URL = os.environ.get("MARINA_TEST_LOSSY_URL", "")


def client(name: str, url: str = URL, **options: Any) -> Marina:
    return Marina(url, os.environ[f"MARINA_TEST_{name}_KEY"], **options)


def order(name: str, symbol: str = "SIM-REST", **more: Any) -> Dict[str, Any]:
    account = os.environ[f"MARINA_TEST_{name}_ACCOUNT"]
    return {
        "account": account,
        "symbol": symbol,
        "side": "buy",
        "quantity": 100,
        "type": "limit",
        "price_kobo": 1_000,
        **more,
    }


@unittest.skipIf(URL == "", "MARINA_TEST_URL names no gateway")
class AgainstAGateway(unittest.TestCase):
    def test_an_order_is_placed_once_although_the_answer_is_lost(self) -> None:
        answers: List[marina.AnswerDetails] = []
        lossy = client("GOOD", LOSSY_URL, on_answer=answers.append)
        reference = str(uuid.uuid4())
        key = f"lose-{uuid.uuid4()}"
        placed = lossy.create_order(**order("GOOD", client_reference=reference), idempotency_key=key)
        self.assertEqual(placed["state"], "pending")
        self.assertEqual([(each.is_replayed, each.attempt) for each in answers], [(True, 2)])
        listed = [each["id"] for each in client("GOOD").list_orders(client_reference=reference)]
        self.assertEqual(listed, [placed["id"]])

    def test_an_unknown_outcome_is_told_with_the_key_to_ask_again(self) -> None:
        once = client("GOOD", LOSSY_URL, max_attempts=1)
        reference = str(uuid.uuid4())
        wanted = order("GOOD", client_reference=reference)
        with self.assertRaises(marina.NoAnswerError) as caught:
            once.create_order(**wanted, idempotency_key=f"lose-{uuid.uuid4()}")
        self.assertTrue(caught.exception.call.is_outcome_unknown)
        placed = once.create_order(**wanted, idempotency_key=caught.exception.call.idempotency_key)
        listed = [each["id"] for each in client("GOOD").list_orders(client_reference=reference)]
        self.assertEqual(listed, [placed["id"]])

    def test_too_many_requests_wait_and_then_succeed(self) -> None:
        statuses: List[int] = []
        slow = client("SLOW", max_attempts=8, on_answer=lambda answer: statuses.append(answer.status))
        began = time.monotonic()
        threads = [threading.Thread(target=slow.get_wallet) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(statuses.count(200), 5)
        self.assertIn(429, statuses)
        self.assertGreaterEqual(time.monotonic() - began, 1.0)
        impatient = client("SLOW", max_attempts=1)
        with self.assertRaises(marina.RateLimitError) as caught:
            for _ in range(50):
                impatient.get_wallet()
        self.assertEqual(caught.exception.retry_after_seconds, 1)

    def test_each_family_of_errors_is_a_class(self) -> None:
        good = client("GOOD")
        key = str(uuid.uuid4())
        good.create_order(**order("GOOD", "SIM-FILL"), idempotency_key=key)
        account = os.environ["MARINA_TEST_GOOD_ACCOUNT"]
        person: Dict[str, Any] = {
            **{name: "Adaeze" for name in ("first_name", "city", "address", "next_of_kin_name")},
            **{"last_name": "SIM-REJECT-INVALID", "date_of_birth": "1990-12-31", "gender": "female"},
            **{"email": "adaeze@example.com", "phone": "+2348030000000", "state": "LAGOS", "bvn": "22222222222"},
            **{"state_of_origin": "AKWA-IBOM", "lga_of_origin": "AKWA-IBOM-UYO"},
            **{"next_of_kin_phone": "+2348030000001", "next_of_kin_relationship": "brother"},
        }

        def stranger() -> None:
            Marina(URL, "marina_test_nobody").get_wallet()

        cases = [
            (stranger, marina.AuthenticationError, "unauthorized", {}),
            (lambda: client("READER").create_order(**order("READER")), marina.PermissionDeniedError, "insufficient_scope", {}),
            (lambda: good.get_order(id="ord_none"), marina.InvalidRequestError, "order_not_found", {}),
            (
                lambda: good.create_order(**order("GOOD", quantity=0)),
                marina.InvalidRequestError,
                "invalid_request",
                {"param": "quantity"},
            ),
            (
                lambda: good.create_order(**order("GOOD", quantity=7), idempotency_key=key),
                marina.IdempotencyError,
                "duplicate_order",
                {},
            ),
            (
                lambda: good.create_order(**order("GOOD", "SIM-FUNDS")),
                marina.OrderError,
                "order_rejected",
                {"reject_reason": "insufficient_funds"},
            ),
            (lambda: good.create_application(**person), marina.ApplicationError, "application_rejected", {}),
            (
                lambda: good.create_allocation(account=account, amount_kobo=1_000),
                marina.WalletError,
                "wallet_too_low",
                {},
            ),
            (lambda: client("SMALL").create_order(**order("SMALL")), marina.LimitError, "limit_exceeded", {}),
        ]
        for call, kind, code, more in cases:
            with self.subTest(code), self.assertRaises(kind) as caught:
                call()
            error = caught.exception
            self.assertEqual(error.code, code)
            self.assertEqual(error.doc_url, f"{URL}/docs/errors#{code}")
            self.assertTrue(error.request_id)
            for name, value in more.items():
                self.assertEqual(getattr(error, name), value)

    def test_whole_numbers_have_all_their_digits(self) -> None:
        self.assertEqual(client("RICH").get_wallet()["available_kobo"], 100_000_000_000_000_007)

    def test_a_list_is_read_page_by_page(self) -> None:
        reader = client("GOOD")
        reference = str(uuid.uuid4())
        ids = [
            reader.create_order(**order("GOOD", quantity=quantity, client_reference=reference))["id"]
            for quantity in range(1, 6)
        ]
        pages = reader.list_orders(client_reference=reference, limit=2)
        self.assertEqual([len(page["data"]) for page in pages.pages()], [2, 2, 1])
        self.assertEqual([each["id"] for each in pages], ids[::-1])
        self.assertTrue(pages.page()["has_more"])

    def test_the_feed_goes_on_where_it_was_and_ends_when_it_is_stopped(self) -> None:
        follower = client("FEED")
        feed = follower.follow_events(poll_seconds=0.02, limit=2)
        for quantity in range(1, 6):
            follower.create_order(**order("FEED", quantity=quantity))
        versions: List[int] = []
        for event in feed:
            versions.append(event["version"])
            if len(versions) == 4:
                break
        self.assertEqual(versions, [1, 2, 3, 4])
        cursor: Optional[str] = feed.cursor
        stop = threading.Event()
        again: List[int] = []
        for event in follower.follow_events(cursor=cursor, poll_seconds=0.02, stop=stop):
            again.append(event["version"])
            if event["version"] == 5:
                stop.set()
        self.assertEqual(again, [3, 4, 5], "a page that was not gone through comes again, and nothing is left out")
        end = follower.follow_events(poll_seconds=0.02)
        end.skip_to_end()
        follower.create_order(**order("FEED", quantity=6))
        self.assertEqual(next(iter(end))["version"], 6)

    def test_the_client_for_asyncio_does_the_same(self) -> None:
        async def run() -> None:
            key = f"lose-{uuid.uuid4()}"
            reference = str(uuid.uuid4())
            answers: List[marina.AnswerDetails] = []
            secret = os.environ["MARINA_TEST_ASYNC_KEY"]
            async with marina.AsyncMarina(LOSSY_URL, secret, on_answer=answers.append) as lossy:
                placed = await lossy.create_order(**order("ASYNC", client_reference=reference), idempotency_key=key)
            self.assertEqual([(each.is_replayed, each.attempt) for each in answers], [(True, 2)])
            async with marina.AsyncMarina(URL, secret) as follower:
                orders = [
                    follower.create_order(**order("ASYNC", quantity=quantity, client_reference=reference))
                    for quantity in range(1, 5)
                ]
                ids = {each["id"] for each in await asyncio.gather(*orders)} | {placed["id"]}
                listed = [each["id"] async for each in follower.list_orders(client_reference=reference, limit=2)]
                self.assertEqual((len(listed), set(listed)), (5, ids))
                versions: List[int] = []
                async for event in follower.follow_events(poll_seconds=0.02, limit=2):
                    versions.append(event["version"])
                    if len(versions) == 5:
                        break
                self.assertEqual(versions, [1, 2, 3, 4, 5])
                with self.assertRaises(marina.OrderError) as caught:
                    await follower.create_order(**order("ASYNC", "SIM-FUNDS"))
                self.assertEqual(caught.exception.reject_reason, "insufficient_funds")

        asyncio.run(run())

    def test_a_delivered_webhook_is_verified(self) -> None:
        headers = {
            name: os.environ[f"MARINA_TEST_WEBHOOK_{name[8:].upper()}"]
            for name in ("webhook-id", "webhook-timestamp", "webhook-signature")
        }
        body = os.environ["MARINA_TEST_WEBHOOK_BODY"].encode("utf-8")
        for secret in os.environ["MARINA_TEST_WEBHOOK_SECRETS"].split():
            event = marina.verify_webhook(secret, headers, body)
            self.assertEqual(event["data"]["object"], "order")
            with self.assertRaises(marina.WebhookVerificationError):
                marina.verify_webhook(secret, headers, body + b" ")


if __name__ == "__main__":
    unittest.main()
