"""Ports of the loopback for private servers, each given to one test of this machine at a time."""

import random
import socket

# Below the ports the system gives to outgoing connections, so that a server that is restarted
# finds its port free again.
PORTS = range(12000, 30000)

_marks = {}  # port -> a socket with a name that only one process can have (test/support/port.c)


def _is_free(port):
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
            return True
        except OSError:
            return False


def take_port():
    """A port nobody listens at, ours until we give it back or end."""
    for _ in range(1000):
        port = random.SystemRandom().choice(PORTS)
        mark = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            mark.bind(f"\0glia-test-port-{port}")
        except OSError:
            mark.close()
            continue
        if _is_free(port):
            _marks[port] = mark
            return port
        mark.close()
    raise AssertionError("no port of the loopback is free")


def give_back(port):
    if port in _marks:
        _marks.pop(port).close()
