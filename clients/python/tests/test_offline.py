"""What the client does without a gateway: when it sends again, what it reads and writes, and which webhooks it believes."""

from __future__ import annotations

import base64
import math
import threading
import time
import unittest

import marina
from marina.retries import Failure, leaves_unknown, settles, wait_before_repeat
from marina.waits import Limits, StoppedError

from .support import WithGateway, refusal

SECRET = "whsec_" + base64.b64encode(b"k" * 32).decode("ascii")
BODY = b'{"object":"event","id":"msg_1","type":"order.filled","version":100000000000000007,"data":{"id":"ord_1"}}'


class Attempts(WithGateway):
    def test_an_attempt_leaves_nothing_behind_whether_it_is_answered_fails_or_is_late(self) -> None:
        transport = self.marina._transport
        self.gateway.answers = [None, refusal(500, "internal_error"), (201, {}, b'{"id":"ord_1"}')]
        self.assertEqual(self.place()["id"], "ord_1")
        self.assertEqual(transport._busy, set())
        self.gateway.answers = [None, None, None, None]
        with self.assertRaises(marina.NoAnswerError):
            self.place(deadline=2)
        self.assertEqual(transport._busy, set())

    def test_limits_with_an_earlier_end_are_stopped_like_the_whole(self) -> None:
        stop = threading.Event()
        whole = Limits(time.monotonic() + 60, stop)
        for limits in (whole.until(time.monotonic() + 30), whole.until(time.monotonic() + 90).until(math.inf)):
            self.assertLessEqual(limits.left(), 60)
            self.assertLessEqual(limits.step(), 0.25)
            stop.set()
            with self.assertRaises(StoppedError):
                limits.left()
            stop.clear()


