"""Values from outside never become part of what is run: every root of a reference, in every place
where one may stand, with values that try to break out. Each value must arrive as it was, or the
step must fail with a sentence; in no case does a second expansion happen, or the trap go off."""

import json
import os
import re
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import GLIA, Box, wait_for  # noqa: E402
from httpnode import JOBS, serve, submit, wait_end  # noqa: E402

# What each value tries to do is make the file TRAP.
TRAP = "trap-was-sprung"
ARGUMENT_MAX = 131071
QUESTION_MAX = 512

VALUES = {
    "a command": f"$(touch {TRAP})",
    "a command in backquotes": f"`touch {TRAP}`",
    "an end of single quotes": f"'; touch {TRAP}; '",
    "an end of double quotes": f'"; touch {TRAP}; "',
    "new lines": f"\n\ntouch {TRAP}\n",
    "an end of a python text": f'"""\nopen("{TRAP}", "w")\n"""',
    "an end of a python expression": f')\nopen("{TRAP}", "w")\n(',
    "an index of an array": f"a[$(touch {TRAP})]",
    "a reference to another value": "${steps.make.output.secret}",
    "a reference to itself": "${inputs.value}",
    "an escaped reference": "$${inputs.value}",
    "a variable of ours": "${GLIA_REF_1}$GLIA_REF_2",
    "a variable of the shell": "$HOME ${PATH:-x} $0 $$",
    "a backslash at the end": "\\",
    "formats": "%s%n%99999d",
    "an option": "--help",
    "patterns and blanks": " * ? [a-z] ~ ",
    "an end of a here-document": f"END\ntouch {TRAP}\nEND",
    "a condition": '" or true or "',
    "signs that steer a terminal": "\x1b]0;title\x07\x1b[2J\x7f\u009b31m\r",
    "letters of the world": "ä \u202e \U0001f600 \u2028",
    "an empty text": "",
    "almost too much": "x" * (ARGUMENT_MAX - 64),
}

ARGUMENTS = 'import json, os, sys; json.dump(sys.argv[1:], open(os.environ["GLIA_OUTPUT"], "w"))'
MAKE = """import json, os
value = ${inputs.value}
json.dump({"value": value, "secret": "hidden", "list": [value, {"inner": value}]},
          open(os.environ["GLIA_OUTPUT"], "w"))
"""
IN_PYTHON = """import json, os
json.dump([${steps.make.output.value}, ${inputs.value}, ${steps.make.output},
           ${job.run_id}], open(os.environ["GLIA_OUTPUT"], "w"))
"""
IN_ENV = """import json, os
json.dump([os.environ["A"], os.environ["B"]], open(os.environ["GLIA_OUTPUT"], "w"))
"""
HERE = """exec "$PYTHON" -SEc "$ARGUMENTS" "$(cat <<END
<${inputs.value}>
END
)" "`echo "<${job.run_id}>"`"
"""

# Where a value arrives whole; the values of A and so on come from the flow, not from outside.
FLOW = {
    "name": "injection",
    "inputs": {"value": {"type": "any"}},
    "steps": {
        "make": {"python": MAKE},
        "sh": {"needs": "make", "sh":
               'exec "$PYTHON" -SEc "$ARGUMENTS" "${steps.make.output.value}" "${inputs.value}"'},
        "here": {"needs": "make", "sh": HERE},
        "unquoted": {"needs": "make", "sh": "set -f; printf '%s\\n' ${inputs.value} >/dev/null"},
        "run": {"needs": "make", "run": [sys.executable, "-SEc", ARGUMENTS,
                                         "${steps.make.output.value}", "${inputs.value}"]},
        "python": {"needs": "make", "python": IN_PYTHON},
        "env": {"needs": "make", "python": IN_ENV,
                "env": {"A": "${steps.make.output.value}", "B": "${inputs.value}"}},
        "when": {"needs": "make", "noop": True,
                 "when": '${steps.make.output.value} == ${inputs.value} and '
                         '${inputs.value} in [${job.run_id}, ${inputs.value}]'},
        "when_not": {"needs": "make", "noop": True,
                     "when": '${inputs.value} == "no such text" or not exists ${inputs.value}'},
        "each_sh": {"needs": "make", "foreach": "${steps.make.output.list}", "sh":
                    'exec "$PYTHON" -SEc "$ARGUMENTS" "${job.item}" "${job.index}"'},
        "each_python": {"needs": "make", "foreach": "${steps.make.output.list}", "python":
                        IN_PYTHON.replace("${inputs.value}", "${job.item}")},
        "ask": {"needs": "make", "approval": "take ${inputs.value}?"},
    },
}
SHELL_ENV = {"PYTHON": sys.executable, "ARGUMENTS": ARGUMENTS}
for _id in ("sh", "here", "each_sh"):
    FLOW["steps"][_id]["env"] = SHELL_ENV


