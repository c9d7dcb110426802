"""What both clients make of the bytes of a connection: an answer is always the one to its own request."""

from __future__ import annotations

import fcntl
import socket
import ssl
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest
from pathlib import Path
from typing import Any, Callable, List, Tuple
from unittest import mock

import marina

from .support import ORDER, Scripted, answer_bytes, both

Script = Callable[[socket.socket, int, str], None]


def account_of(head: str) -> str:
    """`/v1/accounts/A/balance` is A's."""
    return head.split(" ")[1].split("/")[3]


class WithScripts(unittest.TestCase):
    def scripted(self, script: Script, **options: Any) -> Scripted:
        server = Scripted(script, **options)
        self.addCleanup(server.close)
        return server


class Headers(WithScripts):
    @both
    def test_a_line_among_the_headers_that_is_none_is_told_at_once(self, clients: Any) -> None:
        for line in (
            b"Bad Header",
            b"Bad Header: x",
            b"Server : x",
            b": x",
            b"H\xe9ader: x",
            b"\x00: x",
            b"From me to you",
            b"HTTP/1.1 200 OK",
        ):
            for lines in ((line, b"Content-Length: 2"), (b"A: b", line, b"Content-Length: 2"), (b"Content-Length: 2", line)):

                def odd(connection: socket.socket, _number: int, _head: str, lines: Any = lines) -> None:
                    connection.sendall(b"\r\n".join((b"HTTP/1.1 201 Created", *lines, b"", b"{}")))

                server = self.scripted(odd)
                began = time.monotonic()
                with self.assertRaises(marina.NoAnswerError, msg=lines) as caught:
                    clients.call(clients.make(server.url, max_attempts=1, deadline=20), "create_order", **ORDER)
                self.assertLess(time.monotonic() - began, 10)
                self.assertNotIsInstance(caught.exception, marina.CallTimeoutError)
                self.assertTrue(caught.exception.is_outcome_unknown and caught.exception.idempotency_key)

    @both
    def test_a_line_before_the_first_header_that_continues_nothing_is_told_at_once(self, clients: Any) -> None:
        def odd(connection: socket.socket, _number: int, _head: str) -> None:
            connection.sendall(b"HTTP/1.1 201 Created\r\n folded\r\nContent-Length: 2\r\n\r\n{}")

        with self.assertRaises(marina.NoAnswerError) as caught:
            clients.call(clients.make(self.scripted(odd).url, max_attempts=1, deadline=20), "create_order", **ORDER)
        self.assertNotIsInstance(caught.exception, marina.CallTimeoutError)

    @both
    def test_values_of_every_form_are_read(self, clients: Any) -> None:
        for lines in (
            b"Content-Length: 2",
            b"content-length:2\r\nX: \xff\xfe=?utf-8?b?////?=\x00\x01",
            b"X:\r\nX: a\r\n b\r\nCONTENT-LENGTH:\r\n\t2 ",
            b"Content-Length: 2\r\nContent-Length: 2\r\nX: a:b",
            b"Transfer-Encoding:\r\n chunked",
        ):
            body = b"2\r\n{}\r\n0\r\n\r\n" if b"chunked" in lines else b"{}"

            def odd(connection: socket.socket, _number: int, _head: str, lines: bytes = lines, body: bytes = body) -> None:
                connection.sendall(b"HTTP/1.1 200 OK\r\n" + lines + b"\r\n\r\n" + body)

            client = clients.make(self.scripted(odd).url, max_attempts=1, deadline=20)
            self.assertEqual(clients.call(client, "get_wallet"), {}, lines)


