"""A node that is healthy and takes long: the command waits, and says what for."""

import os
import sys
import time

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from clusterbox import make_boxes, make_redis, serve as serve_named, stop  # noqa: E402,F401
from httpnode import serve, submit, wait_end  # noqa: E402
from lossy import Lossy  # noqa: E402

GOLDEN = golden.of(__file__)
NOOP = {"steps": {"a": {"noop": True}}}


class Slow(Lossy):
    """Holds back the answers to commands, and no others, longer than a silent node may take."""

    def ask(self, method, path, headers, body):
        answer = super().ask(method, path, headers, body)
        if method != "GET":
            time.sleep(24)
        return answer


@pytest.mark.slow
@pytest.mark.parametrize("words, said", [
    (("store", "trim"), "removing"),
    (("job", "rm", "JOB"), "removing"),
    (("job", "signal", "LIVE", "go"), "busy")])
def test_a_command_waits_for_a_healthy_node(box, words, said):
    serve(box)
    job = submit(box, NOOP)
    wait_end(box, job)
    live = submit(box, {"steps": {"a": {"signal": "go"}}})
    words = [{"JOB": job, "LIVE": live}.get(word, word) for word in words]
    with Slow(box, lambda *_: False) as proxy:
        box.env["GLIA_SERVER"] = proxy.server
        done = box.glia(*words)
        del box.env["GLIA_SERVER"]
    assert GOLDEN.tells(said, done.stderr), done.stderr
    assert "; waiting" in done.stderr and "kill" not in done.stderr


@pytest.mark.slow
def test_a_command_for_a_stack_without_a_node_names_it(boxes):
    one = boxes("one", GLIA_STACK="red")
    node = serve_named(one)
    job = one.json("run", "--detach", "--", "sleep", "1h")["job_id"]
    stop(one, node)
    other = boxes("other", GLIA_STACK="blue")
    serve_named(other)
    done = other.glia("job", "cancel", job, code=5)
    assert "red" in done.stderr and "; waiting" in done.stderr, done.stderr
    GOLDEN.says("nobody", golden.line_of(done.stderr, "glia why"), [job])
