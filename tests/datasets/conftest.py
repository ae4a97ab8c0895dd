import contextlib
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@pytest.fixture
def serve():
    """Return a function that puts bytes, or what a function sends, on a local web server and returns their URL."""
    pages, stop = {}, threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            content, length, kind = pages.get(self.path, (None, None, None))
            with contextlib.suppress(OSError):
                if content is None:
                    self.send_error(404)
                elif callable(content):
                    content(self.connection, stop)
                else:
                    self.send_response(200)
                    self.send_header("Content-Type", kind)
                    if length is not None:
                        self.send_header("Content-Length", str(length))
                    self.end_headers()
                    self.wfile.write(content)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()

    def put(content, length=-1, path=None, kind="application/octet-stream"):
        path = path or f"/{len(pages)}"
        pages[path] = content, len(content) if length == -1 and not callable(content) else length, kind
        return f"http://127.0.0.1:{server.server_port}{path}"

    yield put
    stop.set()
    server.shutdown()
    server.server_close()
