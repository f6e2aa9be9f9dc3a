"""An executor's lease of slots lasts through its tries at once: between two of them nobody else
gets the slots, whatever dies; and a job that is held or ends leaves them to others."""

import golden
import pytest
from bundlework import ENDED, Bundle, Ran, Runner, item
from glianode import wait_for
from httpnode import serve

GOLDEN = golden.of(__file__)
POOL = "executor.gpu"


@pytest.fixture(name="narrow")
def make_narrow(box):
    """A node with a pool of one slot."""
    box.env["MN_EXECUTOR_POOL_CAPACITIES"] = "gpu=1"
    runner = Runner(box)
    serve(box)
    return runner


def shaky(tmp_path, backoff_ms, tries=2):
    """A worker that fails in a way that looks transient until its last try."""
    b = Bundle("shaky").worker("a", f"""
note("a", ["begins", time.time()])
with open(os.path.join(folder, "a")) as file:
    tries = sum("begins" in line for line in file)
note("a", ["ends", time.time()])
if tries < {tries}:
    sys.exit("connection reset")
say(x=1)
""", max_attempts=tries, retry_backoff_ms=backoff_ms, pool="gpu", output_message_type="done")
    b.flow["steps"][0]["control"] = {"retry": {"max_attempts": 1}}
    return b.ends("a").seed("a", {}).write(tmp_path / "shaky")


def plain(tmp_path, **config):
    b = Bundle("plain").worker("b", 'note("b", time.time()); say(x=1)', pool="gpu",
                               lease_queue_timeout_ms=120000, output_message_type="done", **config)
    b.flow["steps"][0]["control"] = {"retry": {"max_attempts": 1}}
    return b.ends("b").seed("b", {}).write(tmp_path / "plain")


def submit(runner, path, run_id):
    runner.box.glia("run", path, "--run-id", run_id, "--detach")


def wait_between(runner, run_id):
    """Until its first try has failed."""
    return wait_for("the next try", lambda: Ran(runner.box, run_id).of("message_retry_scheduled"))


def wait_end(box, run_id):
    return wait_for(f"the end of {run_id}",
                    lambda: box.json("job", "status", run_id)["status"] in ENDED)


def in_use(box):
    node = box.json("status")["node"]
    return node["pools"][POOL]["in_use"], node["steps_waiting"]


@item("B-10-4")
@pytest.mark.parametrize("killed", [False, True], ids=["alive", "killed"])
def test_nobody_else_gets_the_slots_between_two_attempts(narrow, tmp_path, killed):
    box = narrow.box
    submit(narrow, shaky(tmp_path, 2500 if killed else 400, 2 if killed else 3), "first")
    wait_between(narrow, "first")
    submit(narrow, plain(tmp_path), "second")
    if killed:
        box.started[-1].kill()
        box.started[-1].wait()
        serve(box)
    wait_end(box, "first")
    wait_end(box, "second")
    first, second = Ran(box, "first"), Ran(box, "second")
    assert first.statuses == {"a": "completed"} and second.statuses == {"b": "completed"}
    told = first.lines("a")
    assert len(told) == (4 if killed else 6), told
    assert second.lines("b")[0] > told[-1][1], (told, second.lines("b"))
    first.one("executor_lease_acquired", agent_id="a")
    first.one("executor_lease_released", agent_id="a")
    assert first.steps["a"]["attempt_count"] == 1
    wait_for("free slots", lambda: in_use(box) == (0, 0))


@item("B-10-4")
@pytest.mark.parametrize("how", ["pause", "cancel"])
def test_a_job_that_is_paused_or_ends_keeps_no_slots(narrow, tmp_path, how):
    box = narrow.box
    submit(narrow, shaky(tmp_path, 600000), "first")
    wait_between(narrow, "first")
    submit(narrow, plain(tmp_path), "second")
    wait_for("one who waits", lambda: in_use(box) == (1, 1))
    why = box.glia("why", "first").stdout
    assert "connection reset" in why, why
    step = box.json("why", "first", "a")["steps"]["a"]
    assert "retries_message" in [step["why_code"], *step["why_also"]], step
    assert GOLDEN.tells("kept slot", why), why
    why, first = box.glia("why", "second").stdout, Ran(box, "first")
    assert "waits_for_slots" in box.why_codes("second")
    assert GOLDEN.tells("used slot", why, [first.job_id]), why
    assert not first.of("executor_lease_released")

    box.glia("job", how, "first", code=None)
    wait_end(box, "second")
    first = Ran(box, "first")
    assert first.status["status"] in ("paused", "cancelled")
    first.one("executor_lease_released", agent_id="a")
    assert len(first.lines("a")) == 2
    wait_for("free slots", lambda: in_use(box) == (0, 0))


@item("B-2.2-16")
def test_who_finds_too_many_waiting_is_rejected(narrow, tmp_path):
    box = narrow.box
    submit(narrow, shaky(tmp_path, 600000), "first")
    wait_between(narrow, "first")
    path = plain(tmp_path, lease_max_queue_length=1)
    submit(narrow, path, "second")
    wait_for("one who waits", lambda: in_use(box) == (1, 1))
    third = narrow.run(path, run_id="third", code=1)
    assert third.of("executor_lease_rejected", agent_id="b"), third
    assert "lease_max_queue_length is 1" in third.status["reason"], third
    assert not third.lines("b")
    box.glia("job", "cancel", "first", code=None)
    wait_end(box, "second")
    assert Ran(box, "second").statuses == {"b": "completed"}
