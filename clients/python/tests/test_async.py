"""What the client for asyncio does without a gateway: the same as the other, without blocking, and within its bounds."""

from __future__ import annotations

import asyncio
import inspect
import json
import socket
import threading
import time
import unittest
from typing import Any, Dict, List, Optional, Tuple

import marina
from marina import AsyncMarina, Marina

from .support import Gateway, refusal

EMPTY = b'{"object":"list","has_more":false,"next_cursor":"end","data":[]}'


def page(ids: List[str], following: Optional[str]) -> Tuple[int, Dict[str, str], bytes]:
    body = {"has_more": following is not None, "next_cursor": following or "end", "data": [{"id": each} for each in ids]}
    return 200, {}, json.dumps(body).encode("ascii")


class Surface(unittest.TestCase):
    def test_it_has_each_method_of_the_other_client_with_the_same_arguments(self) -> None:
        names = [name for name in dir(Marina) if not name.startswith("_")]
        self.assertGreater(len(names), 40)
        for name in names:
            one, other = getattr(Marina, name), getattr(AsyncMarina, name)
            takes, takes_too = inspect.signature(one).parameters, inspect.signature(other).parameters
            self.assertEqual(list(takes), list(takes_too), name)
            for each in takes:
                self.assertEqual((takes[each].default, takes[each].kind), (takes_too[each].default, takes_too[each].kind))
            self.assertEqual(inspect.getdoc(one) is None, inspect.getdoc(other) is None, name)
        for one, other in ((marina.Pages, marina.AsyncPages), (marina.EventFeed, marina.AsyncEventFeed)):
            self.assertEqual(
                {name for name in vars(one) if not name.startswith("_")},
                {name for name in vars(other) if not name.startswith("_")},
            )
        made, made_too = inspect.signature(Marina).parameters, inspect.signature(AsyncMarina).parameters
        self.assertEqual(list(made_too), [*made, "max_connections"])


