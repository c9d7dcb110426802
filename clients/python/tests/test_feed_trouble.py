"""How the event feed goes on after failures, in both clients: each is read again from the same event, and waits grow only in one outage."""

from __future__ import annotations

import asyncio
import threading
import unittest
from typing import Any, Callable, Coroutine, List, Optional, Tuple

from marina.async_pages import AsyncEventFeed, AsyncPages
from marina.errors import CallState, ErrorAnswer, ErrorDetails, NoAnswerError
from marina.pages import EventFeed, Pages

STATE = CallState("listEvents", None, 1, True)
SILENCE = NoAnswerError("no answer", STATE)


def refused(status: int, code: Optional[str], retry_after: Optional[int] = None) -> ErrorAnswer:
    return ErrorAnswer(ErrorDetails(status, None, code, "refused", None, None, None, None, None, retry_after), STATE)


def page(cursor: str, *ids: str, more: bool = False) -> Any:
    return {"data": [{"id": each} for each in ids], "next_cursor": cursor, "has_more": more}


class Story:
    """What the reads of a feed come to, one after the other, and what the feed did."""

    def __init__(self, *outcomes: Any) -> None:
        self.outcomes = list(outcomes)
        self.reads: List[Tuple[Optional[str], int]] = []
        self.waits: List[float] = []
        self.troubles: List[Any] = []
        self.seen: List[str] = []

    def read(self, cursor: Optional[str], limit: int) -> Any:
        self.reads.append((cursor, limit))
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def tell(self, error: Any, seconds: float) -> None:
        self.troubles.append((error, seconds))


class QuickEvent(threading.Event):
    """Notes how long it is waited for."""

    def __init__(self, story: Story) -> None:
        super().__init__()
        self._story = story

    def wait(self, timeout: Optional[float] = None) -> bool:
        self._story.waits.append(timeout or 0.0)
        return self.is_set()


class QuickAsyncFeed(AsyncEventFeed):
    story: Story

    async def _wait(self, seconds: float) -> None:
        self.story.waits.append(seconds)


def sync_run(story: Story, skips: bool = False) -> Any:
    stop = QuickEvent(story)
    feed = EventFeed(story.read, cursor="0", limit=7, poll_seconds=3.0, stop=stop, on_trouble=story.tell)
    if skips:
        feed.skip_to_end()
        return feed.cursor
    for event in feed:
        story.seen.append(event["id"])
    return feed.cursor


def async_run(story: Story, skips: bool = False) -> Any:
    async def run() -> Any:
        async def read(cursor: Optional[str], limit: int) -> Any:
            return story.read(cursor, limit)

        feed = QuickAsyncFeed(read, cursor="0", limit=7, poll_seconds=3.0, stop=None, on_trouble=story.tell)
        feed.story = story
        if skips:
            await feed.skip_to_end()
            return feed.cursor
        async for event in feed:
            story.seen.append(event["id"])
        return feed.cursor

    return asyncio.run(run())


class Trouble(unittest.TestCase):
    def both(self, outcomes: Tuple[Any, ...], check: Callable[[Story, Any], None], skips: bool = False) -> None:
        for run in (sync_run, async_run):
            with self.subTest(run.__name__):
                story = Story(*outcomes)
                check(story, run(story, skips))

    def test_a_feed_that_skips_to_its_end_goes_past_every_page_and_hands_out_nothing(self) -> None:
        def check(story: Story, cursor: Any) -> None:
            self.assertEqual(story.reads, [("0", 100), ("100", 100), ("100", 100), ("200", 100)])
            self.assertEqual((cursor, story.seen), ("230", []))

        pages = (page("100", "a", more=True), SILENCE, page("200", "b", more=True), page("230", "c"))
        self.both(pages, check, skips=True)

    def test_the_second_failure_in_a_row_is_waited_for_longer_and_a_good_answer_begins_anew(self) -> None:
        def check(story: Story, _: Any) -> None:
            waits = [seconds for _, seconds in story.troubles]
            self.assertEqual(len(waits), 4)
            for wait, most in zip(waits, (0.5, 1.0, 2.0, 0.5)):
                self.assertTrue(most / 2 <= wait <= most, (wait, most))
            self.assertTrue(all(error is SILENCE for error, _ in story.troubles))
            self.assertEqual(story.reads, [("0", 100)] * 4 + [("1", 100)] * 2)

        outcomes = (SILENCE, SILENCE, SILENCE, page("1", "a", more=True), SILENCE, page("2"))
        self.both(outcomes, check, skips=True)

    def test_a_wait_is_as_long_as_the_gateway_asks_for_and_thirty_seconds_at_most(self) -> None:
        for asked, least, most in ((5, 5.0, 6.25), (30, 30.0, 30.0), (600, 30.0, 30.0)):
            def check(story: Story, _: Any, least: float = least, most: float = most) -> None:
                [(_, told)] = story.troubles
                self.assertTrue(least <= told <= most, told)
                self.assertIn(told, story.waits)

            self.both((refused(503, "service_unavailable", asked), page("1")), check, skips=True)

    def test_a_key_that_was_revoked_ends_the_feed_also_after_other_failures(self) -> None:
        revoked = refused(401, "unauthorized")
        for run in (sync_run, async_run):
            with self.subTest(run.__name__):
                story = Story(SILENCE, refused(500, None), revoked, page("1"))
                with self.assertRaises(ErrorAnswer) as raised:
                    run(story)
                self.assertIs(raised.exception, revoked)
                self.assertEqual(len(story.troubles), 2, "the last one is raised, and not told")

    def test_a_feed_without_further_events_is_read_again_after_a_while_and_a_page_with_more_at_once(self) -> None:
        for run in (sync_run, async_run):
            with self.subTest(run.__name__):
                pages = (page("1", "a", more=True), page("2", "b"), page("3"), refused(403, "insufficient_scope"))
                story = Story(*pages)
                with self.assertRaises(ErrorAnswer):
                    run(story)
                self.assertEqual(story.reads, [("0", 7), ("1", 7), ("2", 7), ("3", 7)])
                self.assertEqual((story.seen, story.waits), (["a", "b"], [3.0, 3.0]))

    def test_a_list_is_read_to_its_last_page_also_past_an_empty_one(self) -> None:
        pages = {None: page("1", "a", "b", more=True), "1": page("2", more=True), "2": page("3", "c")}
        for cursor_of_last in ("3", None):
            last = {**pages["2"], "next_cursor": cursor_of_last, "has_more": cursor_of_last is None}
            answers = {**pages, "2": last}
            expected = ["a", "b", "c"]
            sync: Pages[Any, Any] = Pages(lambda cursor: answers[cursor])
            self.assertEqual([each["id"] for each in sync], expected)
            self.assertEqual(sync.page(), pages[None])

            async def read(cursor: Optional[str]) -> Any:
                return answers[cursor]

            async def run() -> List[str]:
                pages: AsyncPages[Any, Any] = AsyncPages(read)
                self.assertEqual(await pages.page(), answers[None])
                return [each["id"] async for each in pages]

            work: Coroutine[Any, Any, List[str]] = run()
            self.assertEqual(asyncio.run(work), expected)
