"""A port of this machine where a text can be fetched: what Prometheus scrapes."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from skyband.errors import SkybandError
from skyband.spark.watching.exposition import CONTENT_TYPE

PATH = "/metrics"
_PATIENCE = 10.0  # seconds a client may take to ask


class Endpoint:
    """Answers GET /metrics with what `text` gives at that moment, from threads of its own, until it is closed."""

    def __init__(self, port: int, host: str, text: Callable[[], str]) -> None:
        if type(port) is not int or not 0 <= port <= 65535:
            raise SkybandError(f"the port for metrics must be a number from 0 (any that is free) to 65535, got {port!r}")
        try:
            self._server = _Server((host, port), _handler(text))
        except OSError as problem:
            raise SkybandError(f"metrics cannot be offered at {host}:{port}: {_reason(problem)}") from None
        self.port: int = self._server.server_address[1]
        self.url = f"http://{host}:{self.port}{PATH}"
        self._thread = threading.Thread(target=self._server.serve_forever, name="skyband: metrics", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Answer no more; the port is free afterwards."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _reason(problem: OSError) -> str:
    if problem.errno == errno.EADDRINUSE:
        return "another program listens there; choose another port, or 0 for any that is free"
    if problem.errno == errno.EACCES:
        return "this user may not listen there; choose a port above 1023"
    return f"{problem.strerror or problem}; give the name or address of an interface of this machine, such as 127.0.0.1"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True  # of a connection that is closing; a port somebody listens on is refused all the same

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away in the middle is no news."""


def _handler(text: Callable[[], str]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        timeout = _PATIENCE

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != PATH:
                self._answer(404, "text/plain; charset=utf-8", f"the metrics are at {PATH}\n")
            else:
                self._answer(200, CONTENT_TYPE, text())

        do_HEAD = do_GET

        def _answer(self, status: int, kind: str, content: str) -> None:
            body = content.encode(errors="replace")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Standard error is for errors."""

    return Handler