class InterimAnswers(WithScripts):
    @both
    def test_interim_answers_of_any_kind_and_number_are_skipped(self, clients: Any) -> None:
        def early(connection: socket.socket, _number: int, head: str) -> None:
            for status in (100, 102, 103, 103, 199, *[103] * 40):
                connection.sendall(f"HTTP/1.1 {status} Early\r\nLink: </x>; rel=preload\r\n\r\n".encode("ascii"))
            connection.sendall(answer_bytes(200, {"account": account_of(head)}))

        server = self.scripted(early)
        client = clients.make(server.url)
        for account in "ABCD":
            self.assertEqual(clients.call(client, "get_balance", account=account), {"account": account})
        self.assertEqual(len(server.heads), 4)

    @both
    def test_an_order_behind_a_proxy_that_sends_103_is_placed_once(self, clients: Any) -> None:
        def early(connection: socket.socket, _number: int, _head: str) -> None:
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            connection.sendall(answer_bytes(201, {"id": "ord_1"}))

        server = self.scripted(early)
        self.assertEqual(clients.call(clients.make(server.url), "create_order", **ORDER)["id"], "ord_1")
        self.assertEqual(len(server.heads), 1)

    @both
    def test_interim_answers_without_end_are_no_answer(self, clients: Any) -> None:
        for interim in (b"HTTP/1.1 103 X\r\n\r\n", b"HTTP/1.1 103 X\r\nx: " + b"y" * 60_000 + b"\r\n\r\n"):

            def endless(connection: socket.socket, _number: int, _head: str, interim: bytes = interim) -> None:
                while True:
                    connection.sendall(interim)

            server = self.scripted(endless)
            with self.assertRaises(marina.NoAnswerError) as caught:
                clients.call(clients.make(server.url, max_attempts=1), "create_order", **ORDER)
            self.assertNotIsInstance(caught.exception, marina.CallTimeoutError)
            self.assertTrue(caught.exception.is_outcome_unknown)

    @both
    def test_what_is_no_answer_leaves_the_outcome_unknown_and_closes_the_connection(self, clients: Any) -> None:
        for wrong in (
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
            b"HTTP/1.1 000 Nothing\r\n\r\n",
            b"\x00\x01\x02\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}}\r\n0\r\n\r\n",
        ):

            def once(connection: socket.socket, number: int, head: str, wrong: bytes = wrong) -> None:
                connection.sendall(wrong if number == 1 else answer_bytes(200, {"account": account_of(head)}))

            server = self.scripted(once)
            client = clients.make(server.url, max_attempts=1)
            with self.subTest(wrong[:20]):
                with self.assertRaises(marina.NoAnswerError) as caught:
                    clients.call(client, "create_order", **ORDER)
                self.assertTrue(caught.exception.is_outcome_unknown)
                self.assertEqual(clients.call(client, "get_balance", account="B"), {"account": "B"})


def wait_until_received(connection: socket.socket) -> None:
    """Waits until the other end's system has everything that was sent, at most 10 seconds."""
    end = time.monotonic() + 10
    while struct.unpack("i", fcntl.ioctl(connection, termios.TIOCOUTQ, b"\0" * 4))[0] > 0 and time.monotonic() < end:
        time.sleep(0.001)


class UnreadBytes(WithScripts):
    @both
    def test_bytes_in_the_same_segment_after_an_answer_are_nobodys_answer(self, clients: Any) -> None:
        def extra(connection: socket.socket, _number: int, head: str) -> None:
            connection.sendall(answer_bytes(200, {"account": account_of(head)}) + answer_bytes(200, {"account": "OTHER"}))

        client = clients.make(self.scripted(extra).url)
        for account in "ABC":
            self.assertEqual(clients.call(client, "get_balance", account=account), {"account": account})

    @both
    def test_bytes_that_come_while_a_connection_is_idle_are_nobodys_answer(self, clients: Any) -> None:
        # What proxies send before they close an idle connection, what belongs to nobody, and the end.
        for late in (answer_bytes(408, {}, "Connection: close"), answer_bytes(200, {"account": "OTHER"}), b"\r\n", b""):
            came, go_on = threading.Event(), threading.Event()

            # Bound here: a connection of the round before may still be served in the next one.
            def idle(
                connection: socket.socket,
                _number: int,
                head: str,
                late: bytes = late,
                came: threading.Event = came,
                go_on: threading.Event = go_on,
            ) -> None:
                connection.sendall(answer_bytes(200, {"account": account_of(head)}))
                go_on.wait(30)
                connection.sendall(late)
                if late == b"":
                    connection.shutdown(socket.SHUT_WR)
                wait_until_received(connection)
                came.set()

            server = self.scripted(idle)
            client = clients.make(server.url, max_attempts=1)
            with self.subTest(late[:20]):
                self.assertEqual(clients.call(client, "get_balance", account="A"), {"account": "A"})
                go_on.set()
                self.assertTrue(came.wait(30))
                self.assertEqual(clients.call(client, "get_balance", account="B"), {"account": "B"})
                self.assertEqual(len(server.heads), 2)

    @both
    def test_a_clean_connection_is_used_again(self, clients: Any) -> None:
        peers: List[Tuple[str, int]] = []

        def plain(connection: socket.socket, _number: int, _head: str) -> None:
            peers.append(connection.getpeername())
            connection.sendall(answer_bytes(200, {}))

        client = clients.make(self.scripted(plain).url)
        for _ in range(3):
            clients.call(client, "get_wallet")
        self.assertEqual((len(peers), len(set(peers))), (3, 1))


    @both
    def test_only_the_first_attempt_of_a_call_meets_a_kept_connection_that_was_closed_just_now(self, clients: Any) -> None:
        kept: List[Tuple[str, int]] = []
        together = threading.Barrier(3)

        def answer_once(connection: socket.socket, number: int, _head: str) -> None:
            peer = connection.getpeername()
            if peer in kept:
                raise OSError("it is closed as the next request comes")
            kept.append(peer)
            if number <= 3:
                together.wait(30)
            connection.sendall(answer_bytes(200, {}))

        client = clients.make(self.scripted(answer_once).url, max_attempts=2)
        clients.call_together(client, 3, "get_wallet")
        self.assertEqual(len(kept), 3)
        for number in (4, 5, 6):
            clients.call(client, "get_wallet")
            self.assertEqual(len(kept), number, "the second attempt was over a new connection")


