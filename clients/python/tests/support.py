"""A gateway that answers with what it is given, for tests that need no real one."""

from __future__ import annotations

import json
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

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
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
