"""How a client is made, and what it refuses when it is made."""

from __future__ import annotations

import functools
import math
import os
import subprocess
import sys
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import marina

from .support import ORDER, WithGateway

URL = "http://127.0.0.1:1"


class Options(unittest.TestCase):
    def refused(self, *args: Any, **options: Any) -> None:
        for make in (marina.Marina, marina.AsyncMarina):
            with self.subTest((make.__name__, options)), self.assertRaises(ValueError) as caught:
                make(*(args or (URL, "marina_test_key")), **options)
            self.assertNotIn("hunter2", str(caught.exception))

    def test_an_option_that_a_client_cannot_have_is_refused_when_it_is_made(self) -> None:
        for name in ("attempt_seconds", "deadline"):
            for wrong in (0, -1, math.nan, math.inf, -math.inf, None, "5", True, 10**400, object()):
                self.refused(**{name: wrong})
        for wrong in (0, -1, 1.5, math.nan, None, "3", True):
            self.refused(max_attempts=wrong)
            with self.assertRaises(ValueError):
                marina.AsyncMarina(URL, "marina_test_key", max_connections=wrong)  # type: ignore[arg-type]
        self.refused(on_answer="print")

    def test_an_asynchronous_function_is_refused_where_nobody_awaits_it(self) -> None:
        async def told(*_: object) -> None:
            raise AssertionError("it was called")

        class Callable:
            async def __call__(self, *_: object) -> None:
                raise AssertionError("it was called")

        client = marina.Marina(URL, "marina_test_key")
        for each in (told, Callable(), Callable().__call__, functools.partial(told, 1)):
            with self.assertRaisesRegex(ValueError, "`on_answer` .*async.*AsyncMarina"):
                marina.Marina(URL, "marina_test_key", on_answer=each)  # type: ignore[arg-type]
            with self.assertRaisesRegex(ValueError, "`on_trouble` .*async.*AsyncMarina"):
                client.follow_events(on_trouble=each)  # type: ignore[arg-type]
            marina.AsyncMarina(URL, "marina_test_key", on_answer=each)
        for wrong in ("print", 5):
            for made in (client, marina.AsyncMarina(URL, "marina_test_key")):
                with self.assertRaises(ValueError):
                    made.follow_events(on_trouble=wrong)  # type: ignore[arg-type]

    def test_a_key_that_cannot_be_one_is_refused(self) -> None:
        for key in ("", "with blank", "line\n", None):
            self.refused(URL, key)

    def test_a_good_option_is_taken(self) -> None:
        marina.Marina(URL, "marina_test_key", attempt_seconds=0.1, deadline=10**10, max_attempts=1)

    def test_a_base_url_with_more_than_a_server_and_a_path_is_refused(self) -> None:
        for url in (
            "http://me:hunter2@127.0.0.1",
            "http://hunter2@127.0.0.1",
            "http://@127.0.0.1",
            "http://:@127.0.0.1",
            "http://127.0.0.1?key=hunter2",
            "http://127.0.0.1/?",
            "http://127.0.0.1#hunter2",
            "http://127.0.0.1:port",
            "http://127.0.0.1:99999",
            "http://[::1",
            "http://",
            "127.0.0.1:8080",
            "ftp://127.0.0.1",
            "http://127.0.0.1/ hunter2",
            None,
        ):
            self.refused(url, "marina_test_key")
        for url in ("http://127.0.0.1/marina/", "https://api.example.com", "http://[::1]:8080", "http://localhost/@x"):
            marina.Marina(url, "marina_test_key")

    def test_a_deadline_of_a_call_is_checked_before_anything_is_sent(self) -> None:
        with mock.patch("marina.transport.Transport.send", side_effect=AssertionError("it was sent")):
            client = marina.Marina(URL, "marina_test_key")
            for wrong in (0, -1, math.nan, math.inf, "5"):
                with self.assertRaises(ValueError):
                    client.create_order(**ORDER, deadline=wrong)
            for seconds in (-1, math.nan, math.inf, None):
                with self.assertRaises(ValueError):
                    client.follow_events(poll_seconds=seconds)  # type: ignore[arg-type]

    def test_a_client_that_was_refused_is_collected_without_a_word(self) -> None:
        program = "import gc, marina\ntry: marina.Marina('http://127.0.0.1', 'key', max_attempts=0)\nexcept ValueError: pass\n"
        program += "marina.transport.Transport.__new__(marina.transport.Transport)\ngc.collect()\n"
        env = {**os.environ, "PYTHONPATH": str(Path(marina.__file__).parents[1])}
        ran = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        self.assertEqual(ran.stderr, "")


class Proxies(WithGateway):
    def test_no_variable_of_a_proxy_is_read(self) -> None:
        self.gateway.answers = [(200, {}, b'{"ok":true}')]
        nowhere = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY")}
        with mock.patch.dict(os.environ, nowhere):
            self.assertEqual(marina.Marina(self.gateway.url, "marina_test_key").get_wallet(), {"ok": True})


if __name__ == "__main__":
    unittest.main()
