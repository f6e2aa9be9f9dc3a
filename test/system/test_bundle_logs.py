"""Logs of bundles: what agents have said, message by message."""

import json
import os
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from bundlework import Bundle  # noqa: E402
from glianode import ROOT, Box, wait_for  # noqa: E402
from httpnode import JOBS, assert_error, serve  # noqa: E402

sys.path.insert(0, os.path.join(ROOT, "sdk", "python"))
import glia  # noqa: E402

SAY = "print(context['agent_id'], 'says', body.get('n', '-'), file=sys.stderr)\n"


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path, MN_RUNS_ROOT=str(tmp_path / "runs"))
    yield box
    box.close()


def two(box, first="", **more):
    """`ear` hears two messages and wakes `mouth`, which does the step `talk`: then it is over."""
    b = Bundle("two")
    b.worker("ear", SAY + first + "if body['n'] == 2: emit(('go', {'n': 3}))", step=False,
             output_message_type=None, safe_to_retry=True, **more)
    b.worker("mouth", SAY + "say(complete_step=True)", step=False, output_message_type="done",
             safe_to_retry=True, **more)
    b.step("talk", agent_ids=["mouth"]).ends("mouth").edge("ear", "mouth", "go")
    b.seed("ear", {"n": 1}, {"n": 2})
    return b.write(os.path.join(box.folder, "bundle"))


def lines(box, *args, code=0):
    return box.glia("job", "logs", *args, code=code).stdout.splitlines()


def said(box, *args):
    """The lines that the workers have written to stderr."""
    return [line for line in lines(box, *args) if "says" in line]


def test_logs_of_all_agents_of_one_and_of_a_step(box):
    box.glia("run", two(box), "--run-id", "one")
    everything = [line.split("\t") for line in said(box, "one")]
    assert everything == [["ear", "ear says 1"], ["ear", "ear says 2"], ["mouth", "mouth says 3"]]
    assert said(box, "one", "ear") == ["ear says 1", "ear says 2"]
    assert said(box, "one", "@ear") == ["ear says 1", "ear says 2"]
    assert said(box, "one", "mouth") == said(box, "one", "talk") == ["mouth says 3"]
    numbered = [line.split("\t") for line in said(box, "one", "--attempt", "all")]
    numbers = [int(row[1]) for row in numbered]
    assert sorted(numbers) == numbers and len(set(numbers)) == 3
    for name, number, text in numbered:
        assert said(box, "one", "--attempt", number) == [f"{name}\t{text}"]
        assert said(box, "one", name, "--attempt", number) == [text]
    document = box.json("job", "logs", "one", "talk")["lines"]
    assert {line["agent_id"] for line in document} == {"mouth"}
    assert document[0]["stream"] == "stderr" and document[0]["text"] == "mouth says 3"


def test_what_is_not_there_is_said(box):
    box.glia("run", two(box), "--run-id", "one")
    for args, hint in [(("nobody",), "no agent or step 'nobody'"),
                       (("ear", "--attempt", "99"), "no log of attempt 99 of 'ear'"),
                       (("--attempt", "99"), "no log of attempt 99")]:
        assert hint in box.glia("job", "logs", "one", *args, code=3).stderr
    assert lines(box, "one", "sink") == []  # it runs nothing, and so says nothing


def test_following_ends_with_the_job(box):
    hold = f"sys.stderr.flush()\nwhile not os.path.exists('{box.folder}/go'): time.sleep(0.01)\n"
    serve(box)
    box.glia("run", two(box, first=hold), "--run-id", "one", "--detach")
    everybody = box.start("job", "logs", "one", "--follow")
    ear = box.start("job", "logs", "one", "ear", "--follow")
    wait_for("a line", lambda: "ear says 1" in box.read(ear.out))
    assert ear.poll() is None and "ear says 2" not in box.read(ear.out)
    box.write("go", "")
    box.finish(ear)
    box.finish(everybody)
    assert box.json("job", "status", "one")["status"] == "completed"
    assert [x for x in box.read(ear.out).splitlines() if "says" in x] == ["ear says 1",
                                                                         "ear says 2"]
    told = [x.split("\t") for x in box.read(everybody.out).splitlines() if "says" in x]
    assert told == [["ear", "ear says 1"], ["ear", "ear says 2"], ["mouth", "mouth says 3"]]


def test_logs_of_agents_over_http(box):
    hold = f"sys.stderr.flush()\nwhile not os.path.exists('{box.folder}/go'): time.sleep(0.01)\n"
    serve(box)
    box.glia("run", two(box, first=hold), "--run-id", "one", "--detach")
    logs = f"{JOBS}/one/logs"
    wait_for("a line", lambda: b"ear says 1" in box.ask("GET", f"{logs}?step=ear").body)
    first = box.ask("GET", f"{logs}?step=ear").headers
    assert first["Glia-Ended"] == "false"
    box.write("go", "")
    followed = box.ask("GET", f"{logs}?step=ear&attempt={first['Glia-Attempt']}&follow=true")
    assert b"ear says 1" in followed.body and b"ear says 2" not in followed.body
    wait_for("its end", lambda: box.ask("GET", f"{JOBS}/one").json["status"] == "completed")
    listed = box.ask("GET", logs).json["attempts"]
    assert {(a["step_id"], a["agent_id"]) for a in listed} == {("@ear", "ear"),
                                                               ("@mouth", "mouth")}
    assert all(a["ended"] for a in listed)
    mouth, = [a["attempt"] for a in listed if a["agent_id"] == "mouth"]
    for name in ("mouth", "talk", "@mouth"):
        answer = box.ask("GET", f"{logs}?step={name}")
        assert b"mouth says 3" in answer.body
        assert answer.headers["Glia-Ended"] == "true"
        assert answer.headers["Glia-Attempt"] == str(mouth)
    assert b"mouth says 3" in box.ask("GET", f"{logs}?step=talk&attempt={mouth}").body
    assert_error(box.ask("GET", f"{logs}?step=nobody"), 404, "not_found")
    assert_error(box.ask("GET", f"{logs}?step=ear&attempt={mouth}"), 404, "not_found")
    ran = box.ask("GET", f"{JOBS}/one").json["executions"]
    assert ran["mouth"]["attempt_count"] == mouth and ran["mouth"]["status"] == "idle"
    with glia.Client(data_dir=box.data) as client:
        told = [line.text for line in client.logs("one") if "says" in line.text]
    assert sorted(told) == ["ear says 2", "mouth says 3"]  # the last attempt of each


def test_the_log_of_a_flow_is_followed_by_step_only(box):
    box.glia("run", "--run-id", "flow", "--", "echo", "x")
    assert "--follow needs a STEP" in box.glia("job", "logs", "flow", "--follow", code=2).stderr
    assert json.loads(box.glia("job", "logs", "flow", "--json").stdout)["lines"][0]["step_id"]
