"""Data folders of several nodes on one private Redis, for tests of the commands."""

import signal

import pytest

from glianode import Box, wait_for
from servers import RedisServer


# Longer than any machine stands still.
CALM = {"GLIA_SESSION_TTL": "30s"}


@pytest.fixture(name="redis", scope="module")
def make_redis():
    with RedisServer() as server:
        yield server


@pytest.fixture(name="boxes")
def make_boxes(tmp_path, redis):
    """Data folders by name, all on the store, which is empty at first. Where nobody is to be given
    up, tests say so with a longer life of sessions: CALM."""
    made = {}

    def get(name, **env):
        if name not in made:
            folder = tmp_path / name
            folder.mkdir()
            made[name] = Box(folder, **{
                "GLIA_STORE": redis.url, "GLIA_NODE_NAME": name, "GLIA_SESSION_TTL": "2s",
                "GLIA_ORPHAN_GRACE": "1s", **env})
        return made[name]

    if redis.process.poll() is not None:
        redis.start()
    redis.ask("FLUSHALL")
    yield get
    for box in made.values():
        box.close()


def impatient(*boxes):
    """Commands of these say soon that the store is away, if it is no slower than usual."""
    for box in boxes:
        box.env["GLIA_STORE"] += "?timeout_ms=2000"


def serve(box, *args, ready=True):
    node = box.start("serve", *args)
    word = "ready: process" if ready else "not ready:"
    wait_for("the node", lambda: word in box.read(node.err) or node.poll() is not None)
    assert node.poll() is None, box.read(node.err)
    return node


def stop(box, node):
    node.send_signal(signal.SIGTERM)
    box.finish(node)


def nodes(box, *args):
    return {n["name"].split(".")[0]: n for n in box.json("node", "list", *args)["nodes"]}


def why(box, job):
    return box.json("why", job)["why"]


def log_of(box):
    with open(f"{box.data}/node.log", encoding="utf-8") as file:
        return file.read()
