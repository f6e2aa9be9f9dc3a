"""Secrets of steps: they reach the step, and nothing that is written down."""

import json
import os
import signal
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

import golden  # noqa: E402
from keeperlink import Keeper, Link, wait_for  # noqa: E402

pytestmark = pytest.mark.sqlite_only("the keeper alone, without a node")

GOLDEN = golden.of(__file__)
BUILD = os.environ.get("GLIA_BUILD_RELEASE", os.path.join(ROOT, "build"))
BINARY = os.path.join(BUILD, "glia-keeper")
SECRET = "correct-horse-battery"


class Place:
    """A data folder with a keeper, and a connection to it."""

    def __init__(self, path):
        self.path = str(path)
        self.keeper = Keeper(BINARY, self.path)
        self.link = Link(self.path)

    def folder(self, attempt="s:attempt:1"):
        return os.path.join(self.path, "contexts", "default", "runs", "J1", attempt)

    def read(self, name, attempt="s:attempt:1"):
        with open(os.path.join(self.folder(attempt), name), "rb") as f:
            return f.read().decode()

    def log(self, attempt="s:attempt:1"):
        return [line.split(" ", 2)[2] for line in self.read("log", attempt).splitlines()]

    def run(self, script, secrets=("TOKEN=" + SECRET,), **kw):
        return self.link.run(["sh", "-c", script], secrets=list(secrets), **kw)

    def holding(self, text):
        """All files of the data folder in which this text stands."""
        found = []
        for folder, _, names in os.walk(self.path):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        if text.encode() in f.read():
                            found.append(os.path.relpath(path, self.path))
        return found


@pytest.fixture
def place(tmp_path):
    p = Place(tmp_path)
    yield p
    p.link.close()
    p.keeper.kill(signal.SIGTERM)


def test_a_secret_reaches_the_step(place):
    e = place.run('test "$TOKEN" = correct-horse-battery')
    assert (e["end"], e["exit_code"]) == ("exited", 0)


def test_a_secret_is_on_no_disk(place):
    e = place.run('echo "$TOKEN"; echo "$TOKEN" >&2; printf \'{"t":"%s"}\' "$TOKEN" > $GLIA_OUTPUT',
                  env=["OTHER=visible"], input='{"x":1}')
    assert e["output"] == b'{"t":"***"}'
    assert place.log() == ["***", "***"]
    assert place.read("output.json") == '{"t":"***"}'
    assert place.holding(SECRET) == []
    place.link.ack()
    place.link.list()
    assert place.holding(SECRET) == []


def test_a_secret_printed_in_pieces_is_found(place):
    e = place.run('for part in correct -hor se-bat tery; do printf "%s" "$part"; sleep 0.05; done;'
                  'echo; echo "<$TOKEN>"')
    assert e["exit_code"] == 0
    assert place.log() == ["***", "<***>"]


def test_what_only_begins_like_a_secret_is_in_the_log_at_the_end(place):
    place.run('printf "so: correct-horse"')
    assert place.log() == ["so: correct-horse"]


def test_both_streams_are_redacted_each_for_itself(place):
    place.run('printf correct-; printf correct- >&2; '
              'printf "horse-battery\\n" >&2; echo horse-battery')
    assert sorted(place.log()) == ["***", "***"]


def test_each_line_of_a_secret_is_redacted(place):
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\nab\n-----END KEY-----"
    place.run('printf "%s\\n" "$KEY"; echo "$KEY" | sed -n 2p; echo "$KEY" | sed -n 3p',
              secrets=["KEY=" + key])
    assert place.log() == ["***", "***", "ab"]


def test_the_last_line_of_stdout_is_an_output_without_secrets(place):
    e = place.run('printf \'{"token":"%s","pin":%s,"n":1}\\n\' "$TOKEN" "$PIN"',
                  secrets=["TOKEN=" + SECRET, "PIN=123456"])
    assert json.loads(e["output"]) == {"token": "***", "pin": "***", "n": 1}


