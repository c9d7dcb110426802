"""How calls and the event feed end: a cancelled task sends nothing more, and a stopped feed ends soon, whatever it waits for."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
import unittest
from typing import Any, Callable, List, Tuple
from unittest import mock

import marina
from marina.async_transport import AsyncTransport
from marina.async_waits import Slots, within

from .support import ORDER, Scripted, WithGateway, answer_bytes, refusal

# A feed that notices a stop does so within a second. The rest is for a slow machine.
SOON = 5.0


class CancelledTasks(unittest.IsolatedAsyncioTestCase):
    def setUp(self) -> None:
        def busy(connection: socket.socket, _number: int, _head: str) -> None:
            connection.sendall(answer_bytes(503, {}))

        self.server = Scripted(busy)
        self.addCleanup(self.server.close)

    async def test_a_cancel_that_meets_the_answer_is_not_lost(self) -> None:
        tasks: List["asyncio.Task[Any]"] = []
        exchange = AsyncTransport._exchange

        async def met(transport: AsyncTransport, attempt: Any) -> Any:
            answer = await exchange(transport, attempt)
            # The task is cancelled in the moment in which it gets its answer.
            tasks[0].cancel()
            return answer

        async with marina.AsyncMarina(self.server.url, "marina_test_key") as client:
            with mock.patch.object(AsyncTransport, "_exchange", met):
                for work in (lambda: client.create_order(**ORDER), lambda: self.follow(client)):
                    self.server.heads.clear()
                    tasks[:] = [asyncio.ensure_future(work())]
                    done, _ = await asyncio.wait(tasks, timeout=SOON)
                    self.assertEqual([each.cancelled() for each in done], [True])
                    self.assertEqual(len(self.server.heads), 1)

    async def follow(self, client: marina.AsyncMarina) -> None:
        async for _ in client.follow_events(stop=asyncio.Event()):
            self.fail("there is no event")

    async def test_a_cancel_that_meets_the_turn_of_a_call_is_not_lost_and_gives_the_turn_back(self) -> None:
        slots = Slots(1)
        await slots.acquire(1)
        waiting = asyncio.ensure_future(slots.acquire(30))
        await asyncio.sleep(0)
        slots.release()
        waiting.cancel()
        await asyncio.wait((waiting,))
        self.assertTrue(waiting.cancelled())
        await slots.acquire(1)
        with self.assertRaises(asyncio.TimeoutError):
            await slots.acquire(0.01)
        slots.release()
        await slots.acquire(1)

    async def test_work_that_is_not_done_in_time_is_cancelled(self) -> None:
        ended: List[str] = []

        async def long() -> None:
            try:
                await asyncio.sleep(60)
            finally:
                ended.append("cancelled")

        with self.assertRaises(asyncio.TimeoutError):
            await within(0.01, long())
        self.assertEqual(ended, ["cancelled"])


class Feeds(WithGateway):
    def setUp(self) -> None:
        super().setUp()
        self.began, self.go_on = threading.Event(), threading.Event()
        self.addCleanup(self.go_on.set)

    def silent(self, _: str) -> Any:
        """The answer of a gateway that takes long."""
        self.began.set()
        self.go_on.wait(60)
        return 200, {}, b"{}"

    def busy(self, _: str) -> Any:
        """The answer of a gateway in an outage."""
        self.began.set()
        return refusal(503, "service_unavailable", retry_after="30")

    def test_a_stop_is_noticed_soon_whatever_the_feed_waits_for(self) -> None:
        for answer in (self.silent, self.busy):
            for skips in (False, True):
                with self.subTest((answer.__name__, skips)):
                    self.gateway.answer_to = answer
                    self.began.clear()
                    stop = threading.Event()
                    feed = self.marina.follow_events(stop=stop)
                    following = threading.Thread(target=feed.skip_to_end if skips else lambda: list(feed), daemon=True)
                    following.start()
                    self.assertTrue(self.began.wait(30))
                    stop.set()
                    following.join(SOON)
                    self.assertFalse(following.is_alive())

    def test_asyncio_notices_a_stop_soon_whatever_the_feed_waits_for(self) -> None:
        async def follow(client: marina.AsyncMarina, skips: bool) -> None:
            self.began.clear()
            stop = asyncio.Event()
            feed = client.follow_events(stop=stop)

            async def read() -> List[Any]:
                return [each async for each in feed]

            following = asyncio.ensure_future(feed.skip_to_end() if skips else read())
            loop = asyncio.get_running_loop()
            self.assertTrue(await loop.run_in_executor(None, self.began.wait, 30))
            stop.set()
            _, pending = await asyncio.wait((following,), timeout=SOON)
            self.assertEqual(pending, set())

        async def run() -> None:
            async with marina.AsyncMarina(self.gateway.url, "marina_test_key") as client:
                for answer in (self.silent, self.busy):
                    for skips in (False, True):
                        with self.subTest((answer.__name__, skips)):
                            self.gateway.answer_to = answer
                            await follow(client, skips)

        asyncio.run(run())

    def test_trouble_is_told_after_the_first_attempt_that_failed(self) -> None:
        for answers in ([None], [refusal(503, "service_unavailable", retry_after="5")]):
            stop = threading.Event()
            told: List[Tuple[Exception, float, float]] = []
            began = time.monotonic()

            def trouble(error: Exception, wait: float) -> None:
                told.append((error, wait, time.monotonic() - began))
                stop.set()

            self.gateway.answers = list(answers)
            self.assertEqual(list(self.marina.follow_events(stop=stop, on_trouble=trouble)), [])
            [(error, wait, after)] = told
            self.assertIsInstance(error, (marina.NoAnswerError, marina.ApiError))
            self.assertLess(after, SOON)
            self.assertGreater(wait, 0)

    def test_asyncio_tells_trouble_after_the_first_attempt_that_failed(self) -> None:
        async def run() -> None:
            stop = asyncio.Event()
            told: List[float] = []
            began = time.monotonic()

            def trouble(_error: Exception, _wait: float) -> None:
                told.append(time.monotonic() - began)
                stop.set()

            async with marina.AsyncMarina(self.gateway.url, "marina_test_key") as client:
                self.gateway.answer_to = self.busy
                self.assertEqual([each async for each in client.follow_events(stop=stop, on_trouble=trouble)], [])
            self.assertEqual(len(told), 1)
            self.assertLess(told[0], SOON)

        asyncio.run(run())

    def test_the_feed_goes_on_after_an_answer_that_is_no_page(self) -> None:
        page = {"has_more": False, "next_cursor": "end", "data": [{"id": "one"}]}
        wrong = ({}, {**page, "data": None}, {**page, "data": ["x"]}, {**page, "next_cursor": None}, {**page, "has_more": 1})
        for each in wrong:
            with self.subTest(each):
                self.gateway.answers = [(200, {}, json.dumps(value).encode("ascii")) for value in (each, page)]
                told: List[Exception] = []
                with mock.patch.object(threading.Event, "wait", lambda _event, _seconds=None: False):
                    feed = self.marina.follow_events(on_trouble=lambda error, _: told.append(error))
                    self.assertEqual(next(iter(feed))["id"], "one")
                self.assertEqual([type(error) for error in told], [marina.NoAnswerError])

    def test_a_list_whose_answer_is_no_page_is_asked_for_again(self) -> None:
        page = b'{"has_more":false,"next_cursor":null,"data":[{"id":"ord_1"}]}'
        self.gateway.answers = [(200, {}, b"{}"), (200, {}, page)]
        self.assertEqual([each["id"] for each in self.marina.list_orders()], ["ord_1"])
        self.gateway.answers = [(200, {}, b'{"data":[],"has_more":true,"next_cursor":null}')]
        with self.assertRaises(marina.NoAnswerError):
            marina.Marina(self.gateway.url, "marina_test_key", max_attempts=1).list_orders().page()

    def test_the_feed_goes_on_after_an_outage(self) -> None:
        page = {"has_more": False, "next_cursor": "end", "data": [{"id": "one"}]}
        self.gateway.answers = [None, refusal(503, "service_unavailable", retry_after="1"), (200, {}, json.dumps(page).encode("ascii"))]
        waits: List[float] = []
        no_wait: Callable[..., bool] = lambda _event, _seconds=None: False
        with mock.patch.object(threading.Event, "wait", no_wait):
            feed = self.marina.follow_events(on_trouble=lambda _, wait: waits.append(wait))
            self.assertEqual(next(iter(feed))["id"], "one")
        self.assertEqual(len(waits), 2)


if __name__ == "__main__":
    unittest.main()
