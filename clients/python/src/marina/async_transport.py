"""Sends one request over HTTP with asyncio and reads its answer, within a deadline."""

from __future__ import annotations

import asyncio
import http.client
import io
import os
import re
import time
import weakref
from typing import Dict, List, NamedTuple, Optional, Tuple

from .answers import MAX_ANSWER_BYTES, HttpAnswer
from .calls import Address, Attempt
from .transport import MAX_IDLE, MAX_IDLE_SECONDS

_MAX_HEAD_BYTES = 64 * 1024
_CHUNK_BYTES = 64 * 1024
# A peer that does not answer the end of TLS is not waited for.
_CLOSE_SECONDS = 1.0


class _Reader(asyncio.StreamReader):
    """What comes over a connection. If it breaks, what had come can be read: a gateway that refuses a document by its headers
    answers and closes before it has read it."""

    def set_exception(self, exc: Exception) -> None:
        self.feed_eof()


class _Connection(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    @property
    def is_open(self) -> bool:
        return not (self.writer.is_closing() or self.reader.at_eof())


class _Pool:
    """The connections of one event loop: none can be used in another."""

    def __init__(self, max_connections: int) -> None:
        self.pid = os.getpid()
        self.slots = asyncio.Semaphore(max_connections)
        self.idle: List[Tuple[float, _Connection]] = []


class AsyncTransport:
    """The connections to one gateway. Redirects are not followed."""

    def __init__(self, address: Address, max_connections: int) -> None:
        self._address = address
        self._max_connections = max_connections
        self._pools: "weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool]" = weakref.WeakKeyDictionary()

    def slots(self) -> asyncio.Semaphore:
        """One for each request that may be under way in this event loop."""
        return self._pool().slots

    async def send(self, attempt: Attempt) -> HttpAnswer:
        """Sends a request once. Raises OSError, EOFError or http.client.HTTPException if no whole answer came, and TimeoutError if
        it did not come in time."""
        try:
            return await asyncio.wait_for(self._exchange(attempt), attempt.seconds)
        except asyncio.TimeoutError as error:
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
                await asyncio.wait_for(connection.writer.wait_closed(), _CLOSE_SECONDS)
            except (OSError, asyncio.TimeoutError):
                # It is not used any more, however it ended.
                connection.writer.transport.abort()

    async def _exchange(self, attempt: Attempt) -> HttpAnswer:
        pool = self._pool()
        connection = (_take_idle(pool) if attempt.may_reuse else None) or await self._connect()
        is_kept = False
        try:
            # Not drained: an answer may come before all of a body was sent, and no body is larger than it is in memory.
            connection.writer.write(self._written(attempt))
            answer, may_keep = await _read_answer(connection.reader)
            has_sent_all = connection.writer.transport.get_write_buffer_size() == 0
            if may_keep and has_sent_all and connection.is_open and len(pool.idle) < MAX_IDLE:
                pool.idle.append((time.monotonic(), connection))
                is_kept = True
            return answer
        finally:
            if not is_kept:
                connection.writer.transport.abort()

    async def _connect(self) -> _Connection:
        host, port, _, context = self._address
        number = port if port is not None else 443 if context is not None else 80
        loop = asyncio.get_running_loop()
        reader = _Reader(limit=_MAX_HEAD_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        transport, _ = await loop.create_connection(lambda: protocol, host, number, ssl=context)
        return _Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))

    def _written(self, attempt: Attempt) -> bytes:
        host, port, prefix, _ = self._address
        name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
        lines = [
            f"{attempt.method} {prefix}{attempt.path} HTTP/1.1",
            f"Host: {name}" if port is None else f"Host: {name}:{port}",
            "Accept-Encoding: identity",
            *(f"{each}: {value}" for each, value in attempt.headers.items()),
        ]
        body = attempt.body or b""
        if attempt.method != "GET" or body:
            lines.append(f"Content-Length: {len(body)}")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def _pool(self) -> _Pool:
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        # A process that was forked gets connections of its own.
        if pool is None or pool.pid != os.getpid():
            pool = self._pools[loop] = _Pool(self._max_connections)
        return pool


def _take_idle(pool: _Pool) -> Optional[_Connection]:
    while pool.idle:
        since, connection = pool.idle.pop()
        if connection.is_open and time.monotonic() - since < MAX_IDLE_SECONDS:
            return connection
        connection.writer.transport.abort()
    return None


async def _read_answer(reader: asyncio.StreamReader) -> Tuple[HttpAnswer, bool]:
    """An answer, and whether the connection can be used again after it."""
    version, status, headers = await _read_head(reader)
    # These come before the answer.
    while 100 <= status < 200 and status != 101:
        version, status, headers = await _read_head(reader)
    encoding = headers.get("transfer-encoding", "").lower()
    length = headers.get("content-length")
    may_keep = version == "1.1" and "close" not in headers.get("connection", "").lower()
    if status in (204, 304):
        body = b""
    elif encoding != "":
        if encoding != "chunked":
            raise http.client.HTTPException("the answer has an encoding that was not asked for")
        body = await _read_chunks(reader)
    elif length is not None:
        if not re.fullmatch(r"[0-9]{1,12}", length):
            raise http.client.HTTPException("the answer has no good length")
        body = await reader.readexactly(_bounded(int(length)))
    else:
        body, may_keep = await _read_to_end(reader), False
    return HttpAnswer(status, headers, body), may_keep


async def _read_head(reader: asyncio.StreamReader) -> Tuple[str, int, Dict[str, str]]:
    line = (await _read_until(reader, b"\n")).decode("latin-1").rstrip("\r\n")
    match = re.fullmatch(r"HTTP/(1\.[01]) ([0-9]{3})(?: .*)?", line)
    if match is None:
        raise http.client.BadStatusLine("the answer is not HTTP")
    lines: List[bytes] = []
    size = 0
    while not lines or lines[-1].strip() != b"":
        lines.append(await _read_until(reader, b"\n"))
        size += len(lines[-1])
        if size > _MAX_HEAD_BYTES:
            raise http.client.HTTPException(f"the answer's headers are longer than {_MAX_HEAD_BYTES} bytes")
    message = http.client.parse_headers(io.BytesIO(b"".join(lines)))
    return match[1], int(match[2]), {name.lower(): value for name, value in message.items()}


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    chunks: List[bytes] = []
    size = 0
    while True:
        line = (await _read_until(reader, b"\n")).split(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
            raise http.client.HTTPException("the answer has a chunk without a size")
        length = int(line, 16)
        size = _bounded(size + length)
        if length == 0:
            break
        chunks.append(await reader.readexactly(length))
        await _read_until(reader, b"\n")
    # Trailers end with an empty line.
    for _ in range(100):
        if (await _read_until(reader, b"\n")).strip() == b"":
            return b"".join(chunks)
    raise http.client.HTTPException("the answer has too many trailers")


async def _read_to_end(reader: asyncio.StreamReader) -> bytes:
    chunks: List[bytes] = []
    size = 0
    while True:
        chunk = await reader.read(_CHUNK_BYTES)
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size = _bounded(size + len(chunk))


async def _read_until(reader: asyncio.StreamReader, end: bytes) -> bytes:
    try:
        return await reader.readuntil(end)
    except asyncio.LimitOverrunError as error:
        raise http.client.HTTPException(f"the answer has a line longer than {_MAX_HEAD_BYTES} bytes") from error


def _bounded(size: int) -> int:
    if size > MAX_ANSWER_BYTES:
        raise http.client.HTTPException(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    return size
