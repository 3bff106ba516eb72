"""The server of pages: what it answers, whom it refuses, and how the command ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from darwinn_testbench.cli.application import run_command_line
from darwinn_testbench.pages import server as pages_server
from darwinn_testbench.pages.server import PageServer
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_files import sample

PAGES = {"": b"<p>first</p>", "1.html": b"<p>second</p>"}
BOUND = 60


@pytest.fixture(scope="module")
def server() -> Iterator[PageServer]:
    with PageServer() as opened:
        opened.publish(PAGES)
        thread = threading.Thread(target=opened.serve_forever, args=(0.05,))
        thread.start()
        yield opened
        opened.shutdown()
        thread.join(BOUND)


def ask(
    server: PageServer, path: str, host: str | None = None, method: str = "GET"
) -> tuple[int, bytes, dict[str, str]]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=BOUND)
    try:
        connection.putrequest(method, path, skip_host=True)
        connection.putheader("Host", f"127.0.0.1:{server.server_port}" if host is None else host)
        connection.endheaders()
        answer = connection.getresponse()
        return answer.status, answer.read(), dict(answer.headers.items())
    finally:
        connection.close()


def test_pages_are_served_where_the_address_says(server: PageServer) -> None:
    root = urlsplit(server.url)
    assert root.hostname == "127.0.0.1"
    assert len(root.path) > 20
    for name, page in PAGES.items():
        status, body, headers = ask(server, root.path + name)
        assert (status, body) == (200, page)
        assert headers["Content-Type"] == "text/html; charset=utf-8"
        assert headers["X-Frame-Options"] == "SAMEORIGIN"
    assert ask(server, root.path, method="HEAD")[:2] == (200, b"")
    assert ask(server, root.path, f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "[::1]"])
def test_another_host_is_refused(server: PageServer, host: str) -> None:
    assert ask(server, urlsplit(server.url).path, host)[0] == 421


@settings(max_examples=60)
@given(st.lists(st.sampled_from(["..", ".", "", "1.html", "etc", "passwd", "%2e%2e", "x"])))
def test_no_path_leads_to_a_file(server: PageServer, words: list[str]) -> None:
    for start in ("/", urlsplit(server.url).path):
        path = start + "/".join(words)
        expected = {urlsplit(server.url).path + name: page for name, page in PAGES.items()}
        status, body, _ = ask(server, path)
        assert (status, body) == (200, expected[path]) if path in expected else status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_nothing_but_reading_is_answered(server: PageServer, method: str) -> None:
    assert ask(server, urlsplit(server.url).path, method=method)[0] == 501


def test_clients_are_bounded(server: PageServer) -> None:
    """Those that connect and say nothing do not stop others for good."""
    address = ("127.0.0.1", server.server_port)
    silent = [socket.create_connection(address, BOUND) for _ in range(pages_server._MOST_CLIENTS)]
    try:
        with socket.create_connection(address, BOUND) as one_more:
            assert one_more.recv(1) == b"", "it is let go without an answer"
    finally:
        for each in silent:
            each.close()
    while True:
        try:
            assert ask(server, urlsplit(server.url).path)[0] == 200
            break
        except (OSError, http.client.HTTPException):
            continue


@pytest.mark.usefixtures("signals_not_ignored")
def test_the_command_serves_until_it_is_interrupted(tmp_path: Path, browser: Any) -> None:
    sample(tmp_path)
    files = ["dense_edgetpu.tflite", "convolution_edgetpu.tflite"]
    (tmp_path / "bad.tflite").write_bytes(b"no model")
    command = [sys.executable, "-m", "darwinn_testbench", "view", "bad.tflite", *files]
    command.append("--no-browser")
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        timer = threading.Timer(5 * BOUND, process.kill)
        timer.start()
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[\w-]+/", url)
            browser.get(url)
            rows = browser.find_elements("css selector", "#s1 tbody tr")
            assert [row.text.split()[0] for row in rows] == files
            (unread,) = browser.find_elements("css selector", "#s2 tbody tr")
            assert unread.text.startswith("bad.tflite bad-input")
            assert browser.find_element("css selector", "html[data-ready] .chart svg")
            with urllib.request.urlopen(url + "1.html", timeout=BOUND) as answer:
                assert len(answer.read()) < 200_000, "the library is not in each page"
            shown = []
            for frame in browser.find_elements("tag name", "iframe"):
                browser.switch_to.frame(frame)
                shown.append(browser.find_element("tag name", "h1").text.split()[0])
                assert browser.find_element("css selector", ".chart svg")
                browser.switch_to.default_content()
            assert shown == files
            assert not browser.get_log("browser")
            process.send_signal(signal.SIGINT)
            assert process.wait(BOUND) == 0
        finally:
            timer.cancel()
            process.kill()


def test_bad_use_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sample(tmp_path)
    files = [str(tmp_path / f"{name}_edgetpu.tflite") for name in ("dense", "convolution")]
    assert run_command_line(["view", *files, "--reference", str(tmp_path / "dense.tflite")]) == 2
    assert "2 files have 1 reference" in capfd.readouterr().err
    assert run_command_line(["view", "no such file"]) == 2
    assert run_command_line(["view", "no such file", "nor this"]) == 2
    capfd.readouterr()
    # Of several files each reason names its own, also one that does not name a file itself.
    program = str(tmp_path / "dense.bef")
    assert run_command_line(["view", program, "no such file"]) == 2
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith(f"darwinn view: refused: {program}: native functions")
    assert second == "darwinn view: bad-input: no such file: No such file or directory"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run_command_line(["view", files[0], "--no-browser", "--port", port]) == 2
    assert port in capfd.readouterr().err
