"""Why a bundle's job stands as it does: one true sentence, from the real thing."""

import os
import re
import signal
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402
from bundlework import Bundle  # noqa: E402
from glianode import Box, keepers, wait_for  # noqa: E402
from httpnode import JOBS, serve  # noqa: E402

GOLDEN = golden.of(__file__)


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path, MN_RUNS_ROOT=str(tmp_path / "runs"), MN_EXECUTOR_MAX_CONCURRENCY="1")
    yield box
    box.close()


def start(box, bundle):
    serve(box)
    box.glia("run", bundle.write(os.path.join(box.folder, "bundle")), "--run-id", "one",
             "--detach")


def why(box):
    return box.json("why", "one")["why"]


def of(box, name):
    """What is said of a step."""
    step, = box.json("why", "one", name)["steps"].values()
    return step["why"]


def code_of(box, name):
    """The codes of it."""
    step, = box.json("why", "one", name)["steps"].values()
    return [step["why_code"], *step.get("why_also", [])]


def says(box, key, hide=()):
    try:
        wait_for(key, lambda: GOLDEN.tells(key, why(box), hide))
    except AssertionError as error:
        raise AssertionError(f"it says: {why(box)}") from error


def test_who_waits_for_a_message_and_who_for_slots(box):
    hold = "wait_file('go')\nsay(complete_step=True)"
    b = Bundle("why").worker("first", hold, safe_to_retry=True)
    b.worker("second", hold, safe_to_retry=True)
    b.worker("third", safe_to_retry=True).ends("first")
    start(box, b.edge("first", "third", "never").seed("first", {}).seed("second", {}))
    says(box, "runs", [re.compile(r"(?<=')\w+(?=')")])
    slow = wait_for("a queue", lambda: [n for n in ("first", "second") if "slot" in of(box, n)])[0]
    assert code_of(box, slow) == ["waits_for_agent", "waits_for_slots"]
    assert code_of(box, "third") == ["waits_for_message"]
    assert box.ask("GET", f"{JOBS}/one/why?step=sink").json["steps"][0]["why_code"] == \
        "waits_for_messages"
    box.write("runs/one/go", "")


def test_a_completion_that_came_too_early_is_told(box):
    b = Bundle("why").worker("first", "say(complete_step=True)", output_message_type="done",
                             safe_to_retry=True)
    b.worker("late", "wait_file('go')\nsay(complete_step=True)", safe_to_retry=True).ends("first")
    start(box, b.seed("first", {}).seed("late", {}))
    says(box, "late")
    assert box.why_codes("one") == ["running", "completion_early"]
    box.write("runs/one/go", "")
    wait_for("its end", lambda: box.why_code("one") == "completed")


def test_a_service_waits_for_messages(box):
    b = Bundle("why", policies={"job_type": "service"})
    b.worker("echo", "say(x=1)", step=False, output_message_type=None, safe_to_retry=True)
    start(box, b.seed("echo", {}))
    says(box, "service")
    assert box.why_code("one") == "waits_for_messages"
    assert box.json("job", "status", "one")["status"] == "running"
    assert box.json("job", "status", "one")["why"] == why(box)


def test_a_step_that_is_tried_again_says_when(box):
    b = Bundle("why").worker("bad", "sys.exit(3)", safe_to_retry=True, control={
        "retry": {"max_attempts": 3, "backoff_seconds": 50}}).ends("bad")
    start(box, b.seed("bad", {}))
    says(box, "retries")
    assert re.search(r" at 20\d\d-.* \(2 of 3\)", why(box)), why(box)
    assert code_of(box, "bad") == ["retries"]


def test_a_review_says_how_to_decide_and_that_is_how(box):
    b = Bundle("why").worker("pay", "note('started', 1)\nif os.path.exists(f'{folder}/go'): "
                             "say(complete_step=True)\nelse: wait_file('never', 60)")
    b.flow["nodes"][0]["config"]["output_message_type"] = "done"
    start(box, b.ends("pay").seed("pay", {}))
    wait_for("the worker", lambda: os.path.exists(f"{box.folder}/runs/one/started"))
    for pid in list(keepers(box.data)):
        os.kill(pid, signal.SIGKILL)
    job = box.json("job", "status", "one")["job_id"]
    says(box, "review", [job])
    assert code_of(box, "pay") == ["waits_for_agent", "waits_for_review"]
    box.write("runs/one/go", "")
    box.glia("human", "respond", job, "pay", "--decision", "rerun")
    wait_for("its end", lambda: box.why_code("one") == "completed")


def test_a_pool_has_the_name_its_bundle_knows(box):
    b = Bundle("why").worker("a", "wait_file('go')", safe_to_retry=True, pool="io")
    b.worker("b", "say(x=1)", safe_to_retry=True, pool="io", output_message_type="done").ends("b")
    box.env["MN_EXECUTOR_POOL_CAPACITIES"] = "io=1"
    start(box, b.seed("a", {}).seed("b", {}))
    slow = wait_for("one that waits", lambda: [
        name for name in "ab" if "waits_for_slots" in code_of(box, name)])[0]
    assert re.search(r" pool 'io' \(1 of 1 .*'@[ab]'", of(box, slow)), of(box, slow)
    assert "executor.io" not in box.glia("why", "one").stdout
    box.write("runs/one/go", "")
    wait_for("its end", lambda: box.why_code("one") == "completed")
