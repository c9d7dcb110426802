"""Sends one request over HTTP and reads its answer, within a deadline."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
import time
from typing import Dict, List, Mapping, NamedTuple, Optional, Tuple, Union
from urllib.parse import urlsplit

# No answer is longer: a page has at most 100 items.
_MOST_BYTES = 32 * 1024 * 1024
_CHUNK_BYTES = 64 * 1024
# So many connections are kept while nothing is sent, and so long. The gateway keeps them longer.
_MOST_IDLE = 8
_LONGEST_IDLE = 2.0

_Connection = Union[http.client.HTTPConnection, http.client.HTTPSConnection]


class HttpAnswer(NamedTuple):
    """An answer, whatever it says."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


class Transport:
    """The connections to one gateway. Any number of threads may use them at once. Redirects are not followed."""

    def __init__(self, base_url: str, context: Optional[ssl.SSLContext]) -> None:
        self._idle: List[Tuple[float, _Connection]] = []
        self._lock = threading.Lock()
        parts = urlsplit(base_url)
        if parts.hostname is None or parts.scheme not in ("http", "https"):
            raise ValueError("The base URL has to be a URL of http or https.")
        self._is_tls = parts.scheme == "https"
        self._host = parts.hostname
        self._port = parts.port
        self._prefix = parts.path.rstrip("/")
        self._context = (context or ssl.create_default_context()) if self._is_tls else None

    def send(
        self, method: str, path: str, headers: Dict[str, str], body: Optional[bytes], seconds: float, may_reuse: bool
    ) -> HttpAnswer:
        """Sends a request once. Raises OSError or http.client.HTTPException if no whole answer came in time.

        An idle connection may have been closed just now. So a request that must not be sent twice gets a new one.
        """
        ends_at = time.monotonic() + seconds
        connection = (self._take_idle() if may_reuse else None) or self._connect()
        # The socket's own time-out is for each read. This one is for all of them.
        watch = threading.Timer(seconds, _cut, (connection,))
        watch.daemon = True
        watch.start()
        try:
            connection.timeout = seconds
            if connection.sock is not None:
                connection.sock.settimeout(seconds)
            connection.request(method, self._prefix + path, body, headers)
            response = connection.getresponse()
            whole = _read(response, ends_at)
            answer = HttpAnswer(response.status, {name.lower(): value for name, value in response.getheaders()}, whole)
            if not response.will_close and time.monotonic() < ends_at:
                watch.cancel()
                self._keep(connection)
            else:
                connection.close()
            return answer
        except BaseException:
            connection.close()
            raise
        finally:
            watch.cancel()

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Closes what is idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _connect(self) -> _Connection:
        if self._is_tls:
            return http.client.HTTPSConnection(self._host, self._port, context=self._context)
        return http.client.HTTPConnection(self._host, self._port)

    def _take_idle(self) -> Optional[_Connection]:
        with self._lock:
            while self._idle:
                since, connection = self._idle.pop()
                if time.monotonic() - since < _LONGEST_IDLE:
                    return connection
                connection.close()
        return None

    def _keep(self, connection: _Connection) -> None:
        with self._lock:
            if len(self._idle) < _MOST_IDLE:
                self._idle.append((time.monotonic(), connection))
                return
        connection.close()


def _read(response: http.client.HTTPResponse, ends_at: float) -> bytes:
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
        if size > _MOST_BYTES:
            raise http.client.HTTPException(f"the answer is longer than {_MOST_BYTES} bytes")
        if time.monotonic() > ends_at:
            raise TimeoutError("the answer took too long")


def _cut(connection: _Connection) -> None:
    """Ends what waits for a connection in another thread."""
    sock = connection.sock
    if sock is None:
        return
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        # It is closed already, which is what was wanted.
        pass
