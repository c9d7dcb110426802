"""When a call says that its outcome is unknown, by the table that the clients of both languages share, and how long it waits."""

from __future__ import annotations

import json
import unittest
from pathlib import Path
from typing import Any, Optional
from unittest import mock

import marina
from marina.retries import Failure, leaves_unknown, settles, wait_before_repeat

from .support import ORDER, WithGateway, refusal

# One row for each code of the contract, and for answers without a code, which are a proxy's.
FILE = Path(__file__).parents[3] / "test" / "support" / "client-outcomes.json"
# It stays in the repository when this folder is given to somebody.
TABLE = json.loads(FILE.read_text("utf-8")) if FILE.exists() else []
with_table = unittest.skipUnless(TABLE, "the table of the repository is not here")


class Table(unittest.TestCase):
    @with_table
    def test_each_error_leaves_unknown_and_settles_what_the_table_says(self) -> None:
        for row in TABLE:
            failure = Failure(row["status"], row["code"])
            self.assertEqual(leaves_unknown(failure), row["leaves_unknown"], row)
            self.assertEqual(settles(failure), row["settles"], row)

    def test_a_status_that_no_gateway_answers_leaves_the_outcome_unknown(self) -> None:
        for status in (100, 101, 103, 199, 302, 307, 600, 999):
            self.assertTrue(leaves_unknown(Failure(status)), status)

    def test_a_code_that_is_not_known_settles_nothing(self) -> None:
        for status in (400, 404, 409, 422, 503):
            self.assertFalse(settles(Failure(status, "later")))


class Outcomes(WithGateway):
    def setUp(self) -> None:
        super().setUp()
        waits = mock.patch("time.sleep")
        waits.start()
        self.addCleanup(waits.stop)

    def outcome(self, status: int, code: Optional[str], **headers: str) -> bool:
        """Whether the outcome is unknown if an order's first answer is lost and its second is this one."""
        kind = refusal(status, code, **headers) if code is not None else (status, {}, b"<html>")
        self.gateway.answers = [None, kind]
        with self.assertRaises(marina.ErrorAnswer) as caught:
            marina.Marina(self.gateway.url, "marina_test_key", max_attempts=2).create_order(**ORDER)
        self.assertEqual((caught.exception.status, caught.exception.call.attempts), (status, 2))
        return caught.exception.is_outcome_unknown

    @with_table
    def test_only_an_error_that_proves_what_became_of_the_key_makes_an_outcome_known(self) -> None:
        for row in TABLE:
            if row["status"] is not None:
                with self.subTest(row):
                    self.assertEqual(self.outcome(row["status"], row["code"]), not row["settles"])

    def test_the_object_itself_makes_an_outcome_known(self) -> None:
        self.gateway.answers = [None, (201, {}, b'{"id":"ord_1"}')]
        self.assertEqual(self.place()["id"], "ord_1")

    def test_an_unknown_outcome_stays_unknown_through_several_later_answers(self) -> None:
        self.gateway.answers = [None, refusal(429, "rate_limited"), refusal(503, "trading_paused", retry_after="1")]
        self.gateway.answers.append(refusal(404, "not_found"))
        with self.assertRaises(marina.ErrorAnswer) as caught:
            self.place()
        self.assertEqual((caught.exception.call.attempts, caught.exception.is_outcome_unknown), (4, True))


class Waits(unittest.TestCase):
    def test_the_longer_of_both_waits_is_taken(self) -> None:
        def wait(asked: Optional[int], attempt: int, drawn: float) -> Any:
            return wait_before_repeat(Failure(503, None, asked), "POST", True, attempt, lambda: drawn)

        for drawn in (0.0, 0.5, 1.0):
            for attempt in (1, 2, 3, 5, 12):
                own = wait(None, attempt, drawn)
                for asked in (0, 1, 2, 30):
                    self.assertEqual(wait(asked, attempt, drawn), max(own, asked * (1 + drawn / 4)))

    def test_attempts_outlast_an_outage_of_30_seconds_whatever_is_asked_for(self) -> None:
        for asked in (None, 0, 1):
            waits = [
                wait_before_repeat(Failure(503, None, asked), "POST", True, each, lambda: 0.0) or 0.0
                for each in range(1, 12)
            ]
            self.assertGreater(sum(waits), 30)


if __name__ == "__main__":
    unittest.main()
