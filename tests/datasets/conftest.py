import contextlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture
def serve():
    """Return a function that puts bytes on a local web server and returns their URL."""
    pages = {}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            if self.path not in pages:
                self.send_error(404)
                return
            body, length, kind = pages[self.path]
            self.send_response(200)
            self.send_header("Content-Type", kind)
            if length is not None:
                self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def put(body, length=-1, path=None, kind="application/octet-stream"):
        path = path or f"/{len(pages)}"
        pages[path] = body, len(body) if length == -1 else length, kind
        return f"http://127.0.0.1:{server.server_port}{path}"

    yield put
    server.shutdown()
    server.server_close()


@pytest.fixture
def dialogue():
    """Return a function that lets a server answer each request by `answer(connection)`, and returns its URL."""
    servers, stop = [], threading.Event()

    def start(answer):
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def serve():
            while not stop.is_set():
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection, contextlib.suppress(OSError):
                    connection.recv(1 << 16)
                    answer(connection, stop)

        threading.Thread(target=serve, daemon=True).start()
        return f"http://127.0.0.1:{server.getsockname()[1]}/x"

    yield start
    stop.set()
    for server in servers:
        with contextlib.suppress(OSError):  # macOS refuses it for a socket that has no peer
            server.shutdown(socket.SHUT_RDWR)
        server.close()
