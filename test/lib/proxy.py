"""A TCP proxy that behaves badly on demand: slow, silent, cut, half open.

    proxy = Proxy(server.port)
    proxy.delay_s = 0.05      every piece of bytes is this much later, in both directions
    proxy.stall("down")       what comes this way is kept back ("up": to, "down": from the server)
    proxy.flow()              and goes on
    proxy.cut()               all connections are reset; new ones are welcome
    proxy.close_door()        new ones are refused, too
    proxy.half_open()         the server's side is closed, the client hears nothing of it
"""

import collections
import selectors
import socket
import struct
import threading
import time

from ports import give_back, take_port

CHUNK = 1 << 16
FULL_S = 0.01  # a reader that does not read is asked again so much later


class Way:
    """One direction of a connection: bytes on their way, each piece with the time it is due."""

    def __init__(self, source, target, name):
        self.source, self.target, self.name = source, target, name
        self.pieces = collections.deque()
        self.is_ended = False  # the source has closed


class Proxy:
    """Forwards connections on `port` to 127.0.0.1:`target`; one thread does it all."""

    def __init__(self, target):
        self.target = target
        self.delay_s = 0.0
        self.stalled = set()
        self.lock = threading.RLock()
        self.pairs = []  # (client, server, ways)
        self.listener = None
        self.port = take_port()
        self.selector = selectors.DefaultSelector()
        self.waker, self.wakee = socket.socketpair()
        self.wakee.setblocking(False)
        self.selector.register(self.wakee, selectors.EVENT_READ, None)
        self.is_closing = False
        self.open_door()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- what a test asks for ----

    def open_door(self):
        with self.lock:
            if self.listener is None:
                door = socket.socket()
                door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                door.bind(("127.0.0.1", self.port))
                door.listen(64)
                door.setblocking(False)
                self.listener = door
                self.selector.register(door, selectors.EVENT_READ, "door")
        self.wake()

    def close_door(self):
        with self.lock:
            if self.listener is not None:
                self.selector.unregister(self.listener)
                self.listener.close()
                self.listener = None

    def cut(self):
        """Reset all connections, as when a cable is moved to another machine."""
        with self.lock:
            for pair in list(self.pairs):
                self.drop(pair, do_reset=True)

    def half_open(self):
        """The server hears that its clients are gone; they do not hear anything any more."""
        with self.lock:
            for client, server, ways in self.pairs:
                self.forget(server)
                server.close()
                ways[1].pieces.clear()
                ways[0].target = ways[1].source = None

    def stall(self, *names):
        with self.lock:
            self.stalled = set(names or ("up", "down"))

    def flow(self):
        with self.lock:
            self.stalled = set()
        self.wake()

    def isolate(self):
        """Nobody gets through, and nobody is told."""
        self.stall("up", "down")

    def count(self):
        with self.lock:
            return len(self.pairs)

    def close(self):
        self.is_closing = True
        self.wake()
        self.thread.join(10)
        with self.lock:
            self.close_door()
            for pair in list(self.pairs):
                self.drop(pair)
            self.selector.close()
            self.waker.close()
            self.wakee.close()
        give_back(self.port)

    # ---- the thread ----

    def wake(self):
        try:
            self.waker.send(b"x")
        except OSError:
            pass

    def run(self):
        while not self.is_closing:
            for key, _ in self.selector.select(self.patience()):
                with self.lock:
                    self.on_ready(key)
            with self.lock:
                self.forward()

    def patience(self):
        with self.lock:
            due = [w.pieces[0][0] for _, _, ways in self.pairs for w in ways
                   if w.pieces and w.name not in self.stalled]
        return max(0.0, min(due) - time.monotonic()) if due else 0.5

    def on_ready(self, key):
        if key.data is None:
            self.wakee.recv(CHUNK)
        elif key.data == "door":
            self.accept()
        elif key.fileobj.fileno() >= 0:
            self.read(key.fileobj, key.data)

    def accept(self):
        if self.listener is None:
            return
        try:
            client, _ = self.listener.accept()
        except OSError:
            return
        try:
            server = socket.create_connection(("127.0.0.1", self.target), 5)
        except OSError:
            reset(client)
            return
        ways = (Way(client, server, "up"), Way(server, client, "down"))
        for way in ways:
            way.source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            way.source.setblocking(False)
            self.selector.register(way.source, selectors.EVENT_READ, way)
        self.pairs.append((client, server, ways))

    def read(self, sock, way):
        try:
            data = sock.recv(CHUNK)
        except OSError:
            data = b""
        if not data:
            self.forget(sock)
            way.is_ended = True
        way.pieces.append((time.monotonic() + self.delay_s, data))

    def forward(self):
        now = time.monotonic()
        for pair in list(self.pairs):
            for way in pair[2]:
                while way.pieces and way.name not in self.stalled and way.pieces[0][0] <= now:
                    self.deliver(pair, way.pieces.popleft()[1], way)

    def deliver(self, pair, data, way):
        if way.target is None:
            return  # into the void
        if not data:
            self.drop(pair)
            return
        try:
            sent = way.target.send(data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.drop(pair)
            return
        if sent < len(data):
            way.pieces.appendleft((time.monotonic() + FULL_S, data[sent:]))

    def forget(self, sock):
        try:
            self.selector.unregister(sock)
        except (KeyError, ValueError):
            pass

    def drop(self, pair, do_reset=False):
        for sock in pair[:2]:
            self.forget(sock)
            if do_reset:
                linger(sock)
            sock.close()
        for way in pair[2]:
            way.pieces.clear()
        if pair in self.pairs:
            self.pairs.remove(pair)


def linger(sock):
    """Closing it will send a reset."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass


def reset(sock):
    linger(sock)
    sock.close()
