"""Which values a request takes, which answers can be read, and what is raised where one cannot."""

from __future__ import annotations

import ast
import asyncio
import builtins
import datetime
import decimal
import enum
import json
import socket
import threading
import time
import unittest
import warnings
import uuid
from pathlib import Path
from typing import Any, Dict, List
from urllib.parse import parse_qs, urlsplit

import marina
from marina.values import plain_value

from .support import WithGateway

PAGE = b'{"object":"list","has_more":false,"next_cursor":null,"data":[]}'


class Side(str, enum.Enum):
    BUY = "buy"

    def __str__(self) -> str:
        return "Side: buy"


class Code(str, enum.Enum):
    MINE = "LAG1"


class Kind(enum.Enum):
    MARKET = "market"


class Lots(enum.IntEnum):
    ONE = 100


class Scalar:
    """A number as numpy has it: `numpy` need not be there for the tests."""

    dtype = "int64"
    ndim = 0

    def __init__(self, value: Any) -> None:
        self._value = value

    def item(self) -> Any:
        return self._value


class Array(Scalar):
    ndim = 1

    def tolist(self) -> Any:
        return self._value


class Index:
    def __index__(self) -> int:
        return 100


class Requests(WithGateway):
    def sent(self) -> Dict[str, Any]:
        return json.loads(self.gateway.requests[-1][3])

    def test_enums_and_numbers_of_other_libraries_are_sent_as_what_they_stand_for(self) -> None:
        for quantity in (100, Lots.ONE, Scalar(100), Index(), decimal.Decimal("100.00"), Scalar(Scalar(100))):
            with self.subTest(repr(quantity)):
                self.gateway.answers = [(201, {}, b'{"id":"ord_1"}')]
                values: Dict[str, Any] = {"side": Side.BUY, "type": Kind.MARKET, "quantity": quantity}
                self.marina.create_order(account="LAG1", symbol="MTNN", **values)
                self.assertEqual(
                    self.sent(),
                    {"account": "LAG1", "symbol": "MTNN", "side": "buy", "type": "market", "quantity": 100},
                )
                self.assertIs(type(self.sent()["quantity"]), int)

    def test_numpy_itself_will_do(self) -> None:
        try:
            import numpy
        except ImportError:
            self.skipTest("numpy is not here")
        for given, expected in (
            (numpy.int64(7), 7),
            (numpy.uint8(7), 7),
            (numpy.bool_(True), True),
            (numpy.str_("a"), "a"),
            (numpy.array(7), 7),
            (numpy.array(["a", "b"]), ["a", "b"]),
        ):
            plain = plain_value("x", given)
            self.assertEqual((plain, type(plain)), (expected, type(expected)))
        for wrong in (numpy.float64(7), numpy.array([1.5])):
            with self.assertRaises(TypeError):
                plain_value("x", wrong)

    def test_values_of_a_path_and_a_query_are_written_as_they_are_in_a_body(self) -> None:
        self.gateway.answers = [(200, {}, PAGE), (200, {}, b'{"id":"ord_1"}')]
        values: Dict[str, Any] = {
            "state": enum.Enum("State", {"FILLED": "filled"})["FILLED"],
            "account": Code.MINE,
            "updated_since": datetime.datetime(2026, 3, 2, 10, 30, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
            "limit": Scalar(5),
        }
        self.marina.list_orders(**values).page()
        query = parse_qs(urlsplit(self.gateway.requests[0][1]).query)
        self.assertEqual(
            query,
            {"state": ["filled"], "account": ["LAG1"], "updated_since": ["2026-03-02T09:30:00Z"], "limit": ["5"]},
        )
        identifier: Any = uuid.UUID(int=7)
        self.marina.get_order(id=identifier)
        self.assertEqual(self.gateway.requests[1][1], f"/v1/orders/{identifier}")

    def test_dates_lists_and_keys_may_be_objects_of_python(self) -> None:
        self.gateway.answers = [(200, {}, PAGE), (201, {}, b'{"id":"key_1"}'), (201, {}, b'{"id":"ord_1"}')]
        day: Any = datetime.date(2026, 3, 2)
        self.marina.list_trades(account="LAG1", from_=day).page()
        self.assertEqual(self.gateway.requests[0][1], "/v1/accounts/LAG1/trades?from=2026-03-02")
        scopes: Any = Array(["read"])
        self.marina.create_key(scopes=scopes, addresses=("192.0.2.1",))
        self.assertEqual(self.sent(), {"scopes": ["read"], "addresses": ["192.0.2.1"]})
        key: Any = uuid.UUID(int=9)
        self.place(idempotency_key=key)
        self.assertEqual(self.gateway.requests[2][2]["idempotency-key"], str(key))

    def test_a_value_that_would_be_changed_is_refused_before_anything_is_sent(self) -> None:
        wrong: List[Any] = [1.0, float("nan"), decimal.Decimal("1.5"), decimal.Decimal("1e999999"), 2**63, object(), b"1"]
        wrong += [Scalar(1.0), enum.Enum("Price", {"LOW": 1.5})["LOW"], datetime.datetime(2026, 3, 2)]
        for value in wrong:
            with self.subTest(repr(value)), self.assertRaises((TypeError, ValueError)):
                self.place(price_kobo=value)
        nested: Any = []
        for _ in range(100_000):
            nested = [nested]
        with self.assertRaises(ValueError):
            self.marina.create_key(scopes=nested)
        for file in (5, "text", Path("photo.jpg"), [1, 2]):
            with self.subTest(repr(file)), self.assertRaises(TypeError):
                self.marina.send_document(id="app_1", type="photo", file=file, media_type="image/png")  # type: ignore[arg-type]
        self.assertEqual(self.gateway.requests, [])


class Answers(WithGateway):
    def test_an_answer_that_cannot_be_read_does_not_lose_the_key(self) -> None:
        for name, body in (
            ("nested", b'{"a":' * 100_000 + b"1" + b"}" * 100_000),
            ("arrays", b"[" * 200_000),
            ("a huge whole number", b'{"id":' + b"9" * 1_000_000 + b"}"),
            ("a huge fraction", b'{"id":0.' + b"9" * 1_000_000 + b"}"),
            ("a huge exponent", b'{"id":1e99999999999999999999}'),
            ("a number that is none", b'{"id":NaN}'),
            ("an infinite number", b'{"id":[-Infinity]}'),
            ("a member twice", b'{"id":"ord_1","id":"ord_2"}'),
            ("no object", b"[]"),
            ("null", b"null"),
            ("a text", b'"ord_1"'),
            ("nothing", b""),
            ("no UTF-8", b'{"id":"\xff"}'),
        ):
            for status in (201, 502):
                with self.subTest(name, status=status):
                    self.gateway.answers = [(status, {}, body)]
                    once = marina.Marina(self.gateway.url, "marina_test_key", max_attempts=1)
                    began = time.monotonic()
                    with self.assertRaises(marina.CallError) as caught:
                        once.create_order(account="L", symbol="M", side="buy", quantity=1, type="market")
                    self.assertLess(time.monotonic() - began, 20)
                    sent = self.gateway.requests[-1][2]["idempotency-key"]
                    self.assertEqual(caught.exception.idempotency_key, sent)
                    self.assertTrue(caught.exception.is_outcome_unknown)

    def test_a_great_answer_is_read_whole(self) -> None:
        text = "x" * 20_000_000
        self.gateway.answers = [(200, {}, json.dumps({"id": text, "kobo": 10**30}).encode("ascii"))]
        answer: Any = self.marina.get_order(id="ord_1")
        self.assertEqual((len(answer["id"]), answer["kobo"]), (20_000_000, 10**30))

    def test_a_mistake_in_on_answer_does_not_take_the_answer_away(self) -> None:
        def fail(_: object) -> None:
            raise RuntimeError("the log is full")

        self.gateway.answers = [(201, {}, b'{"id":"ord_1"}')]
        logged = marina.Marina(self.gateway.url, "marina_test_key", on_answer=fail)
        with self.assertLogs("marina", "ERROR"):
            order = logged.create_order(account="L", symbol="M", side="buy", quantity=1, type="market")
        self.assertEqual(order["id"], "ord_1")

    def test_an_asynchronous_on_answer_that_does_not_look_like_one_is_logged(self) -> None:
        async def told(_: object) -> None:
            raise AssertionError("it was run")

        self.gateway.answers = [(201, {}, b'{"id":"ord_1"}')]
        logged = marina.Marina(self.gateway.url, "marina_test_key", on_answer=lambda answer: told(answer))  # type: ignore
        with self.assertLogs("marina", "ERROR") as logs, warnings.catch_warnings():
            warnings.simplefilter("error")
            order = logged.create_order(account="L", symbol="M", side="buy", quantity=1, type="market")
        self.assertEqual(order["id"], "ord_1")
        self.assertIn("is asynchronous", logs.output[0])

    def test_a_mistake_in_on_trouble_does_not_end_the_feed(self) -> None:
        def fail(*_: object) -> None:
            raise RuntimeError("the log is full")

        page = b'{"has_more":false,"next_cursor":"end","data":[{"id":"one"}]}'
        self.gateway.answers = [(503, {}, b""), (200, {}, page)]
        with self.assertLogs("marina", "ERROR"):
            self.assertEqual(next(iter(self.marina.follow_events(on_trouble=fail)))["id"], "one")


class EarlyAnswers(unittest.TestCase):
    def test_an_answer_that_comes_before_the_whole_document_was_sent_is_raised(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:

            def refuse() -> None:
                for _ in range(2):
                    connection, _ = server.accept()
                    with connection:
                        connection.recv(1024)
                        error = b'{"error":{"type":"invalid_request_error","code":"document_too_large"}}'
                        head = f"HTTP/1.1 413 No\r\ncontent-length: {len(error)}\r\nconnection: close\r\n\r\n"
                        connection.sendall(head.encode("ascii") + error)

            threading.Thread(target=refuse, daemon=True).start()
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            document: Dict[str, Any] = {"id": "app_1", "type": "photo", "file": b"x" * 30_000_000, "media_type": "image/png"}
            with self.assertRaises(marina.InvalidRequestError) as caught:
                marina.Marina(url, "marina_test_key", max_attempts=1).send_document(**document)
            self.assertEqual(caught.exception.code, "document_too_large")

            async def send() -> None:
                async with marina.AsyncMarina(url, "marina_test_key", max_attempts=1) as client:
                    await client.send_document(**document)

            with self.assertRaises(marina.InvalidRequestError):
                asyncio.run(send())


class Timeouts(unittest.TestCase):
    def setUp(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(self.server.close)
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"

    def test_a_time_out_says_that_it_is_one_and_that_the_outcome_is_unknown(self) -> None:
        slow = marina.Marina(self.url, "marina_test_key", attempt_seconds=0.2, max_attempts=2, deadline=5)
        with self.assertRaises(marina.CallTimeoutError) as caught:
            slow.create_order(account="L", symbol="M", side="buy", quantity=1, type="market", idempotency_key="mine")
        error = caught.exception
        self.assertIsInstance(error, marina.NoAnswerError)
        self.assertIsInstance(error, TimeoutError)
        self.assertTrue(error.is_outcome_unknown)
        self.assertEqual((error.idempotency_key, error.call.attempts), ("mine", 2))
        self.assertIn("within 0.2 s", str(error))
        self.assertIn("unknown", str(error))
        with self.assertRaises(marina.CallTimeoutError) as read:
            slow.get_wallet()
        self.assertFalse(read.exception.is_outcome_unknown)
        self.assertNotIn("unknown", str(read.exception))

    def test_an_answer_that_comes_byte_by_byte_is_given_up_in_time(self) -> None:
        ended = threading.Event()
        self.addCleanup(ended.set)

        def drip() -> None:
            connection, _ = self.server.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not ended.wait(0.05):
                    try:
                        connection.sendall(b"x: y\r\n")
                    except OSError:
                        return

        threading.Thread(target=drip, daemon=True).start()
        slow = marina.Marina(self.url, "marina_test_key", attempt_seconds=0.5, max_attempts=1)
        began = time.monotonic()
        with self.assertRaises(marina.CallTimeoutError):
            slow.get_wallet()
        self.assertLess(time.monotonic() - began, 10)

    def test_a_gateway_that_is_not_there_is_no_time_out(self) -> None:
        self.server.close()
        with self.assertRaises(marina.NoAnswerError) as caught:
            marina.Marina(self.url, "marina_test_key", max_attempts=1).get_wallet()
        self.assertNotIsInstance(caught.exception, marina.CallTimeoutError)


class Names(unittest.TestCase):
    def test_no_name_of_the_package_hides_one_of_python(self) -> None:
        names = set(dir(builtins))
        self.assertEqual(names & {name for name in marina.__all__ if not name.startswith("__")}, set())
        for path in sorted(Path(marina.__file__).parent.glob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            bound = {name for node in tree.body for name in _bound(node)}
            self.assertEqual(bound & names, set(), path.name)


def _bound(node: ast.AST) -> List[str]:
    """The names that a statement at the top of a module gives something."""
    if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [each.asname or each.name for each in node.names]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


if __name__ == "__main__":
    unittest.main()