class Calls(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        self.gateway = Gateway()

    def tearDown(self) -> None:
        self.gateway.server.shutdown()
        self.gateway.server.server_close()

    def client(self, **options: Any) -> AsyncMarina:
        return AsyncMarina(self.gateway.url, "marina_test_key", **options)

    async def place(self, client: AsyncMarina, **more: Any) -> Any:
        return await client.create_order(
            account="LAG1", symbol="ZENITHBANK", side="buy", quantity=100, type="market", **more
        )

    async def test_an_order_is_sent_again_with_the_same_key_after_no_answer(self) -> None:
        self.gateway.answers = [None, refusal(429, "rate_limited", retry_after="0"), (201, {}, b'{"id":"ord_1"}')]
        seen: List[marina.AnswerDetails] = []
        async with self.client(on_answer=seen.append) as client:
            self.assertEqual((await self.place(client))["id"], "ord_1")
        keys = {headers["idempotency-key"] for _, _, headers, _ in self.gateway.requests}
        self.assertEqual((len(self.gateway.requests), len(keys)), (3, 1))
        self.assertEqual([each.status for each in seen], [429, 201])

    async def test_an_asynchronous_on_answer_is_awaited_before_the_call_goes_on(self) -> None:
        self.gateway.answers = [None, refusal(429, "rate_limited", retry_after="0"), (201, {}, b'{"id":"ord_1"}')]
        seen: List[int] = []

        async def told(answer: marina.AnswerDetails) -> None:
            await asyncio.sleep(0.01)
            seen.append(answer.status)

        async with self.client(on_answer=told) as client:
            self.assertEqual((await self.place(client))["id"], "ord_1")
        self.assertEqual(seen, [429, 201])

    async def test_an_asynchronous_on_answer_that_fails_or_does_not_end_is_logged_and_changes_nothing(self) -> None:
        async def fail(_: object) -> None:
            await asyncio.sleep(0)
            raise RuntimeError("the log is full")

        async def cancelled(_: object) -> None:
            raise asyncio.CancelledError()

        async def endless(_: object) -> None:
            await asyncio.Event().wait()

        for told in (fail, cancelled, endless):
            self.gateway.answers = [(201, {}, b'{"id":"ord_1"}')]
            async with self.client(on_answer=told, deadline=0.5) as client:
                with self.assertLogs("marina", "ERROR"):
                    self.assertEqual((await self.place(client))["id"], "ord_1")

    async def test_a_task_that_is_cancelled_ends_although_on_answer_does_not(self) -> None:
        began = asyncio.Event()

        async def endless(_: object) -> None:
            began.set()
            await asyncio.Event().wait()

        self.gateway.answers = [(201, {}, b'{"id":"ord_1"}')]
        async with self.client(on_answer=endless) as client:
            task = asyncio.ensure_future(self.place(client))
            await began.wait()
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await asyncio.wait_for(task, 5)

    async def test_an_asynchronous_on_trouble_is_awaited_and_may_fail_or_be_stopped(self) -> None:
        page_of_one = page(["a"], None)
        seen: List[float] = []

        async def fail(_: object, wait: float) -> None:
            await asyncio.sleep(0)
            seen.append(wait)
            raise RuntimeError("the log is full")

        self.gateway.answers = [(503, {}, b""), page_of_one]
        async with self.client() as client:
            with self.assertLogs("marina", "ERROR"):
                async for event in client.follow_events(on_trouble=fail):
                    self.assertEqual((event["id"], len(seen)), ("a", 1))
                    break
            stop = asyncio.Event()

            async def endless(*_: object) -> None:
                stop.set()
                await asyncio.Event().wait()

            self.gateway.answers = [(503, {}, b"")]
            feed = client.follow_events(on_trouble=endless, stop=stop)
            self.assertEqual([each async for each in feed], [])

    async def test_an_error_is_of_its_class_and_has_its_key(self) -> None:
        self.gateway.answers = [refusal(422, "order_rejected", "order_error")]
        async with self.client() as client:
            with self.assertRaises(marina.OrderError) as caught:
                await self.place(client, idempotency_key=" \tmine ")
        self.assertEqual((caught.exception.code, caught.exception.idempotency_key), ("order_rejected", "mine"))

    async def test_a_list_is_read_page_by_page(self) -> None:
        self.gateway.answers = [page(["a", "b"], "next"), page(["c"], None), page(["a"], "next")]
        async with self.client() as client:
            orders = client.list_orders(limit=2)
            self.assertEqual([each["id"] async for each in orders], ["a", "b", "c"])
            self.assertTrue((await orders.page())["has_more"])
        paths = [path for _, path, _, _ in self.gateway.requests]
        self.assertEqual(paths[:2], ["/v1/orders?limit=2", "/v1/orders?limit=2&cursor=next"])

    async def test_the_feed_goes_on_through_an_outage_and_ends_when_it_is_stopped(self) -> None:
        self.gateway.answers = [page(["a"], None), None, page(["b"], None)]
        self.gateway.answer_to = lambda path: (200, {}, EMPTY)
        stop = asyncio.Event()
        troubles: List[float] = []
        async with self.client(max_attempts=1) as client:
            feed = client.follow_events(poll_seconds=0.01, stop=stop, on_trouble=lambda _, wait: troubles.append(wait))
            ids: List[str] = []
            async for event in feed:
                ids.append(event["id"])
                if event["id"] == "b":
                    stop.set()
        self.assertEqual((ids, len(troubles), feed.cursor), (["a", "b"], 1, "end"))

    async def test_connections_are_used_again_and_are_never_more_than_the_bound(self) -> None:
        busy, most = [0], [0]
        lock = threading.Lock()

        def slow(_: str) -> Tuple[int, Dict[str, str], bytes]:
            with lock:
                busy[0] += 1
                most[0] = max(most[0], busy[0])
            time.sleep(0.05)
            with lock:
                busy[0] -= 1
            return 200, {}, b"{}"

        self.gateway.answer_to = slow
        async with self.client(max_connections=3) as client:
            await asyncio.gather(*(client.get_wallet() for _ in range(12)))
        self.assertEqual((len(self.gateway.requests), most[0]), (12, 3))

    async def test_a_cancelled_call_ends_at_once_and_gives_its_connection_back(self) -> None:
        began, go_on = threading.Event(), threading.Event()

        def hang(_: str) -> Tuple[int, Dict[str, str], bytes]:
            began.set()
            go_on.wait(30)
            return 200, {}, b"{}"

        self.gateway.answer_to = hang
        async with self.client(max_connections=1) as client:
            task = asyncio.ensure_future(client.get_wallet())
            await asyncio.get_running_loop().run_in_executor(None, began.wait, 30)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.gateway.answers = [(200, {}, b'{"free":true}')]
            self.assertEqual(await client.get_wallet(), {"free": True})
            go_on.set()

    async def test_a_call_that_could_not_be_sent_in_time_is_known_not_to_be_done(self) -> None:
        go_on = threading.Event()

        def hang(_: str) -> Tuple[int, Dict[str, str], bytes]:
            go_on.wait(30)
            return 200, {}, b"{}"

        self.gateway.answer_to = hang
        async with self.client(max_connections=1) as client:
            first = asyncio.ensure_future(client.get_wallet())
            await asyncio.sleep(0)
            with self.assertRaises(marina.CallTimeoutError) as caught:
                await self.place(client, deadline=0.2, idempotency_key="mine")
            self.assertFalse(caught.exception.is_outcome_unknown)
            self.assertEqual(caught.exception.idempotency_key, "mine")
            go_on.set()
            await first
        self.assertNotIn("POST", [method for method, _, _, _ in self.gateway.requests])


class Loops(unittest.TestCase):
    """A program may have several event loops, one after the other or at the same time, and may fork between them."""

    def setUp(self) -> None:
        self.gateway = Gateway()
        self.gateway.answer_to = lambda path: (200, {}, json.dumps({"account": path.split("/")[3]}).encode("ascii"))
        self.client = AsyncMarina(self.gateway.url, "marina_test_key")

    def tearDown(self) -> None:
        self.gateway.server.shutdown()
        self.gateway.server.server_close()

    async def read(self, name: str) -> bool:
        found: List[Any] = [await self.client.get_balance(account=f"{name}-{number}") for number in range(5)]
        await self.client.close()
        return [each["account"] for each in found] == [f"{name}-{number}" for number in range(5)]

    def test_one_client_serves_loops_one_after_the_other_and_at_the_same_time(self) -> None:
        self.assertTrue(asyncio.run(self.read("ONE")))
        self.assertTrue(asyncio.run(self.read("TWO")))
        right: List[bool] = []
        threads = [
            threading.Thread(target=lambda name=name: right.append(asyncio.run(self.read(name)))) for name in "ABCD"
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(right, [True] * 4)


class Answers(unittest.IsolatedAsyncioTestCase):
    """What the client reads of HTTP by itself."""

    async def answer(self, *parts: bytes, **options: Any) -> Any:
        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
                await asyncio.sleep(0)
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            port = server.sockets[0].getsockname()[1]
            async with AsyncMarina(f"http://127.0.0.1:{port}", "key", max_attempts=1, **options) as client:
                return await client.get_wallet()

    async def test_an_answer_may_come_in_chunks_by_its_length_or_to_the_end(self) -> None:
        for parts in (
            (b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", b'{"a', b'":1}'),
            (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", b'{"a":1}'),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b'3;x=y\r\n{"a\r\n', b'4\r\n":1}\r\n0\r\nx: y\r\n\r\n'),
            (b"HTTP/1.0 200 OK\r\n\r\n", b'{"a":1}'),
        ):
            with self.subTest(parts[0]):
                self.assertEqual(await self.answer(*parts), {"a": 1})

    async def test_what_is_no_whole_answer_is_none(self) -> None:
        for parts in (
            (b"",),
            (b"SSH-2.0-x\r\n",),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n", b'{"a'),
            (b"HTTP/1.1 200 OK\r\ncontent-length: -7\r\n\r\n", b'{"a":1}'),
            (b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"zz\r\n"),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", b"ffffffff\r\n"),
            (b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n", b"x"),
            (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",),
            (b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000 + b"\r\n",),
        ):
            with self.subTest(parts[0][:50]), self.assertRaises(marina.NoAnswerError):
                await self.answer(*parts)

    async def test_a_time_out_says_that_it_is_one(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            async with AsyncMarina(url, "key", attempt_seconds=0.2, max_attempts=1) as client:
                with self.assertRaises(marina.CallTimeoutError) as caught:
                    await client.cancel_order(id="ord_1")
        self.assertTrue(caught.exception.is_outcome_unknown)
        self.assertEqual(str(caught.exception).split(".")[0], "cancel_order got no answer within 0")


if __name__ == "__main__":
    unittest.main()
