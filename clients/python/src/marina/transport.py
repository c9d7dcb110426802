"""Sends one request over HTTP and reads its answer, within a deadline."""

from __future__ import annotations

import http.client
import io
import os
import socket
import ssl
import threading
import time
import weakref
from typing import Any, Dict, List, Optional, Set, Tuple

from .answers import MAX_ANSWER_BYTES, HttpAnswer
from .calls import Address, Attempt

_CHUNK_BYTES = 64 * 1024
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
        self._begin()
        _transports.add(self)

    def send(self, attempt: Attempt) -> HttpAnswer:
        """Sends a request once. Raises OSError or http.client.HTTPException if no whole answer came, and TimeoutError if it did
        not come in time.

        An idle connection may have been closed just now. So a request that must not be sent twice gets a new one.
        """
        ends_at = time.monotonic() + attempt.seconds
        connection = (self._take_idle() if attempt.may_reuse else None) or self._new_connection()
        connection.ends_at = ends_at
        self._busy.add(connection)
        try:
            is_whole = connection.request_until_answered(
                attempt.method, self._address.prefix + attempt.path, attempt.body, attempt.headers
            )
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            answer = HttpAnswer(response.status, headers, _read(response))
            if is_whole and not response.will_close:
                self._keep(connection)
            return answer
        except (OSError, http.client.HTTPException) as error:
            # Before Python 3.10 a socket's time-out is no TimeoutError.
            if isinstance(error, socket.timeout) or time.monotonic() >= ends_at:
                raise TimeoutError(f"no whole answer within {attempt.seconds:.3g} s") from error
            raise
        finally:
            self._busy.discard(connection)
            if not connection.is_kept:
                connection.close()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes what is idle."""
        if self._pid != os.getpid():
            self.leave_to_parent()
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def leave_to_parent(self, busy: Tuple["_Connection", ...] = ()) -> None:
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
        self._lock = threading.Lock()
        self._idle: List[Tuple[float, _Connection]] = []
        self._busy: Set[_Connection] = set()

    def _new_connection(self) -> "_Connection":
        host, port, _, context = self._address
        return _Connection(host, port) if context is None else _TlsConnection(host, port, context=context)

    def _take_idle(self) -> Optional["_Connection"]:
        # Also where a process was forked without Python's knowledge.
        if self._pid != os.getpid():
            self.leave_to_parent()
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < MAX_IDLE_SECONDS:
                    connection.is_kept = False
                    return connection
                connection.close()
        return None

    def _keep(self, connection: "_Connection") -> None:
        with self._lock:
            if len(self._idle) < MAX_IDLE and connection in self._busy:
                connection.is_kept = True
                self._idle.append((time.monotonic(), connection))


class _Connection(http.client.HTTPConnection):
    """A connection on which all that one request takes ends at `ends_at`. A socket's own time-out is for each read."""

    ends_at = 0.0
    is_kept = False

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        # Members of http.client's connections, which a subclass may replace.
        self._create_connection = self._dial
        self.response_class = self._response  # type: ignore[assignment,reportAttributeAccessIssue]

    def send(self, data: Any) -> None:
        if self.sock is None:
            self.connect()
        sock: socket.socket = self.sock  # type: ignore[assignment]
        sock.settimeout(_left(self.ends_at))
        sock.sendall(data)

    def request_until_answered(
        self, method: str, path: str, body: Optional[bytes], headers: Dict[str, str]
    ) -> bool:
        """Sends a request; false if the connection broke while its body was sent.

        A gateway that refuses a document by its headers answers and closes before it has read it. The answer can be read then.
        """
        try:
            self.request(method, path, body, headers)
        except (BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
            if self.sock is None:
                raise
            return False
        return True

    def detach(self) -> None:
        """Cuts this process off from a connection that its parent uses. The parent notices nothing."""
        sock = self.sock
        if sock is None or sock.fileno() < 0:
            return
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, sock.fileno())
        os.close(nothing)

    def _dial(self, address: Tuple[str, int], *_: Any) -> socket.socket:
        """Tries each address of the host in turn. All share the time that there is."""
        failure: OSError = OSError("the host has no address")
        for family, kind, protocol, _name, where in socket.getaddrinfo(*address, 0, socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_left(self.ends_at))
                sock.connect(where)
                return sock
            except OSError as error:
                sock.close()
                failure = error
        raise failure

    def _response(self, sock: socket.socket, *args: Any, **more: Any) -> http.client.HTTPResponse:
        return http.client.HTTPResponse(_Incoming(sock, self), *args, **more)  # type: ignore[arg-type]


class _TlsConnection(_Connection, http.client.HTTPSConnection):
    """The same over TLS."""


class _Incoming(io.RawIOBase):
    """What comes over a socket. It stands for the socket where a response makes a file of it."""

    def __init__(self, sock: socket.socket, connection: _Connection) -> None:
        super().__init__()
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self._connection = connection

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        self._sock.settimeout(_left(self._connection.ends_at))
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


def _left(ends_at: float) -> float:
    seconds = ends_at - time.monotonic()
    if seconds <= 0:
        raise TimeoutError("the time is over")
    return seconds


def _read(response: http.client.HTTPResponse) -> bytes:
    chunks: List[bytes] = []
    size = 0
    while True:
        chunk = response.read(_CHUNK_BYTES)
        if not chunk:
            if response.length:
                raise http.client.IncompleteRead(b"".join(chunks), response.length)
            return b"".join(chunks)
        chunks.append(chunk)
        size += len(chunk)
        if size > MAX_ANSWER_BYTES:
            raise http.client.HTTPException(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")


_transports: "weakref.WeakSet[Transport]" = weakref.WeakSet()


def _after_fork() -> None:
    for transport in list(_transports):
        # The threads that used these are not there.
        transport.leave_to_parent(tuple(transport._busy))


# Windows has no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
