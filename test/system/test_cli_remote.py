"""Commands that talk to a node somewhere else."""

import os
import re
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from glianode import Box, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)
WHERE = "GLIA_TOKEN_FILE"


@pytest.fixture(name="client")
def make_client(box, tmp_path):
    """Somebody with a data folder of their own, and no token yet."""
    node = box.start("serve", "--listen", "127.0.0.1:0")
    wait_for("the node", lambda: "ready: process" in box.read(node.err))
    address = re.search(r"http://127\.0\.0\.1:\d+", box.read(node.err)).group(0)
    os.makedirs(tmp_path / "client")
    client = Box(tmp_path / "client", GLIA_SERVER=address)
    yield client
    client.close()


def test_a_wrong_token_is_told_from_a_missing_one(client):
    for command in (["job", "list"], ["status"], ["run", "--", "true"]):
        assert client.reason(*command, code=4) == "token_missing"
        assert WHERE in client.glia(*command, code=4).stderr
    client.env["GLIA_TOKEN_FILE"] = client.write("tok", "f" * 64, 0o600)
    assert client.reason("job", "list", code=4) == "token_wrong"
    assert WHERE in client.glia("job", "list", code=4).stderr
    client.env["GLIA_TOKEN"] = "e" * 64
    assert client.reason("status", code=4) == "token_wrong"


def test_the_status_of_a_node_elsewhere_tells_nothing_of_the_own_folder(box, client):
    client.env["GLIA_TOKEN"] = box.read("data/token").strip()
    rows = [line.split("\t")[0] for line in client.glia("status").stdout.splitlines()]
    GOLDEN.says("rows", ", ".join(rows))
    doc = client.json("status")
    assert doc["data_dir"] is None and doc["store_bytes"] is None and doc["node"]["name"]
    assert box.json("status")["data_dir"] == box.data
    assert client.env["GLIA_SERVER"] in client.glia("job", "list").stderr
