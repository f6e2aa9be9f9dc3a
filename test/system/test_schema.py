"""`glia schema`: what is a flow for `glia validate` is one for editors, and what is not in shape is
not."""

import glob
import json
import os
import re
import subprocess
import sys

import jsonschema
import pytest
import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))
from glianode import GLIA  # noqa: E402

pytestmark = pytest.mark.sqlite_only("runs no node")

# Shapes and words can be told from a schema; these are broken in other ways.
BEYOND_A_SCHEMA = {
    "bad-conditions", "bad-yaml", "cycle", "item-too-early", "item-without-foreach", "octal",
    "reference-in-a-python-string", "reference-in-a-quoted-here-document",
    "reference-in-arithmetic", "reference-in-single-quotes", "reference-misspelled",
    "reference-to-a-stranger", "shell-variable-without-a-shell", "unknown-step",
}


@pytest.fixture(name="validator", scope="module")
def make_validator():
    out = subprocess.run([GLIA, "schema"], check=True, capture_output=True, text=True).stdout
    schema = json.loads(out)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


class Core(yaml.SafeLoader):
    """YAML as Glia reads it: no dates, and yes and on are text."""


Core.yaml_implicit_resolvers = {
    first: [(tag, expression) for tag, expression in resolvers
            if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
Core.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))


def flows_of_the_reference():
    with open(os.path.join(ROOT, "docs", "flow-format.md"), encoding="utf-8") as page:
        for text in re.findall(r"```yaml\n(.*?)```", page.read(), re.S):
            yield "steps:\n" + text if text.startswith(" ") else text


def test_every_example_is_a_flow(validator):
    texts = list(flows_of_the_reference())
    for path in glob.glob(os.path.join(ROOT, "examples", "**", "*.yaml"), recursive=True):
        with open(path, encoding="utf-8") as file:
            texts.append(file.read())
    assert len(texts) > 20
    for text in texts:
        errors = [error.message for error in validator.iter_errors(yaml.load(text, Core))]
        assert not errors, text


def broken(name):
    with open(os.path.join(ROOT, "test", "flows", "broken", name + ".yaml"),
              encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("name", sorted(
    os.path.basename(path)[:-len(".yaml")]
    for path in glob.glob(os.path.join(ROOT, "test", "flows", "broken", "*.yaml"))))
def test_a_broken_flow_is_refused(validator, name, tmp_path):
    copy = tmp_path / "flow.yaml"
    copy.write_text(broken(name), encoding="utf-8")
    done = subprocess.run([GLIA, "validate", str(copy)], capture_output=True, text=True)
    assert done.returncode == 2
    assert re.search(r"^ *\d+ \| .*\n +\| *\^$", done.stderr, re.M), "the line and a caret"
    if name not in BEYOND_A_SCHEMA:
        assert not validator.is_valid(yaml.load(broken(name), Core))