@pytest.fixture(name="node", scope="module")
def make_node(tmp_path_factory):
    box = Box(tmp_path_factory.mktemp("injection"))
    serve(box)
    yield box
    box.close()


def sprung(folder):
    return [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names
            if name == TRAP]


def decide(node, job):
    """A person says yes; gives back what was asked."""
    def waiting():
        requests = node.ask("GET", "/v1/contexts/default/human").json["requests"]
        return [r for r in requests if r["job_id"] == job]

    request = wait_for("the question", waiting)[0]
    answer = node.ask("POST", f"{JOBS}/{job}/steps/{request['step_id']}/respond",
                      {"decision": "approve"})
    assert answer.status == 200, answer.body
    return request["reason"]


def output(node, record):
    """What a step left; one that is too large for a status is asked for by itself."""
    if "output_ref" not in record:
        return record.get("output")
    found = node.ask("GET", record["output_ref"]).json["workflow_state"]["steps"]
    return found[record["step_id"]]["output"]


def outputs(node, document):
    return {step: output(node, record)
            for step, record in document["workflow_state"]["steps"].items()}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_a_value_arrives_as_it_is_wherever_it_is_used(node, value):
    job = submit(node, FLOW, inputs={"value": value})
    asked = decide(node, job)
    assert asked == f"take {value}?" or len(value) > QUESTION_MAX
    document = wait_end(node, job)
    assert document["status"] == "completed", document.get("reason")
    found = outputs(node, document)
    made = {"value": value, "secret": "hidden", "list": [value, {"inner": value}]}
    assert found["make"] == made
    assert found["sh"] == found["run"] == found["env"] == [value, value]
    assert found["here"] == [f"<{value}>", f"<{job}>"]
    assert found["python"] == [value, value, made, job]
    assert found["each_sh"][0] == [value, "0"]
    assert json.loads(found["each_sh"][1][0]) == {"inner": value}
    assert found["each_python"] == [[value, item, made, job] for item in made["list"]]
    steps = document["workflow_state"]["steps"]
    assert (steps["when"]["status"], steps["when_not"]["status"]) == ("completed", "skipped")
    assert not sprung(node.folder)


@pytest.mark.parametrize("value, reason", [
    ("a\0b", "NUL byte"),
    ("x" * (ARGUMENT_MAX + 1), "more than 131071 bytes"),
    ("x" * 160000, "more than 131071 bytes"),
], ids=["a NUL byte", "a byte too much", "far too much"])
def test_a_value_that_no_text_can_hold_fails_the_step_and_says_so(node, value, reason):
    steps = {name: {**step, "on_failure": "continue"} for name, step in FLOW["steps"].items()}
    document = wait_end(node, submit(node, {**FLOW, "steps": steps}, inputs={"value": value}))
    records = document["workflow_state"]["steps"]
    for step in ("sh", "here", "unquoted", "run", "env", "ask"):
        assert records[step]["status"] == "partial", step
        assert reason in records[step]["terminal_reason"], step
    # Where it is no text, it is no matter.
    assert outputs(node, document)["python"][:2] == [value, value]
    assert records["when"]["status"] == "completed"


def lead_to_where(path):
    return {"name": "places", "inputs": {"value": {"type": "any"}}, "steps": {
        "in": {"cwd": path, "sh": "pwd"}}}


