"""A proxy in front of a node's socket that carries requests to the node and loses some answers.

    with Lossy(box, lambda method, path: method == "POST") as proxy:
        box.glia("--server", proxy.server, "run", "flow.yaml")

An answer that `loses` picks is lost after the node has given it: the connection is closed instead,
and `lost` calls that function first. Each pick happens once unless `times` says otherwise.
"""

import contextlib
import os
import socket
import threading

from glianode import Connection

SKIPPED = {"connection", "keep-alive", "transfer-encoding", "content-length"}


def read_request(sock):
    """The method, path, headers and body of the next request; None at the end."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            return None
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    length = next((int(v) for k, v in headers.items() if k.lower() == "content-length"), 0)
    while len(body) < length:
        body += sock.recv(65536)
    method, path, _ = lines[0].split(" ")
    return method, path, headers, body


class Lossy:
    """One proxy; each connection has a thread of its own."""

    def __init__(self, box, loses, times=1, lost=lambda: None):
        self.box, self.loses, self.left, self.lost = box, loses, times, lost
        self.requests, self.answers = [], []  # every one, whether or not its answer was lost
        self.path = os.path.join(box.folder, "lossy.sock")
        self.server = f"unix:{self.path}"
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        os.unlink(self.path)

    def accept(self):
        while True:
            try:
                near = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self.serve, args=(near,), daemon=True).start()

    def serve(self, near):
        with near, contextlib.suppress(OSError):
            while (request := read_request(near)) is not None:
                answer = self.ask(*request)
                if self.is_lost(*request):
                    self.lost()
                    return
                near.sendall(answer)

    def ask(self, method, path, headers, body):
        far = Connection(self.box.socket)
        far.request(method, path, body=body or None,
                    headers={k: v for k, v in headers.items() if k.lower() not in SKIPPED})
        response = far.getresponse()
        content = response.read()
        far.close()
        with self.lock:
            self.requests.append((method, path, body))
            self.answers.append((response.status, content))
        lines = [f"HTTP/1.1 {response.status} {response.reason}",
                 *(f"{k}: {v}" for k, v in response.getheaders() if k.lower() not in SKIPPED),
                 f"Content-Length: {len(content)}"]
        return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + content

    def is_lost(self, method, path, _, __):
        with self.lock:
            if self.left == 0 or not self.loses(method, path):
                return False
            self.left -= 1
            return True

    def posts(self):
        """The bodies of the submissions that came through."""
        return [body for method, path, body in self.requests
                if method == "POST" and path.endswith("/jobs")]
