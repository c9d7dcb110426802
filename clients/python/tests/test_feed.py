"""Where the event feed goes on after it was left, in both clients: never behind an event that was not handled."""

from __future__ import annotations

import asyncio
import json
import threading
import unittest
from typing import Any, Callable, List, Optional, Tuple
from urllib.parse import parse_qs, urlsplit

import marina

from .support import Gateway

COUNT = 5
IDS = [str(number) for number in range(1, COUNT + 1)]


class Progress:
    """A program that stores the cursor before and after it handles each event, and is left at one of them."""

    def __init__(self, leaves_at: Optional[str]) -> None:
        self.leaves_at = leaves_at
        self.seen: List[str] = []
        self.stored: List[Optional[str]] = []

    def takes(self, event: Any, feed: Any) -> bool:
        self.seen.append(event["id"])
        self.stored.append(feed.cursor)
        return event["id"] == self.leaves_at


def sync_run(url: str, cursor: Optional[str], program: Progress, stops: bool) -> Optional[str]:
    stop = threading.Event()
    with marina.Marina(url, "marina_test_key") as client:
        feed = client.follow_events(cursor=cursor, limit=2, poll_seconds=0.01, stop=stop)
        for event in feed:
            if program.takes(event, feed):
                if not stops:
                    break
                stop.set()
        return feed.cursor


def async_run(url: str, cursor: Optional[str], program: Progress, stops: bool) -> Optional[str]:
    async def run() -> Optional[str]:
        stop = asyncio.Event()
        async with marina.AsyncMarina(url, "marina_test_key") as client:
            feed = client.follow_events(cursor=cursor, limit=2, poll_seconds=0.01, stop=stop)
            async for event in feed:
                if program.takes(event, feed):
                    if not stops:
                        break
                    stop.set()
            return feed.cursor

    return asyncio.run(run())


RUNS: Tuple[Callable[[str, Optional[str], Progress, bool], Optional[str]], ...] = (sync_run, async_run)


class Cursors(unittest.TestCase):
    def setUp(self) -> None:
        self.gateway = Gateway()
        self.gateway.answer_to = self.page

    def tearDown(self) -> None:
        self.gateway.server.shutdown()
        self.gateway.server.server_close()

    def page(self, path: str) -> Any:
        """Two events behind the cursor, which is the number of the event before them."""
        after = int(parse_qs(urlsplit(path).query).get("cursor", ["0"])[0])
        following = min(after + 2, COUNT)
        data = [{"id": each} for each in IDS[after:following]]
        body = {"has_more": following < COUNT, "next_cursor": str(following), "data": data}
        return 200, {}, json.dumps(body).encode("ascii")

    def test_no_event_is_passed_over_wherever_the_program_is_left_and_whichever_cursor_it_stored(self) -> None:
        for run in RUNS:
            for stops in (False, True):
                for leaves_at in IDS:
                    with self.subTest((run.__name__, stops, leaves_at)):
                        first = Progress(leaves_at)
                        end = run(self.gateway.url, None, first, stops)
                        self.assertEqual(first.seen, IDS[: int(leaves_at)])
                        self.assertEqual(end, first.stored[-1], "the last page is not over")
                        for cursor, handled in zip(first.stored, range(COUNT)):
                            # What was stored while an event was handled lies before that event.
                            self.assertLessEqual(int(cursor or 0), handled)
                        second = Progress(IDS[-1])
                        run(self.gateway.url, end, second, stops)
                        self.assertEqual(sorted({*first.seen, *second.seen}), IDS)
                        self.assertLessEqual(len(first.seen) + len(second.seen), COUNT + 2, "a page comes twice at most")

    def test_the_cursor_moves_from_page_to_page(self) -> None:
        for run in RUNS:
            with self.subTest(run.__name__):
                program = Progress(IDS[-1])
                run(self.gateway.url, None, program, False)
                self.assertEqual(program.stored, [None, None, "2", "2", "4"])