class EarlyAnswers(WithScripts):
    @both
    def test_an_answer_of_a_peer_that_reads_no_more_and_stays_open_is_raised(self, clients: Any) -> None:
        ended = threading.Event()
        self.addCleanup(ended.set)

        def refuse(connection: socket.socket, _number: int, _head: str) -> None:
            connection.sendall(answer_bytes(413, {"error": {"type": "invalid_request_error", "code": "document_too_large"}}))
            ended.wait(60)

        server = self.scripted(refuse, reads_bodies=False)
        with self.assertRaises(marina.InvalidRequestError) as caught:
            clients.call(
                clients.make(server.url, attempt_seconds=20, max_attempts=1),
                "send_document",
                id="app_1",
                type="photo",
                file=b"x" * 20_000_000,
                media_type="image/png",
            )
        self.assertEqual(caught.exception.code, "document_too_large")

    @both
    def test_a_connection_is_not_used_again_if_the_answer_came_before_the_request_was_sent_to_its_end(self, clients: Any) -> None:
        peers: List[Tuple[str, int]] = []

        def early(connection: socket.socket, _number: int, head: str) -> None:
            peers.append(connection.getpeername())
            is_document = "/documents/" in head.split(" ")[1]
            error = {"error": {"type": "invalid_request_error", "code": "document_too_large"}}
            connection.sendall(answer_bytes(413, error) if is_document else answer_bytes(200, {"ok": True}))

        server = self.scripted(early, reads_bodies=False)
        client = clients.make(server.url, attempt_seconds=20, max_attempts=1)
        document = {"id": "app_1", "type": "photo", "file": b"x" * 20_000_000, "media_type": "image/png"}
        for _ in range(2):
            with self.assertRaises(marina.InvalidRequestError):
                clients.call(client, "send_document", **document)
            self.assertEqual(clients.call(client, "get_wallet"), {"ok": True})
        # Each document has a connection of its own. A wallet's is clean, so the next document goes over it.
        self.assertEqual([peers[0] == peers[1], peers[1] == peers[2], peers[2] == peers[3]], [False, True, False])

    @both
    def test_an_interim_answer_does_not_end_the_sending(self, clients: Any) -> None:
        received: List[int] = []

        def slow(connection: socket.socket, _number: int, head: str) -> None:
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\n\r\n")
            length, size = int(head.split("Content-Length: ")[1].split("\r\n")[0]), 0
            # Some of the body is in the buffer of the server that read the head.
            while size < length - 100_000:
                size += len(connection.recv(65_536))
            received.append(size)
            connection.sendall(answer_bytes(200, {"ok": True}, "Connection: close"))

        document = {"id": "a", "type": "photo", "file": b"x" * 5_000_000, "media_type": "image/png"}
        client = clients.make(self.scripted(slow, reads_bodies=False).url, max_attempts=1)
        self.assertEqual(clients.call(client, "send_document", **document), {"ok": True})
        self.assertEqual(len(received), 1)


