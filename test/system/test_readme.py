"""What README.md tells to type works, word for word and in its order."""

import json
import os
import re
import subprocess
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import BUILD, ROOT, Box  # noqa: E402
from pages import sections, text_of, type_into_shell  # noqa: E402
from ports import give_back, take_port  # noqa: E402

PORT = "7379"  # in the page

# A person is slower than a script: what has happened by the time the next line is typed.
SLOWLY = r"""
until_true() { for _ in {1..600}; do if "$@"; then return; fi; sleep 0.1; done; return 1; }
ready() { glia status --json "$@" | grep -q '"ready":true'; }
fetches() { glia job status monday | grep -q "fetch.*running"; }
asked() { glia human list | grep -q ask; }
ended() { glia job result monday >/dev/null; }
answers() { redis-cli -p PORT ping >/dev/null 2>&1; }
"""
BEFORE = {"kill -9": "until_true fetches", "glia human list": "until_true asked",
          "glia job status": "until_true ended"}
AFTER = {"redis-server": "until_true answers", "glia serve &": "until_true ready",
         "glia serve --data-dir": "until_true ready --data-dir ~/glia-tour/two"}


@pytest.fixture(name="home")
def make_home():
    """A user's home with its data folder; short, because curl's socket has at most 107 letters."""
    with tempfile.TemporaryDirectory(prefix="glia-readme-") as folder:
        boxes = [Box(folder, data=f"{folder}/{name}", HOME=folder, GLIA_STORE="",
                     PATH=f"{BUILD}:{os.environ['PATH']}")
                 for name in ("glia-tour/data", "glia-tour/two")]
        yield boxes[0]
        for box in boxes:
            box.close()


def lines_of(text, port):
    """The commands of a part of the page, with what is waited for between them."""
    for line in re.findall(r"^    (?! )(.*)$", text.replace(PORT, str(port)), re.M):
        if line.startswith(("glia top", "curl")):  # for a terminal; below
            continue
        yield from (wait for words, wait in BEFORE.items() if line.startswith(words))
        yield line
        yield from (wait for words, wait in AFTER.items() if line.startswith(words))


def type_all(home, text):
    """Type the lines into a shell; gives back what they said."""
    port = take_port()
    try:
        return type_into_shell(home.env, SLOWLY.replace("PORT", str(port)) +
                               "\n".join(lines_of(text, port)) + "\n")
    finally:
        give_back(port)


@pytest.mark.sqlite_only("it begins in a data folder, and moves to Redis by itself")
def test_the_tutorial_leaving_it_running_and_more_than_one_machine(home):
    parts = sections(text_of("README.md"))
    tutorial, leave = parts["Tutorial"], parts["Leave it running"]
    home.write("glia-tour/fruit.yaml", re.search(r"```yaml\n(.*?)```", tutorial, re.S).group(1))
    said = type_all(home, re.sub(r"```.*?```", "", tutorial + leave, flags=re.S))
    assert re.search(r"```text\n(.*?)```", tutorial, re.S).group(1) in said
    assert "by tester\n" in said
    assert "migrated: " in said
    assert re.search(r"^two\.\w+\talive", said, re.M), said


def test_the_request_and_the_python_of_the_page(home):
    part = text_of("README.md").split("## Leave it running")[1]
    path, body = re.search(r"curl .* http://glia(/\S+) \\\n +-d '(.*)'\n", part).groups()
    home.start("serve")
    subprocess.run(["bash", "-c", SLOWLY + "until_true ready"], env=home.env, check=True)
    answer = home.ask("POST", path, body)
    assert (answer.status, answer.json["run_id"]) == (201, json.loads(body)["run_id"])
    program = re.search(r"```python\n(.*?)```", part, re.S).group(1)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env={**home.env, "PYTHONPATH": f"{ROOT}/sdk/python"}, check=True)
    assert done.stdout == "completed {'total': 3}\n"