class Calls(WithGateway):
    def test_an_order_is_sent_again_with_the_same_key_after_no_answer(self) -> None:
        self.gateway.answers = [None, refusal(429, "rate_limited", retry_after="0"), (201, {}, b'{"id":"ord_1"}')]
        self.assertEqual(self.place()["id"], "ord_1")
        keys = {headers["idempotency-key"] for _, _, headers, _ in self.gateway.requests}
        self.assertEqual((len(self.gateway.requests), len(keys)), (3, 1))
        self.assertEqual(len({body for _, _, _, body in self.gateway.requests}), 1)

    def test_what_must_not_be_sent_again_is_sent_once(self) -> None:
        for status, code, headers in (
            (503, "order_not_sent", {}),
            (409, "similar_order_unresolved", {"retry_after": "0"}),
            (422, "order_rejected", {}),
        ):
            self.gateway.requests.clear()
            self.gateway.answers = [refusal(status, code, "order_error", **headers)]
            with self.assertRaises(marina.OrderError) as caught:
                self.place(idempotency_key="mine")
            self.assertEqual((caught.exception.code, len(self.gateway.requests)), (code, 1))
            self.assertEqual(caught.exception.call.idempotency_key, "mine")
            self.assertFalse(caught.exception.call.is_outcome_unknown)

    def test_the_wait_doubles_up_to_ten_seconds_and_lies_between_half_of_it_and_all_of_it(self) -> None:
        for attempt, seconds in ((1, 0.5), (2, 1.0), (5, 8.0), (6, 10.0), (7, 10.0), (1_000, 10.0)):
            waits = [wait_before_repeat(Failure(500), "GET", False, attempt, lambda: drawn) for drawn in (0.0, 1.0)]
            self.assertEqual(waits, [seconds / 2, seconds])
        asked = Failure(503, "another", 60)
        self.assertEqual([wait_before_repeat(asked, "GET", False, 1, lambda: drawn) for drawn in (0.0, 1.0)], [60.0, 75.0])
        self.assertEqual(wait_before_repeat(Failure(503, "another", 0), "GET", False, 3, lambda: 1.0), 2.0)

    def test_the_status_decides_what_is_sent_again_and_what_stays_unknown(self) -> None:
        for status, is_repeated, is_unknown in (
            (399, False, True),
            (400, False, False),
            (407, False, False),
            (408, True, True),
            (409, False, False),
            (429, True, False),
            (499, False, False),
            (500, True, True),
            (599, True, True),
        ):
            failure = Failure(status)
            self.assertEqual(wait_before_repeat(failure, "GET", False, 1) is not None, is_repeated, status)
            self.assertEqual(leaves_unknown(failure), is_unknown, status)
        for status, retry_after, is_repeated in ((499, None, False), (500, None, True), (503, None, False), (503, 0, True)):
            failure = Failure(status, "another", retry_after)
            self.assertEqual(wait_before_repeat(failure, "GET", False, 1) is not None, is_repeated, failure)

    def test_a_key_is_never_made_twice(self) -> None:
        self.gateway.answers = [None]
        with self.assertRaises(marina.NoAnswerError) as caught:
            self.marina.create_key(scopes=["read"])
        self.assertEqual(len(self.gateway.requests), 1)
        self.assertTrue(caught.exception.call.is_outcome_unknown)

    def test_a_wait_beyond_the_deadline_is_not_begun(self) -> None:
        self.gateway.answers = [refusal(503, "trading_paused", retry_after="30")]
        with self.assertRaises(marina.ApiError) as caught:
            self.place(deadline=5)
        self.assertEqual(caught.exception.retry_after_seconds, 30)

    def test_a_page_of_html_is_an_error_by_its_status(self) -> None:
        self.gateway.answers = [(404, {}, b"<html>nothing</html>")]
        with self.assertRaises(marina.ErrorAnswer) as caught:
            self.marina.get_wallet()
        self.assertEqual((caught.exception.status, caught.exception.code), (404, None))

    def test_values_are_put_into_path_query_and_body(self) -> None:
        good = (200, {}, b'{"object":"list","has_more":false,"next_cursor":null,"data":[]}')
        self.gateway.answers = [good, good, good]
        list(self.marina.list_trades(account="LAG1", from_="2026-03-02", limit=5))
        self.marina.revoke_key(id="key_1", with_children=True)
        self.marina.send_document(id="a/b", type="photo", file=b"\x89PNG", media_type="image/png")
        lines = [f"{method} {path}" for method, path, _, _ in self.gateway.requests]
        self.assertEqual(
            lines,
            [
                "GET /v1/accounts/LAG1/trades?from=2026-03-02&limit=5",
                "DELETE /v1/keys/key_1?with_children=true",
                "PUT /v1/applications/a%2Fb/documents/photo",
            ],
        )
        _, _, headers, body = self.gateway.requests[2]
        self.assertEqual((headers["content-type"], body), ("image/png", b"\x89PNG"))

    def test_what_would_be_another_path_is_not_sent(self) -> None:
        for wrong in ("", ".", ".."):
            with self.assertRaises(TypeError):
                self.marina.get_order(id=wrong)
        with self.assertRaises(ValueError):
            self.place(idempotency_key="one\ntwo")
        with self.assertRaises(ValueError):
            marina.Marina("http://marina.example", "marina_live_key")
        self.assertEqual(self.gateway.requests, [])


class Retries(unittest.TestCase):
    def test_the_time_that_is_asked_for_is_never_cut_short(self) -> None:
        for drawn in (0.0, 0.5, 0.999):
            wait = wait_before_repeat(Failure(429, "rate_limited", 2), "POST", False, 1, lambda: drawn)
            assert wait is not None
            self.assertTrue(2 <= wait <= 2.5)

    def test_waits_grow_and_are_bounded(self) -> None:
        waits = [wait_before_repeat(Failure(), "GET", False, attempt, lambda: 1.0) for attempt in (1, 2, 3, 9, 99)]
        self.assertEqual(waits, [0.5, 1.0, 2.0, 10.0, 10.0])

    def test_what_may_not_be_done_twice_is_sent_again_only_if_nothing_was_done(self) -> None:
        for status in (None, 408, 429, 503):
            self.assertIsNone(wait_before_repeat(Failure(status), "POST", False, 1))
            self.assertIsNotNone(wait_before_repeat(Failure(status), "POST", True, 1))
        self.assertIsNone(wait_before_repeat(Failure(503, "service_unavailable", 5), "POST", False, 1))
        for code in ("rate_limited", "trading_paused", "exchange_unavailable"):
            self.assertIsNotNone(wait_before_repeat(Failure(503, code, 5), "POST", False, 1))

    def test_what_is_known_of_an_outcome(self) -> None:
        self.assertTrue(leaves_unknown(Failure()) and leaves_unknown(Failure(500, "internal_error")))
        self.assertFalse(leaves_unknown(Failure(503, "exchange_unavailable", 5)))
        self.assertTrue(leaves_unknown(Failure(408)) and leaves_unknown(Failure(503, "service_unavailable", 5)))
        self.assertTrue(settles(Failure(503, "order_not_sent")) and settles(Failure(422, "order_rejected")))
        self.assertFalse(settles(Failure(401, "unauthorized")) or settles(Failure(422)))