@pytest.mark.parametrize("value", [f"$(touch {TRAP})", "`pwd`", "${inputs.value}", "a\nb", "*"])
def test_a_folder_is_named_as_it_is(node, value):
    os.makedirs(os.path.join(node.folder, "places", value))
    flow = lead_to_where(os.path.join(node.folder, "places", "${inputs.value}"))
    flow["steps"]["in"]["run"] = [sys.executable, "-c", "import json, os; json.dump("
                                  "os.getcwd(), open(os.environ['GLIA_OUTPUT'], 'w'))"]
    del flow["steps"]["in"]["sh"]
    document = wait_end(node, submit(node, flow, inputs={"value": value}))
    assert outputs(node, document)["in"] == os.path.join(node.folder, "places", value)
    assert not sprung(node.folder)


@pytest.mark.parametrize("value", ["tmp", "./tmp", "", "~", None])
def test_a_folder_that_is_not_absolute_is_refused(node, value):
    document = wait_end(node, submit(node, lead_to_where("${inputs.value}"),
                                     inputs={"value": value}))
    step = document["workflow_state"]["steps"]["in"]
    assert step["status"] == "failed"
    assert "absolute" in step["terminal_reason"], step["terminal_reason"]


def test_a_program_that_comes_from_outside_is_one_word(node):
    flow = {"inputs": {"value": "x"}, "steps": {"a": {"run": ["${inputs.value}", "x"]}}}
    for value in (f"touch {TRAP}", f"sh -c 'touch {TRAP}'", "", f"$(touch {TRAP})"):
        document = wait_end(node, submit(node, flow, inputs={"value": value}))
        assert document["status"] == "failed" and document["reason"], value
    assert not sprung(node.folder)


def test_keys_of_limits_and_times_to_wait_are_only_text(node):
    def step(**more):
        return {"inputs": {"value": "x"}, "steps": {"a": {"on_failure": "continue", **more}}}

    key = step(noop=True, concurrency={"key": "k-${inputs.value}", "max": 1})
    for value in (f"$(touch {TRAP})", "${inputs.value}", "a\nb\0"[:3], "x" * 500):
        document = wait_end(node, submit(node, key, inputs={"value": value}))
        assert document["workflow_state"]["steps"]["a"]["status"] == "completed", value
    document = wait_end(node, submit(node, key, inputs={"value": "x" * 513}))
    assert "512" in document["workflow_state"]["steps"]["a"]["terminal_reason"]
    for field in ("sleep", "until"):
        for value in ("$(date)", "1s; 1s", "${job.submitted_at}", "-1s", "1e999", "9" * 99, "",
                      "0001-01-01T00:00:00Z' or '1"):
            flow = step(**{field: "${inputs.value}"})
            document = wait_end(node, submit(node, flow, inputs={"value": value}))
            reason = document["workflow_state"]["steps"]["a"]["terminal_reason"]
            assert reason.startswith(f"{field}: "), (field, value, reason)


# ---- the ways in ----

ECHO = {"inputs": {"value": {"type": "string", "required": True}}, "steps": {
    "a": {"run": [sys.executable, "-c", ARGUMENTS, "${inputs.value}", "${job.run_id}"]}}}
COMMAND_LINE = {name: text for name, text in VALUES.items() if len(text) < 1000}


def test_the_command_line_takes_values_as_they_are(node):
    values = {f"v{i}": value for i, value in enumerate(COMMAND_LINE.values())}
    flow = node.write("many.json", json.dumps({"inputs": {name: "" for name in values}, "steps": {
        "a": {"run": [sys.executable, "-c", ARGUMENTS, *(f"${{inputs.{n}}}" for n in values)]}}}))
    words = [word for name, value in values.items() for word in ("--set", f"{name}={value}")]
    document = node.json("run", flow, *words)
    assert outputs(node, document)["a"] == list(values.values())
    inputs = node.write("inputs.json", json.dumps(values))
    document = node.json("run", flow, "--input-file", inputs)
    assert outputs(node, document)["a"] == list(values.values())
    assert not sprung(node.folder)


@pytest.mark.parametrize("run_id", [
    f"$(touch {TRAP})", "`x`", "a b", "a'b", 'a"b', "${job.id}", "a;b", "%2e%2e", "..", "*"])
def test_a_run_id_is_taken_as_it_is_or_refused(node, run_id):
    answer = node.ask("POST", JOBS, {"flow": ECHO, "inputs": {"value": "x"}, "run_id": run_id})
    if answer.status == 201:
        document = wait_end(node, answer.json["job_id"])
        assert outputs(node, document)["a"] == ["x", run_id]
    else:
        assert answer.status == 400 and answer.json["error"]["reason"] == "run_id_invalid"
    assert not sprung(node.folder)


