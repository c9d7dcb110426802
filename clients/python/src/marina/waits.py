"""Waits for a socket, within a deadline and until a program stops."""

from __future__ import annotations

import queue
import selectors
import socket
import threading
import time
from typing import Any, Callable, List, Optional, Tuple

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE

# `select` cannot wait for a descriptor above 1,023, and Windows has no `poll`.
_Selector: Any = getattr(selectors, "PollSelector", selectors.SelectSelector)
# A stop is noticed after this many seconds.
_STOP_SECONDS = 0.25
_LONGEST_WAIT = 60.0


class StoppedError(Exception):
    """The program does not want the answer any more."""


class Limits:
    """When an attempt ends: at a time, or when the program stops it."""

    def __init__(self, ends_at: float, stop: Optional[threading.Event] = None) -> None:
        self.ends_at = ends_at
        self._stop = stop

    def left(self) -> float:
        """The seconds that are left. Raises a TimeoutError if there are none, and a StoppedError once stopped."""
        if self._stop is not None and self._stop.is_set():
            raise StoppedError()
        seconds = self.ends_at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError("the time is over")
        return seconds

    def until(self, ends_at: float) -> "Limits":
        """The same with an earlier end."""
        return Limits(min(self.ends_at, ends_at), self._stop)

    def step(self) -> float:
        """How long to wait before the limits are looked at again."""
        return min(self.left(), _LONGEST_WAIT if self._stop is None else _STOP_SECONDS)

    def wait(self, sock: socket.socket, events: int) -> None:
        """Waits until a socket can be read or written. Raises what `left` raises."""
        with _Selector() as selector:
            selector.register(sock, events)
            while not selector.select(self.step()):
                pass


def is_readable(descriptor: int) -> bool:
    """Whether bytes, or the end, wait to be read."""
    with _Selector() as selector:
        selector.register(descriptor, READ)
        return bool(selector.select(0))


Addresses = List[Tuple[Any, ...]]


def resolve(host: str, port: int, limits: Limits) -> Addresses:
    """The addresses of a host. Raises an OSError if it has none, and what `limits.left` raises.

    The system's resolver knows no deadline, so it is asked in a thread of its own.
    """
    try:
        return socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM, 0, socket.AI_NUMERICHOST)
    except socket.gaierror:
        # It is a name.
        pass
    answers: "queue.SimpleQueue[Callable[[], Addresses]]" = queue.SimpleQueue()
    asking = threading.Thread(target=lambda: answers.put(_asked(host, port)), name="marina-dns", daemon=True)
    try:
        asking.start()
    except RuntimeError:
        # Python starts no thread while it ends.
        return _asked(host, port)()
    while True:
        try:
            return answers.get(timeout=limits.step())()
        except queue.Empty:
            continue


def _asked(host: str, port: int) -> Callable[[], Addresses]:
    """Asks the resolver, and hands its answer or its error over."""
    try:
        found: Addresses = list(socket.getaddrinfo(host, port, 0, socket.SOCK_STREAM))
        return lambda: found
    except Exception as error:
        failure = error

        def fail() -> Addresses:
            raise failure

        return fail
