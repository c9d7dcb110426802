"""HTTP/1.1 as both clients write and read it. It does no I/O itself."""

from __future__ import annotations

import http.client
import re
from typing import Any, Coroutine, Dict, List, NamedTuple, Optional, Protocol, Tuple, TypeVar

from .answers import MAX_ANSWER_BYTES, HttpAnswer
from .calls import Attempt
from .settings import Address

MAX_LINE_BYTES = 64 * 1024
# The bytes of one answer's head, and of all interim answers before it together.
_MAX_HEAD_BYTES = 64 * 1024
# Servers and proxies send one or two. Without a bound, a peer could hold a call with them until its deadline.
_MAX_INTERIM_ANSWERS = 100
_MAX_TRAILERS = 100

Result = TypeVar("Result")


class Source(Protocol):
    """The bytes that come over a connection. Each method raises an EOFError if the connection ends before."""

    async def line(self) -> bytes:
        """The bytes up to a line end, with it. Raises an HTTPException if they are more than `MAX_LINE_BYTES`."""
        ...

    async def exactly(self, size: int) -> bytes:
        """So many bytes."""
        ...

    async def some(self) -> bytes:
        """The next bytes, however many; none at the end."""
        ...


class _Head(NamedTuple):
    version: str
    status: int
    headers: Dict[str, str]
    size: int


def run_now(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs a coroutine whose source blocks, so that both clients read answers with the same code."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("the source did not block")


def request_bytes(address: Address, attempt: Attempt) -> bytes:
    """A whole request."""
    name = f"[{address.host}]" if ":" in address.host else address.host.encode("idna").decode("ascii")
    lines = [
        f"{attempt.method} {address.prefix}{attempt.path} HTTP/1.1",
        f"Host: {name}" if address.port is None else f"Host: {name}:{address.port}",
        "Accept-Encoding: identity",
        *(f"{each}: {value}" for each, value in attempt.headers.items()),
    ]
    body = attempt.body or b""
    if attempt.method != "GET" or body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


async def read_answer(source: Source) -> Tuple[HttpAnswer, bool]:
    """The final answer to a request, and whether the connection can be used again after it.

    Raises an EOFError if the connection ends before, and an HTTPException for an answer that cannot be one to the request.
    """
    head = await _read_final_head(source)
    encoding = head.headers.get("transfer-encoding", "").lower()
    length = _length_of(head)
    may_keep = head.version == "1.1" and "close" not in head.headers.get("connection", "").lower()
    if head.status in (204, 304):
        body = b""
    elif encoding != "":
        if encoding != "chunked":
            raise http.client.HTTPException("the answer has an encoding that was not asked for")
        body = await _read_chunks(source)
        # Two parties can disagree on where an answer with both headers ends.
        may_keep = may_keep and length is None
    elif length is not None:
        body = await source.exactly(_bounded(length))
    else:
        body, may_keep = await _read_to_end(source), False
    return HttpAnswer(head.status, head.headers, body), may_keep


async def _read_final_head(source: Source) -> _Head:
    size = 0
    for _ in range(_MAX_INTERIM_ANSWERS + 1):
        head = await _read_head(source)
        if head.status == 101:
            raise http.client.HTTPException("the answer changes the protocol, which was not asked for")
        if head.status >= 200:
            return head
        size += head.size
        if size > _MAX_HEAD_BYTES:
            break
    raise http.client.HTTPException("too many interim answers (1xx) came before the answer")


async def _read_head(source: Source) -> _Head:
    first = await source.line()
    match = re.fullmatch(r"HTTP/(1\.[01]) ([1-9][0-9]{2})(?: .*)?", first.decode("latin-1").rstrip("\r\n"))
    if match is None:
        raise http.client.BadStatusLine("the answer is not HTTP")
    lines: List[bytes] = []
    size = len(first)
    while not lines or lines[-1].rstrip(b"\r\n") != b"":
        lines.append(await source.line())
        size += len(lines[-1])
        if size > _MAX_HEAD_BYTES:
            raise http.client.HTTPException(f"the answer's headers are longer than {_MAX_HEAD_BYTES} bytes")
    return _Head(match[1], int(match[2]), _headers_in(lines[:-1]), size)


def _headers_in(lines: List[bytes]) -> Dict[str, str]:
    """Headers by their names in lower case. Raises an HTTPException for a line that is none: where the answer ends can be after it.

    Python's own reader takes such a line, and all that follow, for a part of the body.
    """
    headers: Dict[str, str] = {}
    last = ""
    for line in lines:
        text = line.decode("latin-1").rstrip("\r\n")
        match = re.fullmatch(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+:|[ \t])(.*)", text, re.DOTALL)
        if match is None or (match[1] in " \t" and last == ""):
            raise http.client.HTTPException("the answer has a line among its headers that is none")
        # Such characters in a value count as blanks.
        value = re.sub(r"[\0\r]", " ", match[2]).strip(" \t")
        if match[1] in " \t":
            headers[last] = f"{headers[last]} {value}".strip()
            continue
        last = match[1][:-1].lower()
        headers[last] = f"{headers[last]}, {value}" if last in headers else value
    return headers


def _length_of(head: _Head) -> Optional[int]:
    if "content-length" not in head.headers:
        return None
    first, *others = {each.strip() for each in head.headers["content-length"].split(",")}
    if others or not re.fullmatch(r"[0-9]{1,12}", first):
        raise http.client.HTTPException("the answer has no good length")
    return int(first)


async def _read_chunks(source: Source) -> bytes:
    chunks: List[bytes] = []
    size = 0
    while True:
        line = (await source.line()).split(b";")[0].strip()
        if not re.fullmatch(rb"[0-9A-Fa-f]{1,8}", line):
            raise http.client.HTTPException("the answer has a chunk without a size")
        length = int(line, 16)
        size = _bounded(size + length)
        if length == 0:
            break
        chunks.append(await source.exactly(length))
        if (await source.line()).strip() != b"":
            raise http.client.HTTPException("the answer has a chunk that is longer than its size")
    # Trailers end with an empty line.
    for _ in range(_MAX_TRAILERS):
        if (await source.line()).strip() == b"":
            return b"".join(chunks)
    raise http.client.HTTPException("the answer has too many trailers")


async def _read_to_end(source: Source) -> bytes:
    chunks: List[bytes] = []
    size = 0
    while True:
        chunk = await source.some()
        if not chunk:
            return b"".join(chunks)
        chunks.append(chunk)
        size = _bounded(size + len(chunk))


def _bounded(size: int) -> int:
    if size > MAX_ANSWER_BYTES:
        raise http.client.HTTPException(f"the answer is longer than {MAX_ANSWER_BYTES} bytes")
    return size
