"""Sends one request over HTTP with asyncio and reads its answer, within a deadline."""

from __future__ import annotations

import asyncio
import http.client
import os
import socket
import time
import weakref
from typing import Any, List, NamedTuple, Optional, Tuple

from .answers import HttpAnswer
from .async_waits import Slots, within
from .calls import Attempt
from .connection import share_of
from .settings import Address
from .transport import MAX_IDLE, MAX_IDLE_SECONDS, context_of, portable
from .waits import is_readable
from .wire import MAX_LINE_BYTES, read_answer, request_bytes

_CHUNK_BYTES = 64 * 1024
# A peer that does not answer the end of TLS is not waited for.
_CLOSE_SECONDS = 1.0


class _Reader(asyncio.StreamReader):
    """What comes over a connection. If it breaks, what had come can be read: a gateway that refuses a document by its headers
    answers and closes before it has read it."""

    unread = 0
    """How many bytes came that nobody has read."""

    def feed_data(self, data: bytes) -> None:
        self.unread += len(data)
        super().feed_data(data)

    def set_exception(self, exc: BaseException) -> None:
        self.feed_eof()


class _Source:
    """The bytes of a reader, which are counted."""

    def __init__(self, reader: _Reader) -> None:
        self._reader = reader

    async def line(self) -> bytes:
        try:
            return self._counted(await self._reader.readuntil(b"\n"))
        except asyncio.LimitOverrunError as error:
            raise http.client.HTTPException(f"the answer has a line longer than {MAX_LINE_BYTES} bytes") from error

    async def exactly(self, size: int) -> bytes:
        return self._counted(await self._reader.readexactly(size))

    async def some(self) -> bytes:
        return self._counted(await self._reader.read(_CHUNK_BYTES))

    def _counted(self, data: bytes) -> bytes:
        self._reader.unread -= len(data)
        return data


class _Connection(NamedTuple):
    reader: _Reader
    writer: asyncio.StreamWriter

    def is_clean(self) -> bool:
        """Whether nothing came since the last answer, not even the end: only then can it be used again."""
        if self.writer.is_closing() or self.reader.at_eof() or self.reader.unread != 0:
            return False
        # The event loop may not have read yet what the system has.
        sock = self.writer.get_extra_info("socket")
        return sock is not None and sock.fileno() >= 0 and not is_readable(sock.fileno())


class _Pool:
    """The connections of one event loop: none can be used in another."""

    def __init__(self, max_connections: int) -> None:
        self.pid = os.getpid()
        self.slots = Slots(max_connections)
        self.idle: List[Tuple[float, _Connection]] = []


class AsyncTransport:
    """The connections to one gateway. Redirects are not followed."""

    def __init__(self, address: Address, max_connections: int) -> None:
        self._address = address
        self._context = context_of(address)
        self._max_connections = max_connections
        self._pools: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool]" = weakref.WeakKeyDictionary()

    def __reduce__(self) -> Tuple[Any, ...]:
        # A process that is spawned gets connections of its own.
        return type(self), (portable(self._address), self._max_connections)

    def slots(self) -> Slots:
        """One for each request that may be under way in this event loop."""
        return self._pool().slots

    async def send(self, attempt: Attempt) -> HttpAnswer:
        """Sends a request once. Raises OSError, EOFError or http.client.HTTPException if no whole answer came, and TimeoutError if
        it did not come in time."""
        try:
            return await within(attempt.seconds, self._exchange(attempt))
        except (asyncio.TimeoutError, TimeoutError) as error:
            # Before Python 3.11 asyncio's is not the built-in.
            raise TimeoutError(f"no whole answer within {attempt.seconds:.3g} s") from error

    async def close(self) -> None:
        """Closes what is idle."""
        pool = self._pool()
        idle, pool.idle = pool.idle, []
        for _, connection in idle:
            connection.writer.close()
        for _, connection in idle:
            try:
                await within(_CLOSE_SECONDS, connection.writer.wait_closed())
            except (OSError, asyncio.TimeoutError):
                # It is not used any more, however it ended.
                connection.writer.transport.abort()

    async def _exchange(self, attempt: Attempt) -> HttpAnswer:
        pool = self._pool()
        connection = (_take_idle(pool) if attempt.may_reuse else None) or await self._connect(attempt)
        is_kept = False
        try:
            # Not drained: an answer may come before all of a body was sent, and no body is larger than it is in memory.
            connection.writer.write(request_bytes(self._address, attempt))
            answer, may_keep = await read_answer(_Source(connection.reader))
            has_sent_all = connection.writer.transport.get_write_buffer_size() == 0
            if may_keep and has_sent_all and connection.is_clean() and len(pool.idle) < MAX_IDLE:
                pool.idle.append((time.monotonic(), connection))
                is_kept = True
            return answer
        finally:
            if not is_kept:
                connection.writer.transport.abort()

    async def _connect(self, attempt: Attempt) -> _Connection:
        host, port, _, is_tls, _ = self._address
        loop = asyncio.get_running_loop()
        ends_at = time.monotonic() + attempt.seconds
        sock = await _dial(host, port if port is not None else 443 if is_tls else 80, ends_at)
        reader = _Reader(limit=MAX_LINE_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        name = host if is_tls else None
        try:
            transport, _ = await loop.create_connection(
                lambda: protocol, sock=sock, ssl=self._context, server_hostname=name
            )
        except BaseException:
            sock.close()
            raise
        return _Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        # A process that was forked gets connections of its own.
        if pool is None or pool.pid != os.getpid():
            pool = self._pools[loop] = _Pool(self._max_connections)
        return pool


async def _dial(host: str, port: int, ends_at: float) -> socket.socket:
    """Tries each address of the host in turn. They share the time that there is."""
    failure: BaseException = OSError("the host has no address")
    addresses = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    for number, (family, kind, protocol, _name, where) in enumerate(addresses):
        seconds = share_of(max(0.0, ends_at - time.monotonic()), len(addresses) - number)
        try:
            return await within(seconds, _reach(family, kind, protocol, where))
        except (OSError, asyncio.TimeoutError) as error:
            failure = error
    raise failure


async def _reach(family: int, kind: int, protocol: int, where: Any) -> socket.socket:
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, where)
        return sock
    except BaseException:
        sock.close()
        raise


def _take_idle(pool: _Pool) -> Optional[_Connection]:
    while pool.idle:
        since, connection = pool.idle.pop()
        if time.monotonic() - since < MAX_IDLE_SECONDS and connection.is_clean():
            return connection
        connection.writer.transport.abort()
    return None
