"""What the documents say is so."""

import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import ROOT, wait_for  # noqa: E402
from pages import text_of  # noqa: E402


def test_the_flow_of_the_readme_runs(box):
    flow = re.search(r"```yaml\n(.*?)```", text_of("README.md"), re.S).group(1)
    run = box.start("run", box.write("fruit.yaml", flow), "--set", "market=south; exit 1")
    wait_for("the question", lambda: box.glia("human", "list").stdout)
    job = box.glia("human", "list").stdout.split("\t")[0]
    box.glia("human", "respond", job, "ask", "--decision", "approve")
    assert run.wait(60) == 0
    assert box.step(job, "total")["output"] == {"total": 8}
    assert box.step(job, "weigh")["output"] == [{"weighed": "apples"}, {"weighed": "pears"}]
    said = box.glia("job", "logs", job, "buy").stdout
    words = said.split()
    assert {"south;", "1,", "tester"} <= set(words) and said.count("\n") == 1, said


def test_the_first_bundle_of_its_page_runs(box):
    page = text_of("docs/bundles.md").split("## A first bundle")[1].split("\n## ")[0]
    for path, content in re.findall(r"`(hello/[a-z./]+)`:\n\n```\w+\n(.*?)```", page, re.S):
        os.makedirs(os.path.dirname(os.path.join(box.folder, path)), exist_ok=True)
        box.write(path, content)
    wanted = re.search(r"\$ glia validate hello\n\$ glia (run .*?)\n\$ glia (job .*?)\n(.*?)```",
                       page, re.S)
    assert "is valid" in box.glia("validate", "hello").stderr
    box.glia(*wanted.group(1).split())
    assert box.glia(*wanted.group(2).split()).stdout == wanted.group(3).replace("  ", "\t")


def commands(box):
    """The names in the table of commands."""
    names = re.findall(r"^  glia ((?:[a-z-]+ )*[a-z-]+) {2,}", box.glia("help").stdout, re.M)
    assert len(names) >= 28 and "job status" in names and "why" in names
    return names


def section_of(page, name):
    """The part of the page that is about a command."""
    found = re.search(rf"^## [^\n]*\bglia {name}\b.*?(?=^## |\Z)", page, re.M | re.S)
    assert found, f"docs/cli.md has nothing about glia {name}"
    return found.group(0)


def test_every_command_and_option_has_its_place_in_the_page_of_commands(box):
    page = text_of("docs/cli.md")
    common = set(re.findall(r"^\| `(--[\w-]+)", page, re.M))
    for name in commands(box):
        section = section_of(page, name)
        refers = re.search(r"see \[(\w+\.md)\]", section)
        there = section + (text_of(f"docs/{refers.group(1)}") if refers else "")
        for option in re.findall(r"^  (--[\w-]+)", box.glia("help", *name.split()).stdout, re.M):
            assert option in common or option in there, (name, option)


def test_the_page_of_commands_speaks_of_no_other_commands(box):
    names = commands(box)
    for title in re.findall(r"^## (.*)$", text_of("docs/cli.md"), re.M):
        for words in re.findall(r"glia ((?:[a-z-]+ ?)+)", title):
            assert any(words.strip().startswith(name) for name in names), words


def test_every_field_of_jobs_and_steps_is_in_the_page_of_the_api():
    page = text_of("docs/api.md")
    source = text_of("src/model/job.c")
    fields = [m.group(1) for m in re.finditer(r"^    [JS][FE]\((\w+), [^\n]*", source, re.M)
              if "STORE_ONLY" not in m.group(0)]
    assert len(fields) > 30
    for field in fields:
        assert f"`{field}`" in page, field


def test_every_event_and_error_is_in_the_page_of_the_api():
    page = text_of("docs/api.md")
    events = set()
    for folder, _, names in os.walk(os.path.join(ROOT, "src/core")):
        for name in names:
            events |= set(re.findall(r'"((?:job|workflow_step|human_input)_\w+)"',
                                     text_of(os.path.join(folder, name))))
    events -= {"job_id", "job_ends", "job_files"}  # a field, and a call and a stage of components
    assert len(events) > 10
    for event in events:
        assert f"`{event}`" in page, event
    for code in re.findall(r'X\(GL_E_\w+, *-\d+, *"(\w+)"', text_of("src/base/err.h")):
        assert f"`{code}`" in page, code


def test_the_data_folder_holds_what_its_page_says(box):
    page = text_of("docs/data-folder.md")
    box.glia("run", f"{ROOT}/examples/hello.yaml")
    box.glia("run", "--", "true")
    for name in os.listdir(box.data) + os.listdir(f"{box.data}/contexts/default"):
        assert name.split("-")[0] in page, name


def test_the_examples_are_good(box):
    folder = os.path.join(ROOT, "examples")
    flows = [name for name in os.listdir(folder) if name.endswith((".yaml", ".json"))]
    assert len(flows) >= 2
    for name in flows:
        assert json.loads(box.glia("validate", f"{folder}/{name}", "--json").stdout)["valid"]


def test_the_translations_for_newcomers_are_good(box):
    flows = [flow for flow in re.findall(r"^```yaml\n(.*?)^```$", text_of("docs/coming-from.md"),
                                         re.M | re.S) if not flow.startswith("# Dagu")]
    assert len(flows) >= 4
    for script in ("fetch.sh", "clean.sh"):
        box.write(script, "#!/bin/sh\n", 0o755)
    for number, flow in enumerate(flows):
        path = box.write(f"{number}.yaml", flow)
        assert box.json("validate", path)["valid"]
