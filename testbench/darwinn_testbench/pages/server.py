"""Pages from memory to a browser on this machine, and to nobody else.

A server of nothing but the pages that it was given: no path of a request reaches the file system.
It listens on the loopback alone, under a random path that other users of the machine cannot guess,
and answers only requests that name it as their host, so that no page of the network reaches it by a
name of its own (DNS rebinding).
"""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from darwinn_testbench.errors import InputError

LOOPBACK = "127.0.0.1"
_SECONDS = 10
"""A client that says nothing for so long is let go."""
_MOST_CLIENTS = 32
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
}
# It is the same for all pages: a browser keeps it, for as long as the address is known.
_SCRIPT_HEADERS = {
    "Content-Type": "text/javascript; charset=utf-8",
    "Cache-Control": "private, max-age=86400, immutable",
}


class PageServer(ThreadingHTTPServer):
    """Serves pages, by names relative to ``url``; the first of them has the empty name. What is
    called ``*.js`` is a script of theirs.

    Attributes:
        url: where the first page is.
        pages: what is served, by path.
    """

    daemon_threads = True

    def __init__(self, port: int = 0) -> None:
        """Listen; ``port`` 0 is any that is free.

        Raises:
            InputError: the port is taken, or not for this user.
        """
        try:
            super().__init__((LOOPBACK, port), _Handler)
        except OSError as error:
            raise InputError(f"port {port} of {LOOPBACK}: {error.strerror}") from None
        self.root = f"/{secrets.token_urlsafe(16)}/"
        self.pages: dict[str, bytes] = {}
        self.hosts = {f"{name}:{self.server_port}" for name in (LOOPBACK, "localhost")}
        self.url = f"http://{LOOPBACK}:{self.server_port}{self.root}"
        self._room = threading.BoundedSemaphore(_MOST_CLIENTS)

    def publish(self, pages: Mapping[str, bytes]) -> None:
        """Serve ``pages`` from now on."""
        self.pages = {self.root + name: page for name, page in pages.items()}

    def process_request(self, request: Any, client_address: Any) -> None:
        """In a thread of its own, unless too many are there already: it is not answered then."""
        if self._room.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """One client, to its end."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away is nobody's fault."""


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    server_version = "darwinn"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        self._answer(body=True)

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def _answer(self, *, body: bool) -> None:
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            self.send_error(HTTPStatus.MISDIRECTED_REQUEST)
            return
        page = self.server.pages.get(self.path)
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self.send_response(HTTPStatus.OK)
        headers = _HEADERS | (_SCRIPT_HEADERS if self.path.endswith(".js") else {})
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        if body:
            self.wfile.write(page)

    def finish(self) -> None:
        """Whatever has become of the client."""
        try:
            super().finish()
        except (OSError, ValueError):
            self.request.shutdown(socket.SHUT_RDWR)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: what a browser asks for is not for the terminal."""
