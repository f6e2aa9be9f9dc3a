"""What steps print cannot steer the terminal of whoever looks at it."""

import json
import os
import pty
import subprocess
import sys
import termios

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from bundlework import Bundle  # noqa: E402
from glianode import GLIA, SECONDS_MAX  # noqa: E402

# A title, the clipboard, a colour, C1 as UTF-8 and as a bare byte, a carriage return, DEL, an
# override of the direction of writing; and what must stay: a tab, an umlaut, a dash.
EVIL = (b"A\x1b]0;title\x07B\x1b]52;c;ZXZpbA==\x07C\x1b[31mD\xc2\x9b2JE\x9b2JF\rG\x7fH"
        b"\xe2\x80\xaeI\x00J\tK\xc3\xbc\xe2\x80\x94L")
SHOWN = ("A\\x1b]0;title\\x07B\\x1b]52;c;ZXZpbA==\\x07C\\x1b[31mD\\u009b2JE\\x9b2JF\\x0dG\\u007fH"
         "\\u202eI\\x00J\tK\u00fc\u2014L").encode()
SAY = "import sys; sys.%s.buffer.write(bytes.fromhex('" + EVIL.hex() + "') + b'\\n')"
PRINT = ["/usr/bin/python3", "-c", SAY % "stdout"]
PRINT_ERR = ["/usr/bin/python3", "-c", SAY % "stderr"]


def on_terminal(box, *args, env=None):
    """What a terminal gets. It changes nothing: no \\r before \\n, no echo."""
    main, end = pty.openpty()
    modes = termios.tcgetattr(end)
    modes[1] &= ~termios.OPOST
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(end, termios.TCSANOW, modes)
    process = subprocess.Popen([GLIA, *args], env=dict(box.env, NO_COLOR="1", **(env or {})),
                               cwd=box.folder, stdin=end, stdout=end, stderr=end)
    os.close(end)
    seen = b""
    try:
        while True:
            seen += os.read(main, 65536)
    except OSError:
        pass  # the other end is closed
    os.close(main)
    process.wait(SECONDS_MAX)
    return seen


def in_pipe(box, *args):
    return subprocess.run([GLIA, *args], env=box.env, cwd=box.folder, capture_output=True,
                          timeout=SECONDS_MAX, check=False).stdout


@pytest.mark.parametrize("command", [PRINT, PRINT_ERR], ids=["stdout", "stderr"])
def test_run_shows_control_characters_and_does_not_send_them(box, command):
    seen = on_terminal(box, "run", "--", *command)
    assert SHOWN + b"\n" in seen
    assert EVIL not in seen and b"\x1b]" not in seen
    assert EVIL + b"\n" in on_terminal(box, "run", "--raw", "--", *command)


def test_a_pipe_gets_what_the_step_printed(box):
    assert in_pipe(box, "run", "--", *PRINT) == EVIL + b"\n"


def test_logs_show_control_characters_and_do_not_send_them(box):
    job = box.json("run", "--", *PRINT)["job_id"]
    step = next(iter(box.json("job", "status", job)["workflow_state"]["steps"]))
    for more in ([], [step, "--follow"], ["--timestamps"]):
        seen = on_terminal(box, "job", "logs", job, *more)
        assert seen.endswith(SHOWN + b"\n") and b"\x1b" not in seen and b"\r" not in seen, more
    assert on_terminal(box, "job", "logs", job, "--raw") == EVIL + b"\n"
    assert in_pipe(box, "job", "logs", job) == EVIL + b"\n"
    seen = on_terminal(box, "job", "logs", job, "--json")
    assert b"\\u009b2J" in seen and b"\xc2\x9b" not in seen and b"\x1b" not in seen


def test_json_stays_json_on_a_terminal(box):
    """C1 and DEL may stand in JSON as they are; a terminal obeys them all the same."""
    script = r"""print('{"x": "\u009b2J\u007f\u202e"}')"""
    job = box.json("run", "--", "/usr/bin/python3", "-X", "utf8", "-c", script)["job_id"]
    want = b'"\\u009b2J\\u007f\\u202e"'
    for args in (["job", "result", job], ["job", "result", job, "--json"],
                 ["job", "status", job, "--json"]):
        seen = on_terminal(box, *args)
        assert want in seen, args
        assert b"\xc2\x9b" not in seen and b"\x7f" not in seen and b"\xe2\x80\xae" not in seen


def test_errors_and_events_do_not_steer_the_terminal(box):
    evil = "no\x1b]0;title\x07such"
    seen = on_terminal(box, "job", "status", evil)
    assert b"\x1b" not in seen and b"\\x1b]0;title\\x07" in seen
    flow = box.write("evil.json", json.dumps({"steps": {"a": {"run": ["/" + evil]}}}))
    job = box.json("run", flow, code=1)["job_id"]
    assert b"\\x1b]0;title" in on_terminal(box, "job", "status", job)  # the reason names it
    for args in (["job", "events", job], ["why", job], ["job", "list"], ["job", "status", job]):
        assert b"\x1b" not in on_terminal(box, *args), args


@pytest.mark.parametrize("name", ["flow.json", "flow.yaml"])
def test_a_flow_file_does_not_steer_the_terminal(box, name):
    """Its keys stand in the path of an error."""
    flow = box.write(name, json.dumps({"steps": {"a": {"noop": True, "no\x1b]0;t\x07such": 1}}}))
    for args in (["validate", flow], ["run", flow]):
        seen = on_terminal(box, *args)
        assert b"steps.a.no\\x1b]0;t\\x07such: " in seen, seen
        assert b"\x1b]" not in seen and b"\x07" not in seen, seen


def test_events_that_a_worker_names_do_not_steer_the_terminal(box, tmp_path):
    say = r"""say(events=[{"type": "x\u009b2J\u007f\u202ey", "payload": {}}])"""
    b = Bundle("evil").worker("a", say, output_message_type="done").ends("a").seed("a", {})
    job = box.json("run", str(b.write(tmp_path / "evil")))["job_id"]
    seen = on_terminal(box, "job", "events", job)
    assert b"x\\u009b2J\\u007f\\u202ey" in seen, seen
    assert b"\xc2\x9b" not in seen and b"\x7f" not in seen and b"\xe2\x80\xae" not in seen
