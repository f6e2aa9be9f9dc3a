"""A node with a low limit of open files reduces its pools and reports it."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import GLIA, wait_for  # noqa: E402


def test_slots_are_no_more_than_the_limit_of_open_files_allows(box):
    box.env["GLIA_POOLS"] = "default=8"
    flow = box.write("f.json", json.dumps({"steps": {"a": {
        "sh": f"ulimit -n > {box.folder}/limit; "
              f"until [ -e {box.folder}/go ]; do sleep 0.05; done"}}}))
    limited = f"ulimit -Sn 100 && ulimit -Hn 128 && exec {GLIA} run {flow}"
    with open(f"{box.folder}/err", "w", encoding="utf-8") as err:
        run = subprocess.Popen(["sh", "-c", limited],
                               cwd=box.folder, env=box.env, stdout=subprocess.DEVNULL, stderr=err)
    box.started.append(run)
    wait_for("the step", lambda: box.has("limit"))
    node = box.ask("GET", "/v1/node").json
    assert node["pools"]["default"]["slots"] == 1, node
    assert "limit of 128 open files" in node["warning"]
    assert "reduced to 1: default (8)" in node["warning"]
    assert node["warning"] in box.read("err")
    box.write("go", "")
    assert run.wait(60) == 0
    assert box.read("limit") == "100\n"  # a step has the limit that the command was given
    done = subprocess.run(["sh", "-c", f"ulimit -n 64; exec {GLIA} doctor"], cwd=box.folder,
                          env=box.env, capture_output=True, text=True, check=False)
    assert "enough for 1 running steps" in done.stdout + done.stderr
