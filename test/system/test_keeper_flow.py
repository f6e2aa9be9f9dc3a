"""Flows with secrets, through the whole program: the step knows them, nothing else does."""

import os
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import golden  # noqa: E402

from glianode import GLIA, Box, keepers, wait_for  # noqa: E402

GOLDEN = golden.of(__file__)
SECRET = "correct-horse-battery"


@pytest.fixture
def box(tmp_path):
    b = Box(tmp_path, TOKEN_OF_THE_NODE=SECRET, SHORT="abc")
    yield b
    b.close()


def run(box, step, code=0):
    """Run one step (lines of YAML), and give back its record."""
    lines = "".join("    %s\n" % line for line in step)
    box.write("flow.yaml", "name: secretive\nsteps:\n  only:\n" + lines)
    return box.json("run", "flow.yaml", code=code)["workflow_state"]["steps"]["only"]


def holding(box, text):
    found = []
    for folder, _, names in os.walk(box.data):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                with open(path, "rb") as file:
                    if text.encode() in file.read():
                        found.append(os.path.relpath(path, box.data))
    return found


def test_a_secret_is_known_to_the_step_and_in_no_file(box):
    secret = box.write("secret", "-----BEGIN-----\nline-of-a-key\n-----END-----\n", mode=0o600)
    step = run(box, [
        "sh: |",
        '  test "${TOKEN%%-*}" = correct || exit 9',
        '  echo "token: $TOKEN"; echo "$KEY"; echo "$KEY" | sed -n 2p >&2',
        '  echo "{\\"token\\": \\"$TOKEN\\"}" > "$GLIA_OUTPUT"',
        "env:",
        '  TOKEN: {secret: "env:TOKEN_OF_THE_NODE"}',
        '  KEY: {secret: "file:%s"}' % secret])
    assert step["status"] == "completed"
    assert step["output"] == {"token": "***"}
    job = box.jobs()[0]["job_id"]
    log = box.glia("job", "logs", job).stdout
    assert "token: ***" in log and "key" not in log
    assert holding(box, SECRET) == []
    assert holding(box, "line-of-a-key") == []


@pytest.mark.parametrize("reference", ["env:NOT_THERE", "file:/not/there", "env:SHORT"])
def test_a_secret_that_cannot_be_used_fails_the_step_with_its_reference(box, reference):
    step = run(box, ["sh: touch %s/ran" % box.folder, "env:",
                     '  TOKEN: {secret: "%s"}' % reference], code=1)
    assert step["status"] == "failed"
    GOLDEN.says(f"secret {reference}", step["terminal_reason"])
    assert not box.has("ran")


def test_a_step_whose_output_is_no_json_keeps_its_folder(box):
    step = run(box, ["sh: 'touch left; echo oops > $GLIA_OUTPUT'"], code=1)
    assert "not valid JSON" in step["terminal_reason"]
    job = box.jobs()[0]["job_id"]
    folder = os.path.join(box.data, "contexts", "default", "runs", job, "only:attempt:1")
    assert os.listdir(os.path.join(folder, "work")) == ["left"]


def test_a_secret_is_on_no_command_line(box):
    box.write("flow.yaml", "name: secretive\nsteps:\n  only:\n    sh: 'touch %s/ready; sleep 30'\n"
                           "    env:\n      T: {secret: \"env:TOKEN_OF_THE_NODE\"}\n" % box.folder)
    process = box.start("run", "flow.yaml")
    wait_for("the step", lambda: box.has("ready"))
    assert list(keepers(box.data))
    shown = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert GLIA in shown and SECRET not in shown
    process.terminate()