class Tls(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        key, certificate = Path(folder.name, "key.pem"), Path(folder.name, "certificate.pem")
        # Not every machine has the program.
        try:
            subprocess.run(
                ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
                + ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)],
                check=True,
                capture_output=True,
            )
        except FileNotFoundError:
            self.skipTest("there is no openssl here")
        self.served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.served.load_cert_chain(str(certificate), str(key))
        self.trusted = ssl.create_default_context(cafile=str(certificate))

    def serve(self, work: Callable[[ssl.SSLSocket], None]) -> str:
        """Serves each connection with `work`. Returns the URL."""
        server = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(server.close)

        def accept() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                threading.Thread(target=each, args=(connection,), daemon=True).start()

        def each(connection: socket.socket) -> None:
            try:
                with self.served.wrap_socket(connection, server_side=True) as sock:
                    work(sock)
            except OSError:
                # The client went away.
                return

        threading.Thread(target=accept, daemon=True).start()
        return f"https://localhost:{server.getsockname()[1]}"

    @both
    def test_connections_are_used_again_and_unread_bytes_are_nobodys_answer(self, clients: Any) -> None:
        used: List[int] = []

        def answer(sock: ssl.SSLSocket) -> None:
            used.append(0)
            while sock.recv(65_536):
                used[-1] += 1
                extra = answer_bytes(200, {"number": "other"}) if used[-1] == 3 else b""
                sock.sendall(answer_bytes(200, {"number": used[-1]}) + extra)

        client = clients.make(self.serve(answer), ssl_context=self.trusted)
        found = [clients.call(client, "get_wallet")["number"] for _ in range(4)]
        self.assertEqual((found, used), ([1, 2, 3, 1], [3, 1]))

    @both
    def test_an_answer_of_a_peer_that_reads_no_more_is_raised(self, clients: Any) -> None:
        ended = threading.Event()
        self.addCleanup(ended.set)

        def refuse(sock: ssl.SSLSocket) -> None:
            sock.recv(2_000)
            sock.sendall(answer_bytes(401, {"error": {"type": "authentication_error", "code": "unauthorized"}}))
            ended.wait(60)

        url = self.serve(refuse)
        document = {"id": "a", "type": "photo", "file": b"x" * 20_000_000, "media_type": "image/png"}
        client = clients.make(url, ssl_context=self.trusted, attempt_seconds=20, max_attempts=1)
        with self.assertRaises(marina.AuthenticationError):
            clients.call(client, "send_document", **document)

    @both
    def test_a_certificate_that_is_not_trusted_is_refused(self, clients: Any) -> None:
        url = self.serve(lambda sock: None)
        with self.assertRaises(marina.NoAnswerError) as caught:
            clients.call(clients.make(url, max_attempts=1), "get_wallet")
        self.assertIsInstance(caught.exception.__cause__, ssl.SSLError)


class Addresses(WithScripts):
    def setUp(self) -> None:
        # Its queue is full, so it never completes a connection.
        self.silent = socket.create_server(("127.0.0.1", 0), backlog=0)
        self.addCleanup(self.silent.close)
        for _ in range(4):
            filler = socket.socket()
            self.addCleanup(filler.close)
            filler.setblocking(False)
            filler.connect_ex(self.silent.getsockname())

    @both
    def test_an_address_that_does_not_answer_leaves_time_for_the_next_one(self, clients: Any) -> None:
        server = self.scripted(lambda connection, *_: connection.sendall(answer_bytes(200, {"ok": True})))
        both_addresses = [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))
            for port in (self.silent.getsockname()[1], server.port)
        ]
        client = clients.make(server.url, attempt_seconds=4, max_attempts=1)
        with mock.patch("socket.getaddrinfo", lambda *_, **__: both_addresses):
            self.assertEqual(clients.call(client, "get_wallet"), {"ok": True})

    def test_a_name_that_is_not_found_in_time_ends_the_attempt(self) -> None:
        found, real = threading.Event(), socket.getaddrinfo
        self.addCleanup(found.set)

        def slow(host: Any, port: Any, family: int = 0, kind: int = 0, protocol: int = 0, flags: int = 0) -> Any:
            if flags == 0:
                found.wait(30)
            return real(host, port, family, kind, protocol, flags)

        began = time.monotonic()
        with mock.patch("socket.getaddrinfo", slow), self.assertRaises(marina.CallTimeoutError):
            marina.Marina("http://localhost:1", "marina_test_key", attempt_seconds=0.3, max_attempts=1).get_wallet()
        self.assertLess(time.monotonic() - began, 10)


if __name__ == "__main__":
    unittest.main()
