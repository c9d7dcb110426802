"""One connection of the client that blocks."""

from __future__ import annotations

import errno
import http.client
import os
import socket
import ssl
import time
from typing import Any, Optional, Tuple

from .answers import HttpAnswer
from .settings import Address
from .waits import READ, WRITE, Limits, resolve
from .wire import MAX_LINE_BYTES, read_answer, run_now

_CHUNK_BYTES = 64 * 1024
# An address that does not answer leaves time for the next one. In this time a lost packet is sent again twice.
MAX_SECONDS_FOR_ADDRESS = 5.0
_UNDER_WAY = {errno.EINPROGRESS, errno.EWOULDBLOCK, errno.EALREADY, errno.EINTR, 10035}
_BROKEN = (BrokenPipeError, ConnectionError, ssl.SSLEOFError, ssl.SSLZeroReturnError)


def share_of(seconds: float, addresses: int) -> float:
    """How long the next of so many addresses may take."""
    return seconds if addresses == 1 else min(seconds / addresses, MAX_SECONDS_FOR_ADDRESS)


class Connection:
    """A connection. It sends and receives at the same time: a gateway that refuses a request by its headers answers before it has
    read the body, and may not read the rest."""

    is_kept = False

    def __init__(self, address: Address, context: Optional[ssl.SSLContext]) -> None:
        self._address = address
        self._context = context
        self._sock: Optional[socket.socket] = None
        self._limits = Limits(0.0)
        self._received = bytearray()
        self._unsent = memoryview(b"")
        self._has_ended = False
        self._is_broken = False

    def exchange(self, request: bytes, limits: Limits) -> Tuple[HttpAnswer, bool]:
        """Sends a request, and reads its answer. Tells too whether the connection can be used again.

        Raises OSError, EOFError or HTTPException if no whole answer comes, and what `limits.left` raises.
        """
        self._limits = limits
        if self._sock is None:
            self._connect()
        self._unsent = memoryview(request)
        answer, may_keep = run_now(read_answer(self))
        return answer, may_keep and not (self._unsent or self._is_broken or self._received or self._has_ended)

    def is_clean(self) -> bool:
        """Whether nothing came since the last answer, not even the end: only then can it be used again."""
        return not (self._receive() or self._received or self._has_ended)

    def close(self) -> None:
        if self._sock is not None:
            self._sock.close()

    def detach(self) -> None:
        """Cuts this process off from a connection that its parent uses. The parent notices nothing."""
        sock = self._sock
        if sock is None or sock.fileno() < 0:
            return
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, sock.fileno())
        os.close(nothing)

    # A `Source`, whose methods block.

    async def line(self) -> bytes:
        searched = 0
        while True:
            at = self._received.find(b"\n", searched)
            size = at + 1 if at >= 0 else len(self._received)
            if size > MAX_LINE_BYTES:
                raise http.client.HTTPException(f"the answer has a line longer than {MAX_LINE_BYTES} bytes")
            if at >= 0:
                return self._take(size)
            searched = size
            self._need_more()

    async def exactly(self, size: int) -> bytes:
        while len(self._received) < size:
            self._need_more()
        return self._take(size)

    async def some(self) -> bytes:
        if not self._received:
            self._fill()
        return self._take(len(self._received))

    def _take(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _need_more(self) -> None:
        if not self._fill():
            raise EOFError("the connection ended before a whole answer had come")

    def _fill(self) -> bool:
        """Waits for more bytes, and sends meanwhile what is to be sent. False at the end."""
        sock = self._open_socket()
        while not self._has_ended:
            self._limits.left()
            wants = self._send()
            if wants == 0:
                # Before the next part is sent, an answer may have come.
                wants = WRITE if self._unsent else 0
            missing = self._receive_or_want()
            if missing == 0:
                return not self._has_ended
            self._limits.wait(sock, wants | missing)
        return False

    def _send(self) -> int:
        """Sends a part. What it waits for, or 0."""
        if not self._unsent:
            return 0
        try:
            sent = self._open_socket().send(self._unsent[:_CHUNK_BYTES])
        except ssl.SSLWantReadError:
            return READ
        except (BlockingIOError, InterruptedError, ssl.SSLWantWriteError):
            return WRITE
        except _BROKEN:
            # Its answer may have come before.
            self._unsent = memoryview(b"")
            self._is_broken = True
            return 0
        self._unsent = self._unsent[sent:]
        return 0

    def _receive_or_want(self) -> int:
        """Receives bytes, or the end. What it waits for, or 0."""
        try:
            chunk = self._open_socket().recv(_CHUNK_BYTES)
        except ssl.SSLWantWriteError:
            return WRITE
        except (BlockingIOError, InterruptedError, ssl.SSLWantReadError):
            return READ
        except _BROKEN:
            chunk = b""
        self._received += chunk
        self._has_ended = chunk == b""
        return 0

    def _receive(self) -> bool:
        """Whether bytes or the end had come."""
        try:
            return self._receive_or_want() == 0
        except OSError:
            self._has_ended = True
            return True

    def _open_socket(self) -> socket.socket:
        if self._sock is None:
            raise OSError("the connection is not open")
        return self._sock

    def _connect(self) -> None:
        host, port, _, is_tls, _ = self._address
        sock = self._dial(host, port if port is not None else 443 if is_tls else 80)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._context is not None:
                sock = self._with_tls(self._context, sock, host)
        except BaseException:
            sock.close()
            raise
        self._sock = sock

    def _with_tls(self, context: ssl.SSLContext, plain: socket.socket, host: str) -> socket.socket:
        sock = context.wrap_socket(plain, server_hostname=host, do_handshake_on_connect=False)
        # It has taken the descriptor over.
        try:
            while True:
                try:
                    sock.do_handshake()
                    return sock
                except ssl.SSLWantReadError:
                    self._limits.wait(sock, READ)
                except ssl.SSLWantWriteError:
                    self._limits.wait(sock, WRITE)
        except BaseException:
            sock.close()
            raise

    def _dial(self, host: str, port: int) -> socket.socket:
        """Tries each address of the host in turn. They share the time that there is."""
        failure: OSError = OSError("the host has no address")
        addresses = resolve(host, port, self._limits)
        for number, (family, kind, protocol, _name, where) in enumerate(addresses):
            share = share_of(self._limits.left(), len(addresses) - number)
            sock: Optional[socket.socket] = None
            try:
                sock = socket.socket(family, kind, protocol)
                self._reach(sock, where, self._limits.until(time.monotonic() + share))
                return sock
            except BaseException as error:
                if sock is not None:
                    sock.close()
                if not isinstance(error, OSError):
                    raise
                failure = error
        raise failure

    def _reach(self, sock: socket.socket, where: Any, limits: Limits) -> None:
        sock.setblocking(False)
        code = sock.connect_ex(where)
        if code in _UNDER_WAY:
            limits.wait(sock, WRITE)
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code != 0:
            raise OSError(code, os.strerror(code))
