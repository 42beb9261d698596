"""Which PyTorch `make install` chooses, with an index that answers, one that is slow and one that does not exist."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tools.install_torch import CPU_INDEX, choose, index_answers, install

LISTING = b'<html><a href="torch-2.6.0%2Bcpu-cp311-cp311-linux_x86_64.whl">torch-2.6.0+cpu</a></html>'


@contextmanager
def index(listing: bytes = LISTING, wait: threading.Event | None = None) -> Iterator[str]:
    """A local index; it answers requests for torch once `wait` is set."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if wait is not None:
                wait.wait()
            self.send_response(200 if self.path == "/whl/cpu/torch/" else 404)
            self.end_headers()
            self.wfile.write(listing)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/whl/cpu"
    finally:
        if wait is not None:
            wait.set()
        server.shutdown()
        server.server_close()


def no() -> bool:
    return False


def never() -> bool:
    raise AssertionError("asked, although the answer does not matter")


def test_without_a_driver_an_index_that_answers_gives_the_cpu_wheels() -> None:
    with index() as url:
        choice = choose("linux", False, no, lambda: index_answers(url, 60), url)
    assert choice.index == url


def test_without_a_driver_an_index_that_does_not_answer_in_time_gives_the_default() -> None:
    with index(wait=threading.Event()) as url:
        choice = choose("linux", False, no, lambda: index_answers(url, 0.2), url)
    assert not choice.index


def test_an_index_without_torch_and_a_closed_port_do_not_answer() -> None:
    with index(listing=b"<html>Sign in to the guest network</html>") as url:
        assert not index_answers(url, 60)
    with index() as url:
        assert not index_answers(f"{url}/other", 60)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        assert not index_answers(f"http://127.0.0.1:{free.getsockname()[1]}/whl/cpu", 60)


def test_the_index_is_not_asked_where_its_answer_does_not_matter() -> None:
    assert not choose("linux", False, lambda: True, never).index
    assert not choose("darwin", False, never, never).index
    assert not choose("linux", True, never, never).index


def test_installing_calls_pip_with_the_index_and_a_failure_leaves_the_default() -> None:
    called: list[Sequence[str]] = []

    def fails(command: Sequence[str]) -> int:
        called.append(command)
        return 1

    install(choose("linux", False, no, lambda: True), fails)
    assert len(called) == 1
    assert called[0][-4:] == ["torch", "torchvision", "--index-url", CPU_INDEX]
    install(choose("linux", False, no, no), fails)
    assert len(called) == 1
