"""What the client does in programs of several processes, threads and kinds of generated code."""

from __future__ import annotations

import copy
import json
import multiprocessing
import os
import pickle
import ssl
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
from pathlib import Path
from typing import Dict, Tuple

import marina

from .support import Gateway, WithGateway

# It forks with one connection kept and one in use. Each process then reads many balances, all at the same time.
PROGRAM = """
import ctypes, os, sys, threading, time
from marina import Marina

url, how = sys.argv[1:]
marina = Marina(url, "marina_test_key")
# Here another thread waits for an answer while the process is forked.
waiting = threading.Thread(target=lambda: marina.get_balance(account="SLOW"))
if how == "thread":
    waiting.start()
    time.sleep(0.1)
marina.get_balance(account="PARENT")

def read(name):
    for number in range(20):
        account = f"{name}-{number}"
        found = marina.get_balance(account=account)["account"]
        if found != account:
            print(account, "got", found, flush=True)
            os._exit(1)

def fork():
    # The second way is that of a program in C: Python's hooks do not run.
    return os.fork() if how != "libc" else ctypes.CDLL(None).fork()

children = []
for number in range(10):
    child = fork()
    if child == 0:
        read(f"CHILD{number}")
        os._exit(0)
    children.append(child)
read("PARENT")
states = [os.waitpid(child, 0)[1] for child in children]
if how == "thread":
    waiting.join()
print("done", sum(1 for state in states if state != 0))
"""


def run(program: str, *args: str, path: str = "", cwd: str = ".") -> "subprocess.CompletedProcess[str]":
    source = str(Path(marina.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [source, path]))}
    command = [sys.executable, "-c", textwrap.dedent(program), *args]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


class WithBalances(unittest.TestCase):
    def setUp(self) -> None:
        self.gateway = Gateway()

        def balance(path: str) -> Tuple[int, Dict[str, str], bytes]:
            account = path.split("/")[3]
            if account == "SLOW":
                time.sleep(0.5)
            return 200, {}, json.dumps({"account": account}).encode("ascii")

        self.gateway.answer_to = balance

    def tearDown(self) -> None:
        self.gateway.server.shutdown()
        self.gateway.server.server_close()


class Processes(WithBalances):
    @unittest.skipUnless(hasattr(os, "fork"), "this system has no fork")
    def test_forked_processes_get_answers_to_their_own_requests_only(self) -> None:
        for how in ("os", "libc", "thread"):
            with self.subTest(how):
                ran = run(PROGRAM, self.gateway.url, how)
                self.assertEqual((ran.stdout, ran.returncode), ("done 0\n", 0), ran.stderr)

    def test_threads_get_answers_to_their_own_requests_only(self) -> None:
        program = """
            import sys, threading
            from marina import Marina
            marina = Marina(sys.argv[1], "marina_test_key")
            wrong = []
            def read(name):
                for number in range(25):
                    account = f"{name}-{number}"
                    if marina.get_balance(account=account)["account"] != account:
                        wrong.append(account)
            threads = [threading.Thread(target=read, args=(f"T{number}",)) for number in range(12)]
            for thread in threads: thread.start()
            for thread in threads: thread.join()
            print(wrong)
        """
        ran = run(program, self.gateway.url)
        self.assertEqual((ran.stdout, ran.returncode), ("[]\n", 0), ran.stderr)


# A module that a spawned process imports: each worker gets the client as an argument.
WORKERS = """
import asyncio, gc, multiprocessing, sys, warnings
from marina import AsyncMarina, Marina

def read(client, name):
    if isinstance(client, AsyncMarina):
        async def go():
            async with client:
                return (await client.get_balance(account=name))["account"]
        return asyncio.run(go()) == name
    found = client.get_balance(account=name)["account"]
    client.close()
    return found == name

def main():
    clients = [Marina(sys.argv[1], "marina_test_key"), AsyncMarina(sys.argv[1], "marina_test_key")]
    clients[0].get_balance(account="PARENT")
    for how in sys.argv[2:]:
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(how, pool.starmap(read, [(client, name) for client in clients for name in "ABC"]))
    print(read(clients[0], "PARENT"))

if __name__ == "__main__":
    main()
"""