class Webhooks(unittest.TestCase):
    def test_a_signed_event_is_read_with_all_digits(self) -> None:
        headers = marina.sign_webhook(SECRET, "msg_1", BODY)
        event = marina.verify_webhook(SECRET, headers, BODY)
        self.assertEqual(event["version"], 100_000_000_000_000_007)

    def test_any_of_several_signatures_will_do(self) -> None:
        headers = marina.sign_webhook(SECRET, "msg_1", BODY)
        headers["webhook-signature"] = "v1,AAAA v2,x " + headers["webhook-signature"]
        marina.verify_webhook(SECRET, {name.title(): value for name, value in headers.items()}, BODY)

    def test_the_headers_may_be_as_any_server_has_them(self) -> None:
        good = marina.sign_webhook(SECRET, "msg_1", BODY)
        environ = {"REQUEST_METHOD": "POST", **{_environ_name(name): value for name, value in good.items()}}
        for headers in (
            {name.upper(): value for name, value in good.items()},
            environ,
            {"wsgi.input": object(), **environ},
            [(name.encode("ascii"), value.encode("ascii")) for name, value in good.items()],
            list(good.items()),
            {name: [value] for name, value in good.items()},
        ):
            self.assertEqual(marina.verify_webhook(SECRET, headers, BODY)["id"], "msg_1")

    def test_a_variable_of_the_process_hides_no_header(self) -> None:
        good = marina.sign_webhook(SECRET, "msg_1", BODY)
        own = {"WEBHOOK_ID": "billing", "WEBHOOK_TIMESTAMP": "1", "WEBHOOK_SIGNATURE": "v1,AAAA", "webhook_id": "x"}
        environ = {_environ_name(name): value for name, value in good.items()}
        for headers in ({**own, **environ}, {**environ, **own}):
            self.assertEqual(marina.verify_webhook(SECRET, headers, BODY)["id"], "msg_1")
        without = {name: value for name, value in environ.items() if name != "HTTP_WEBHOOK_ID"}
        with self.assertRaises(marina.WebhookVerificationError):
            marina.verify_webhook(SECRET, {**own, **without, "HTTP_WEBHOOK_ID": ""}, BODY)

    def test_the_signatures_of_two_headers_are_all_looked_at(self) -> None:
        good = marina.sign_webhook(SECRET, "msg_1", BODY)
        right = good.pop("webhook-signature")
        for joined in (f"{right},v1,AAAA", f"{right}, v1,AAAA", f"v1,AAAA,{right}", f"v1,AAAA\t{right}", f"v2,x, {right}"):
            marina.verify_webhook(SECRET, {**good, "webhook-signature": joined}, BODY)
        pairs = [(name.encode("ascii"), value.encode("ascii")) for name, value in good.items()]
        for two in ([right, "v1,AAAA"], ["v1,AAAA", right]):
            marina.verify_webhook(SECRET, [*pairs, *((b"webhook-signature", each.encode("ascii")) for each in two)], BODY)
            marina.verify_webhook(SECRET, {**good, "webhook-signature": two}, BODY)
        for wrong in (right[3:], right + "A", "x" + right, right.replace("v1,", "v2,"), right.replace("v1,", "v1a,")):
            with self.assertRaises(marina.WebhookVerificationError):
                marina.verify_webhook(SECRET, {**good, "webhook-signature": wrong}, BODY)

    def test_a_webhook_may_be_five_minutes_old_or_ahead_and_not_a_moment_more(self) -> None:
        sent = marina.sign_webhook(SECRET, "msg_1", BODY, now=1_000_000)
        for off, tolerance, is_in_time in (
            (300.0, {}, True),
            (300.001, {}, False),
            (0.0, {"tolerance_seconds": 0.0}, True),
            (0.001, {"tolerance_seconds": 0.0}, False),
            (10.0, {"tolerance_seconds": 10.0}, True),
            (10.001, {"tolerance_seconds": 10.0}, False),
        ):
            for now in (1_000_000 - off, 1_000_000 + off):
                if is_in_time:
                    marina.verify_webhook(SECRET, sent, BODY, now=now, **tolerance)
                else:
                    with self.assertRaisesRegex(marina.WebhookVerificationError, "too old"):
                        marina.verify_webhook(SECRET, sent, BODY, now=now, **tolerance)

    def test_a_time_that_is_no_number_makes_no_old_webhook_good(self) -> None:
        old = marina.sign_webhook(SECRET, "msg_1", BODY, now=1_000)
        for wrong in (math.nan, math.inf, -math.inf, "now"):
            for times in ({"now": wrong}, {"tolerance_seconds": wrong, "now": 1_000}):
                with self.assertRaises(ValueError):
                    marina.verify_webhook(SECRET, old, BODY, **times)  # type: ignore[arg-type]
        with self.assertRaises(ValueError):
            marina.verify_webhook(SECRET, old, BODY, tolerance_seconds=-1, now=1_000)

    def test_a_secret_that_is_none_is_told_to_be(self) -> None:
        good = marina.sign_webhook(SECRET, "msg_1", BODY)
        for secret in (None, b"whsec_a2s=", 7, "", "whsec_", "whsec_é"):
            with self.assertRaisesRegex(ValueError, "secret"):
                marina.verify_webhook(secret, good, BODY)  # type: ignore[arg-type]

    def test_an_event_that_two_readers_can_read_in_two_ways_is_refused(self) -> None:
        for body in (
            b'{"id":"msg_1","data":{"quantity":1,"quantity":2}}',
            b'{"id":"msg_2","id":"msg_1"}',
            b'{"id":"msg_1","version":NaN}',
            b'{"id":"msg_1","version":-Infinity}',
        ):
            with self.assertRaises(marina.WebhookVerificationError):
                marina.verify_webhook(SECRET, marina.sign_webhook(SECRET, "msg_1", body), body)

    def test_a_body_that_is_not_the_raw_bytes_is_told_to_be(self) -> None:
        good = marina.sign_webhook(SECRET, "msg_1", BODY)
        for wrong in ({"id": "msg_1"}, BODY.decode("ascii"), None):
            with self.assertRaisesRegex(TypeError, "raw bytes"):
                marina.verify_webhook(SECRET, good, wrong)  # type: ignore[arg-type]

    def test_anything_else_is_refused(self) -> None:
        good = marina.sign_webhook(SECRET, "msg_1", BODY, now=1_000)
        marina.verify_webhook(SECRET, good, BODY, now=1_300)
        for headers, body, now in (
            (good, BODY, 1_301),
            (good, BODY, 699),
            (good, BODY + b" ", 1_000),
            ({**good, "webhook-id": "msg_2"}, BODY, 1_000),
            ({**good, "webhook-timestamp": "1001"}, BODY, 1_000),
            ({**good, "webhook-timestamp": "１０００"}, BODY, 1_000),
            ({**good, "webhook-signature": "v1,"}, BODY, 1_000),
            ({**good, "webhook-signature": "v1,é"}, BODY, 1_000),
            ({**good, "webhook-signature": "v1,\udce9"}, BODY, 1_000),
            ({"webhook-id": "msg_1"}, BODY, 1_000),
        ):
            with self.assertRaises(marina.WebhookVerificationError):
                marina.verify_webhook(SECRET, headers, body, now=now)
        for nested in (b"[" * 100_000, b"{", b'"msg_1"', b'{"id":1e99999999999999999999}'):
            signed = marina.sign_webhook(SECRET, "msg_1", nested)
            with self.assertRaises(marina.WebhookVerificationError):
                marina.verify_webhook(SECRET, signed, nested)
        for secret in ("whsec_!", "whsec_", ""):
            with self.assertRaises(ValueError):
                marina.verify_webhook(secret, good, BODY, now=1_000)


def _environ_name(name: str) -> str:
    return "HTTP_" + name.upper().replace("-", "_")


if __name__ == "__main__":
    unittest.main()