def test_a_run_id_is_not_the_id_of_a_job(node):
    """It could not be found again: whoever asked for it would ask for the job with that id."""
    answer = node.ask("POST", JOBS, {"flow": ECHO, "inputs": {"value": "x"},
                                     "run_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"})
    assert answer.status == 400 and answer.json["error"]["reason"] == "run_id_like_id"


@pytest.mark.parametrize("body", [
    b'"\xff\xfe"', b'"\xc0\xaf"', b'"\xed\xa0\x80"', b'"\\ud800"', b'"\xf4\x90\x80\x80"', b'"a\nb"',
    b'"\x00"'])
def test_text_that_is_no_unicode_does_not_come_in(node, body):
    """Not by the API, not by a file, not by the command line."""
    document = b'{"flow": ' + json.dumps(ECHO).encode() + b', "inputs": {"value": ' + body + b'}}'
    answer = node.ask("POST", JOBS, document)
    assert answer.status == 400, answer.body
    assert answer.json["error"]["code"] == "invalid"
    with open(os.path.join(node.folder, "inputs.json"), "wb") as file:
        file.write(b'{"value": ' + body + b'}')
    flow = node.write("echo.json", json.dumps(ECHO))
    done = node.glia("run", flow, "--input-file", "inputs.json", code=2)
    assert done.stderr


@pytest.mark.parametrize("value", [b"\xff\xfe", b"a\xc0\xafb"])
def test_bytes_that_are_no_unicode_do_not_come_from_the_command_line(node, value):
    flow = node.write("echo.json", json.dumps(ECHO))
    done = subprocess.run([GLIA, "run", flow, "--set", b"value=" + value], cwd=node.folder,
                          env=node.env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert done.stderr.decode()


@pytest.mark.parametrize("written", [r'{"v": "\377"}', r'{"v": "\303\050"}', r'{"v": "\\ud800"}'])
def test_an_output_that_is_no_unicode_is_none(node, written):
    """A step cannot hand on what other steps, the store and the API could not hold."""
    flow = {"steps": {"a": {"sh": f"printf '{written}' > \"$GLIA_OUTPUT\""}}}
    document = wait_end(node, submit(node, flow))
    step = document["workflow_state"]["steps"]["a"]
    assert step["status"] == "failed" and "output" in step["terminal_reason"], step


# ---- the ways out ----

def test_a_question_that_is_too_long_says_how_much_is_missing(node):
    """Nobody agrees to what stands behind the end of what is shown."""
    flow = {"name": "long", "inputs": {"value": "x"}, "steps": {"ask": {"approval":
            "really${inputs.value}?"}}}
    for value in ("\u00e9" * 400, "\U0001f600" * 200, "x" * 100000):
        whole = f"really{value}?"
        asked = decide(node, submit(node, flow, inputs={"value": value}))
        shown, _, rest = asked.partition(" [...")
        assert whole.startswith(shown) and len(asked.encode()) <= QUESTION_MAX
        assert re.fullmatch(rf" {len(whole.encode())} [a-z ]+\]", rest), rest


def test_what_is_printed_neither_steers_a_terminal_nor_breaks_a_table(node):
    evil = "x\x1b]0;pwn\x07\x1b[2Jy\tz\nnew\u009b31m\rline"
    flow = {"name": "print", "inputs": {"value": "x"}, "steps": {
        "ask": {"approval": "say ${inputs.value}"},
        "bad": {"sleep": "${inputs.value}", "on_failure": "continue"}}}
    job = submit(node, flow, inputs={"value": evil})
    wait_for("the question", lambda: node.step(job, "ask")["status"] == "blocked")
    for command in (("human", "list"), ("job", "status", job), ("why", job), ("job", "events", job),
                    ("job", "list")):
        done = node.glia(*command)
        for text in (done.stdout, done.stderr):
            assert not set(text) & set("\x1b\x07\u009b\r"), (command, text)
        columns = {line.count("\t") for line in done.stdout.splitlines()}
        assert len(columns) == 1, (command, done.stdout)
    node.glia("job", "cancel", job)
