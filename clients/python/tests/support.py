"""A gateway that answers with what it is given, for tests that need no real one."""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import json
import re
import socket
import sys
import threading
import unittest
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Dict, List, Optional, Tuple

import marina

Answer = Optional[Tuple[int, Dict[str, str], bytes]]


class Gateway:
    """A server that answers with what it is given, and remembers what it was asked."""

    def __init__(self) -> None:
        self.answers: List[Answer] = []
        self.requests: List[Tuple[str, str, Dict[str, str], bytes]] = []
        # Makes the answer of a path where `answers` has none.
        self.answer_to: Callable[[str], Answer] = lambda path: (500, {}, path.encode("ascii"))
        gateway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                gateway.requests.append((self.command, self.path, headers, body))
                answer = gateway.answers.pop(0) if gateway.answers else gateway.answer_to(self.path)
                if answer is None:
                    self.close_connection = True
                    return
                status, more, text = answer
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(text)))
                try:
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    # The client did not wait for it.
                    self.close_connection = True

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, format: str, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                # A client may go away at any time. Other errors are mistakes of a test.
                if not isinstance(sys.exc_info()[1], OSError):
                    super().handle_error(request, client_address)

        self.server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


def refusal(status: int, code: str, kind: str = "api_error", **headers: str) -> Tuple[int, Dict[str, str], bytes]:
    error = {"type": kind, "code": code, "message": "A sentence.", "doc_url": "https://marina.example"}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return status, names, json.dumps({"error": error}).encode("utf-8")


class WithGateway(unittest.TestCase):
    def setUp(self) -> None:
        self.gateway = Gateway()
        self.marina = marina.Marina(self.gateway.url, "marina_test_key")

    def tearDown(self) -> None:
        self.marina.close()
        self.gateway.server.shutdown()
        self.gateway.server.server_close()

    def place(self, **more: Any) -> Any:
        return self.marina.create_order(
            account="LAG1", symbol="ZENITHBANK", side="buy", quantity=100, type="market", **more
        )


class Scripted:
    """A server whose bytes a test writes itself. `script` gets the connection, the number of the request and its head."""

    def __init__(self, script: Callable[[socket.socket, int, str], None], reads_bodies: bool = True) -> None:
        self.heads: List[str] = []
        self._script = script
        self._reads_bodies = reads_bodies
        self._ended = False
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        return self._server.getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        self._ended = True
        self._server.close()

    def _serve(self) -> None:
        while not self._ended:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as received:
            try:
                while True:
                    head = b""
                    while not head.endswith(b"\r\n\r\n"):
                        line = received.readline()
                        if not line:
                            return
                        head += line
                    text = head.decode("latin-1")
                    length = re.search(r"(?i)^content-length: (\d+)", text, re.M)
                    if length is not None and self._reads_bodies:
                        received.read(int(length[1]))
                    self.heads.append(text)
                    self._script(connection, len(self.heads), text)
            except (OSError, ValueError):
                # The client, or the script, has closed the connection.
                return


def answer_bytes(status: int, body: Any, *headers: str) -> bytes:
    text = json.dumps(body).encode("utf-8")
    lines = [f"HTTP/1.1 {status} X", *headers, f"Content-Length: {len(text)}", "", ""]
    return "\r\n".join(lines).encode("latin-1") + text


def both(test: Callable[[Any, Any], None]) -> Callable[[Any], None]:
    """Runs a test with each of the two clients."""

    @functools.wraps(test)
    def run(case: Any) -> None:
        for make in (Blocking, Asynchronous):
            with case.subTest(make.__name__), make() as clients:
                test(case, clients)

    return run


class Blocking:
    """The client that blocks, behind the same interface as the one for asyncio."""

    def __enter__(self) -> "Blocking":
        self._made: List[marina.Marina] = []
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._made:
            client.close()

    def make(self, url: str, **options: Any) -> Any:
        self._made.append(marina.Marina(url, "marina_test_key", **options))
        return self._made[-1]

    def call(self, client: Any, method: str, **values: Any) -> Any:
        return getattr(client, method)(**values)

    def call_together(self, client: Any, count: int, method: str) -> None:
        with concurrent.futures.ThreadPoolExecutor(count) as threads:
            for made in [threads.submit(getattr(client, method)) for _ in range(count)]:
                made.result(30)


class Asynchronous:
    """The client for asyncio. All its calls are made in one event loop."""

    def __enter__(self) -> "Asynchronous":
        self._loop = asyncio.new_event_loop()
        self._made: List[marina.AsyncMarina] = []
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._made:
            self._loop.run_until_complete(client.close())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def make(self, url: str, **options: Any) -> Any:
        self._made.append(marina.AsyncMarina(url, "marina_test_key", **options))
        return self._made[-1]

    def call(self, client: Any, method: str, **values: Any) -> Any:
        return self._loop.run_until_complete(getattr(client, method)(**values))

    def call_together(self, client: Any, count: int, method: str) -> None:
        async def calls() -> None:
            await asyncio.gather(*(getattr(client, method)() for _ in range(count)))

        self._loop.run_until_complete(calls())


ORDER: Dict[str, Any] = {"account": "LAG1", "symbol": "ZENITHBANK", "side": "buy", "quantity": 100, "type": "market"}
