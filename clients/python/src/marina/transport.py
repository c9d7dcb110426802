"""Sends one request over HTTP and reads its answer, within a deadline."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
import time
import weakref
from typing import Any, List, Optional, Set, Tuple

from .answers import HttpAnswer
from .calls import Attempt
from .connection import Connection
from .settings import Address
from .waits import Limits
from .wire import request_bytes

# So many connections are kept while nothing is sent, and so long. The gateway keeps them longer.
MAX_IDLE = 8
MAX_IDLE_SECONDS = 2.0


class Transport:
    """The connections to one gateway. Any number of threads may use them at once. Redirects are not followed.

    A process that was forked gets connections of its own: over one connection of two processes, each would read answers
    to the other's requests.
    """

    def __init__(self, address: Address) -> None:
        self._address = address
        self._context = context_of(address)
        self._begin()
        _transports.add(self)

    def __reduce__(self) -> Tuple[Any, ...]:
        # A process that is spawned gets connections of its own.
        return type(self), (portable(self._address),)

    def send(self, attempt: Attempt) -> HttpAnswer:
        """Sends a request once. Raises OSError, EOFError or http.client.HTTPException if no whole answer came, and TimeoutError if
        it did not come in time.

        An idle connection may have been closed just now. So a request that must not be sent twice gets a new one.
        """
        limits = Limits(time.monotonic() + attempt.seconds, attempt.stop)
        connection = (self._take_idle() if attempt.may_reuse else None) or Connection(self._address, self._context)
        self._busy.add(connection)
        try:
            answer, may_keep = connection.exchange(request_bytes(self._address, attempt), limits)
            if may_keep:
                self._keep(connection)
            return answer
        except (OSError, EOFError, http.client.HTTPException) as error:
            if isinstance(error, TimeoutError) or time.monotonic() >= limits.ends_at:
                raise TimeoutError(f"no whole answer within {attempt.seconds:.3g} s") from error
            raise
        finally:
            self._busy.discard(connection)
            if not connection.is_kept:
                connection.close()

    def __del__(self) -> None:
        # Its constructor may have failed.
        if "_idle" in self.__dict__:
            self.close()

    def close(self) -> None:
        """Closes what is idle."""
        if self._pid != os.getpid():
            self.leave_to_parent()
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def leave_to_parent(self, busy: Tuple["Connection", ...] = ()) -> None:
        """Lets go of the connections that are another process's, and sends nothing over them."""
        idle = self._idle
        self._begin()
        for _, connection in idle:
            connection.close()
        for connection in busy:
            connection.detach()

    def _begin(self) -> None:
        self._pid = os.getpid()
        # Another thread may have had the lock when the process was forked, and is not there to give it back.
        # A signal handler may make a call in a thread that has it.
        self._lock = threading.RLock()
        self._idle: List[Tuple[float, Connection]] = []
        self._busy: Set[Connection] = set()

    def _take_idle(self) -> Optional["Connection"]:
        # Also where a process was forked without Python's knowledge.
        if self._pid != os.getpid():
            self.leave_to_parent()
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < MAX_IDLE_SECONDS and connection.is_clean():
                    connection.is_kept = False
                    return connection
                connection.close()
        return None

    def _keep(self, connection: "Connection") -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE and connection in self._busy:
                connection.is_kept = True
                self._idle.append((time.monotonic(), connection))


def context_of(address: Address) -> Optional[ssl.SSLContext]:
    """Which certificates are trusted; None for plain HTTP."""
    return (address.ssl_context or ssl.create_default_context()) if address.is_tls else None


def portable(address: Address) -> Address:
    """The same address for another process. Raises a TypeError if that process could not trust the same certificates."""
    if address.ssl_context is not None:
        raise TypeError("A client with an `ssl_context` cannot be given to another process: make one there.")
    return address


_transports: "weakref.WeakSet[Transport]" = weakref.WeakSet()


def _after_fork() -> None:
    for transport in list(_transports):
        # The threads that used these are not there.
        transport.leave_to_parent(tuple(transport._busy))


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