def test_a_number_that_is_a_secret_leaves_the_output_a_document(place):
    e = place.run('echo "{\\"pin\\": $PIN, \\"other\\": 9${PIN}1, \\"n\\": 5}" > $GLIA_OUTPUT',
                  secrets=["PIN=123456"])
    assert json.loads(e["output"]) == {"pin": "***", "other": "***", "n": 5}


def test_an_output_that_is_not_taken_leaves_no_secret(place):
    e = place.run('head -c 2000000 /dev/zero > $GLIA_OUTPUT; echo $TOKEN >> $GLIA_OUTPUT')
    GOLDEN.says("too large", e["error"])
    assert place.holding(SECRET) == []


def test_an_output_that_grows_by_its_stars_is_not_too_large_for_anybody(place):
    """A number of four digits becomes a text of five bytes."""
    e = place.run('%s -c \'print("[" + ",".join(["1234"] * 200000) + "]")\' > $GLIA_OUTPUT'
                  % sys.executable, secrets=["PIN=1234"])
    GOLDEN.says("too large", e["error"])
    assert e["output"] == b""
    assert place.holding("1234,1234") == []


def test_the_form_a_secret_has_in_json_is_redacted(place):
    value = 'quo"te\\back\tgrün'
    e = place.run('%s -c \'import json, os; o = {"v": os.environ["V"]}; print(json.dumps(o)); '
                  'print(json.dumps(o, ensure_ascii=False), '
                  'file=open(os.environ["GLIA_OUTPUT"], "w"))\'' % sys.executable,
                  secrets=["V=" + value])
    assert e["exit_code"] == 0
    assert json.loads(e["output"]) == {"v": "***"}
    assert place.log() == ['{"v": "***"}']


def test_a_sentence_about_a_step_that_cannot_start_holds_no_secret(place):
    e = place.link.run(["frobnicate"], secrets=["PATH=/nowhere/" + SECRET])
    assert e["end"] == "not_executed"
    GOLDEN.says("not found", e["error"])
    assert place.holding(SECRET) == []


def test_a_secret_goes_before_a_variable_of_the_same_name(place):
    place.run('env | grep -c "^TOKEN="; test "$TOKEN" = correct-horse-battery && echo yes',
              env=["TOKEN=public"])
    assert place.log() == ["1", "yes"]


@pytest.mark.parametrize("name, secret", [
    ("short", "PIN=123"), ("empty", "PIN="), ("nameless", "=1234"), ("NUL", "PIN=12\x0034"),
    ("large", "BIG=" + "x" * 65537), ("reserved", "GLIA_JOB_ID=abcd"),
])
def test_a_secret_that_cannot_be_kept_is_refused(place, name, secret):
    r = place.link.start(["true"], secrets=[secret])
    assert r["status"] == "invalid"
    GOLDEN.says(f"secret, {name}", r["text"])


def test_a_long_log_with_secrets_has_none(place):
    place.run('i=0; while [ $i -lt 20000 ]; do echo "$i $TOKEN $TOKEN"; i=$((i+1)); done')
    lines = place.log()
    assert lines == ["%d *** ***" % i for i in range(20000)]


def test_hundreds_of_steps_with_the_same_secret_share_what_it_takes(place):
    key = "\n".join("line %d of a long key: %d" % (i, i * i) for i in range(2000))
    for i in range(100):
        r = place.link.start(["sleep", "60"], job="J%d" % i, secrets=["KEY=" + key])
        assert r["status"] == 0
    with open("/proc/%d/status" % place.keeper.pid) as f:
        rss = [int(line.split()[1]) for line in f if line.startswith("VmRSS")][0]
    assert rss < 32 * 1024
    for i in range(100):
        place.link.stop(job="J%d" % i)
    wait_for(lambda: all(x["state"] == "ended" for x in place.link.list()))
