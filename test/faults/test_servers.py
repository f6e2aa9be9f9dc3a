"""The tools of the fault tests do what they say: otherwise a test that passes proves nothing."""

import os
import socket
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import wait_for  # noqa: E402
from proxy import Proxy  # noqa: E402
from servers import (PostgresServer, Redis, RedisError, RedisServer,  # noqa: E402
                     SentinelSet, is_alive)


def test_a_redis_server_keeps_its_data_over_kill_9_and_forgets_it_if_told():
    with RedisServer("always") as server:
        server.ask("SET", "a", "1")
        server.restart()
        assert server.ask("GET", "a") == b"1"
        server.restart(empty=True)
        assert server.ask("GET", "a") is None
    assert not os.path.exists(server.folder) and not is_alive(server.pid)


def test_a_power_cut_takes_what_was_not_on_the_disk():
    with RedisServer("always") as server:
        server.ask("SET", "a", "1")
        before = server.aof_bytes()
        server.ask("SET", "b", "1")
        assert server.aof_bytes() > before
        server.lose_power(before)
        assert (server.ask("GET", "a"), server.ask("GET", "b")) == (b"1", None)


def test_a_full_disk_is_an_error_and_ends_when_there_is_room():
    with RedisServer("everysec") as server:
        server.ask("SET", "a", "1")
        server.fill_disk()

        def refused():
            try:
                server.ask("SET", "a", "2")
                return False
            except RedisError as error:
                return "MISCONF" in str(error)

        wait_for("the error", refused)
        server.free_disk()
        wait_for("writes", lambda: not refused())


if os.geteuid() == 0:  # who else cannot mount

    def test_a_postgres_server_with_a_full_disk_takes_nothing_that_needs_room():
        with PostgresServer(disk_mib=16) as server:
            server.sql("CREATE TABLE t (a text)")
            fill = "INSERT INTO t SELECT repeat('x', 1000) FROM generate_series(1, 100)"
            server.fill_disk()
            with pytest.raises(RuntimeError, match="No space"):
                server.sql(fill)
            server.free_disk()
            server.sql(fill)
            assert server.sql("SELECT count(*) FROM t") == "100"
        assert not os.path.exists(server.folder)


def test_postgres_keeps_its_data_over_kill_9():
    with PostgresServer() as server:
        server.sql("CREATE TABLE t (a int); INSERT INTO t VALUES (1)")
        pids = server.pids()
        assert len(pids) > 3
        server.restart()
        assert server.sql("SELECT a FROM t") == "1"
        assert not any(is_alive(p) for p in pids)
    assert not os.path.exists(server.folder)


def test_sentinels_choose_another_primary():
    with SentinelSet() as world:
        old = world.current()
        assert old is world.primary
        old.kill()
        assert world.wait_failover(old) in world.replicas


# ---- the proxy ----

SILENCE_S = 0.5  # so long nothing must come


@pytest.fixture(name="way")
def make_way():
    with RedisServer() as server, Proxy(server.port) as proxy, Redis(proxy.port) as redis:
        yield proxy, redis


def test_the_proxy_forwards(way):
    _, redis = way
    value = os.urandom(1 << 20)
    redis.ask("SET", "a", value)
    assert redis.ask("GET", "a") == value


def test_the_proxy_delays(way):
    proxy, redis = way
    proxy.delay_s = 0.05
    start = time.monotonic()
    redis.ask("PING")
    assert time.monotonic() - start >= 0.1


@pytest.mark.parametrize("direction, written", [("up", None), ("down", b"2")])
def test_the_proxy_stalls_one_direction(way, direction, written):
    proxy, redis = way
    redis.ask("SET", "a", "1")
    proxy.stall(direction)
    redis.sock.settimeout(SILENCE_S)
    with pytest.raises(socket.timeout):
        redis.ask("SET", "b", "2")
    with Redis(proxy.target) as straight:
        wait_for("what gets through", lambda: straight.ask("GET", "b") == written)
        proxy.flow()
        wait_for("what was kept back", lambda: straight.ask("GET", "b") == b"2")


def test_the_proxy_cuts_and_is_there_again(way):
    proxy, redis = way
    redis.ask("PING")
    proxy.cut()
    with pytest.raises(OSError):
        redis.ask("PING")
    with Redis(proxy.port) as again:
        assert again.ask("PING") == "PONG"
        proxy.close_door()
        with pytest.raises(OSError):
            Redis(proxy.port)
        proxy.open_door()
        assert again.ask("PING") == "PONG"


def test_the_proxy_leaves_a_connection_half_open(way):
    proxy, redis = way
    redis.ask("PING")
    proxy.half_open()
    redis.sock.settimeout(SILENCE_S)
    with pytest.raises(socket.timeout):
        redis.ask("PING")
    with Redis(proxy.target) as straight:
        wait_for("the server to see it", lambda: straight.ask("CLIENT", "LIST").count(b"\n") == 1)