class Workers(WithBalances):
    def test_a_client_may_be_given_to_a_process_that_is_spawned(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        module = Path(folder.name, "workers.py")
        module.write_text(WORKERS)
        ways = [how for how in ("spawn", "forkserver") if how in multiprocessing.get_all_start_methods()]
        env = {**os.environ, "PYTHONPATH": str(Path(marina.__file__).parents[1])}
        ran = subprocess.run(
            [sys.executable, str(module), self.gateway.url, *ways], env=env, capture_output=True, text=True, timeout=120
        )
        expected = "".join(f"{how} {[True] * 6}\n" for how in ways) + "True\n"
        self.assertEqual((ran.stdout, ran.stderr), (expected, ""))

    def test_a_copy_has_the_options_and_the_key_and_no_connection(self) -> None:
        client = marina.Marina(self.gateway.url, "marina_test_key", max_attempts=3, deadline=7)
        client.get_balance(account="A")
        copied = pickle.loads(pickle.dumps(client))
        self.assertEqual(copied._settings, client._settings)
        self.assertEqual(copied._transport._idle, [])
        self.assertEqual(copied.get_balance(account="B")["account"], "B")
        self.assertEqual(copy.deepcopy(client).get_balance(account="C")["account"], "C")
        for each in (client, copied):
            each.close()

    def test_a_client_with_certificates_of_its_own_says_why_it_cannot_be_given_away(self) -> None:
        context = ssl.create_default_context()
        for make in (marina.Marina, marina.AsyncMarina):
            with self.assertRaisesRegex(TypeError, "ssl_context"):
                pickle.dumps(make("https://marina.example", "marina_test_key", ssl_context=context))
            pickle.loads(pickle.dumps(make("https://marina.example", "marina_test_key")))


class Errors(WithGateway):
    def test_an_error_that_travels_to_another_process_keeps_its_key(self) -> None:
        self.gateway.answers = [None, (422, {}, b'{"error":{"type":"order_error","code":"order_rejected"}}')]
        once = marina.Marina(self.gateway.url, "marina_test_key", max_attempts=1)
        order = {"account": "LAG1", "symbol": "MTNN", "side": "buy", "quantity": 1, "type": "market"}
        for kind in (marina.NoAnswerError, marina.OrderError):
            with self.assertRaises(kind) as caught:
                once.create_order(**order, idempotency_key="mine")  # type: ignore[arg-type]
            copied = pickle.loads(pickle.dumps(caught.exception))
            self.assertIs(type(copied), kind)
            self.assertEqual(copied.call, caught.exception.call)
            self.assertEqual((copied.idempotency_key, str(copied)), ("mine", str(caught.exception)))


class GeneratedCode(unittest.TestCase):
    """protoc writes the modules of the guide on gRPC to `marina/gateway/v1`, without files that make them packages."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        module = Path(self.folder, "marina", "gateway", "v1", "orders_pb2.py")
        module.parent.mkdir(parents=True)
        module.write_text("WHAT = 'generated'\n")

    def test_it_can_be_imported_next_to_the_client_whichever_comes_first(self) -> None:
        for program in (
            "from marina import Marina; from marina.gateway.v1 import orders_pb2; print(orders_pb2.WHAT)",
            "from marina.gateway.v1 import orders_pb2; from marina import AsyncMarina; print(orders_pb2.WHAT)",
            "import marina.gateway.v1.orders_pb2 as one, marina.contract; print(one.WHAT)",
        ):
            with self.subTest(program):
                for path, cwd in ((self.folder, "."), ("", self.folder)):
                    ran = run(program, path=path, cwd=cwd)
                    self.assertEqual(ran.stdout, "generated\n", ran.stderr)

    def test_it_is_found_in_a_folder_that_a_program_adds_later(self) -> None:
        program = """
            import sys
            import marina
            sys.path.append(sys.argv[1])
            from marina.gateway.v1 import orders_pb2
            print(orders_pb2.WHAT, marina.Marina.__module__)
        """
        ran = run(program, self.folder)
        self.assertEqual(ran.stdout, "generated marina.client\n", ran.stderr)

    def test_it_does_not_replace_a_module_of_the_client(self) -> None:
        Path(self.folder, "marina", "errors.py").write_text("raise SystemExit('the wrong module')\n")
        ran = run("import marina.errors; print(marina.errors.MarinaError.__name__)", cwd=self.folder)
        self.assertEqual(ran.stdout, "MarinaError\n", ran.stderr)


if __name__ == "__main__":
    unittest.main()
