"""More of everything at once: commands, signals, items, steps. GLIA_SOAK=1 takes ten times more."""

import json
import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import GLIA, Box, wait_for  # noqa: E402
from httpnode import JOBS, serve, submit  # noqa: E402

MANY = 10 if os.environ.get("GLIA_SOAK") else 1
SIGNALS_MAX = 1000
END_SECONDS = 60 * MANY


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path)
    serve(box)
    yield box
    box.close()


def wait_completed(box, job):
    """By its line in the list: the whole document of a large job is large."""
    def ended():
        jobs = box.ask("GET", f"{JOBS}?limit=20").json["jobs"]
        return [j for j in jobs if j["job_id"] == job and j["status"] != "running"]

    document = wait_for("the end of the job", ended, END_SECONDS)[0]
    assert document["status"] == "completed", document.get("reason")
    return document


def test_very_many_commands_at_once_are_all_answered(box):
    job = submit(box, {"steps": {"a": {"signal": "x"}, "b": {"signal": "y", "needs": "a"}}})
    kinds = (["job", "list"], ["job", "status", job], ["run", "--", "true"],
             ["job", "signal", job, "y"], ["why", job])
    commands = [kinds[i % len(kinds)] for i in range(100 * MANY)]
    running = [subprocess.Popen([GLIA, *words], env=box.env, cwd=box.folder,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for words in commands]
    for words, process in zip(commands, running):
        _, err = process.communicate(timeout=END_SECONDS)
        assert process.returncode == 0, (words, err)


def test_signals_nobody_waits_for_are_kept_up_to_their_number(box):
    job = submit(box, {"steps": {"hold": {"signal": "never"},
                                 "b": {"signal": "go", "needs": "hold"}}})
    connection = box.connect()

    def send(value):
        connection.request("POST", f"{JOBS}/{job}/signals/go", json.dumps(value))
        answer = connection.getresponse()
        answer.read()
        return answer.status

    assert {send(i) for i in range(SIGNALS_MAX)} == {200}
    assert {send(i) for i in range(10)} == {429}
    box.started[-1].kill()
    box.started[-1].wait()
    serve(box)
    connection = box.connect()
    assert send("one more") == 429


def test_each_of_many_signals_is_taken_once_and_in_order(box):
    count = 100 * MANY
    steps = {f"g{i}": {"signal": "go", "needs": [f"g{i - 1}"] if i else []} for i in range(count)}
    job = submit(box, {"steps": steps})
    for i in range(count):
        assert box.ask("POST", f"{JOBS}/{job}/signals/go", {"i": i}).status == 200
    wait_completed(box, job)
    records = box.ask("GET", f"{JOBS}/{job}").json["workflow_state"]["steps"]
    assert [records[f"g{i}"]["output"]["i"] for i in range(count)] == list(range(count))


@pytest.mark.slow
def test_very_many_items_and_steps(box):
    count = 1000 * MANY
    items = {"make": {"python": f"import json, os\njson.dump(list(range({count})), "
                                "open(os.environ['GLIA_OUTPUT'], 'w'))\n"},
             "each": {"needs": "make", "foreach": "${steps.make.output}", "max_items": 10000,
                      "noop": True},
             "end": {"needs": "each", "noop": True}}
    job = submit(box, {"steps": items})
    wait_completed(box, job)
    each = box.ask("GET", f"{JOBS}/{job}?step=each").json["workflow_state"]["steps"]["each"]
    assert len(each["output"]) == count
    wide = {"root": {"noop": True}, **{f"s{i}": {"noop": True, "needs": "root"}
                                       for i in range(10 * count)}}
    assert wait_completed(box, submit(box, {"steps": wide}))["completed_n"] == 10 * count + 1


def test_one_item_too_many_fails_the_step_and_says_so(box):
    flow = {"steps": {"make": {"sh": "echo '{\"list\": [1, 2, 3]}'"},
                      "each": {"needs": "make", "foreach": "${steps.make.output.list}",
                               "max_items": 2, "noop": True, "on_failure": "continue"}}}
    job = submit(box, flow)
    wait_completed(box, job)
    assert "3 items, but max_items is 2" in box.step(job, "each")["terminal_reason"]
