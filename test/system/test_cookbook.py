"""Every recipe of docs/cookbook.md works as it is printed: its files, commands and outputs."""

import glob
import os
import re
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
from glianode import BUILD, Box  # noqa: E402
from pages import files, sections, text_of, type_into_shell  # noqa: E402
from ports import give_back, take_port  # noqa: E402
from servers import RedisServer  # noqa: E402

PAGE = text_of("docs/cookbook.md")
RECIPES = sections(PAGE)
REDIS, PORT = "redis://127.0.0.1:6379/0", "7464"  # in the page
MARK = "-- next block --"

pytestmark = pytest.mark.sqlite_only("the recipes choose their stores themselves")


@pytest.fixture(name="home")
def make_home():
    """A user's home with the data folders of the recipes, which end with the test."""
    env = {"GLIA_STORE": "", "PATH": f"{BUILD}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory(prefix="glia-cook-") as home:
        box = Box(home, data=f"{home}/glia-cookbook/data", HOME=home, **env)
        yield box
        box.close()
        for lock in glob.glob(f"{home}/glia-cookbook/**/lock", recursive=True):
            Box(home, data=os.path.dirname(lock), HOME=home, **env).close()


@pytest.fixture(name="port")
def make_port():
    port = take_port()
    yield str(port)
    give_back(port)


def blocks(text):
    """[(commands, the output that is printed for them, or None)]"""
    found = re.findall(r"^```sh\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", text, re.M | re.S)
    printed = re.findall(r"^```sh\n.*?^```$(\n\n```text\n)?", text, re.M | re.S)
    return [(commands, output if has else None) for (commands, output), has in zip(found, printed)]


def follow(home, text):
    """Save the files of a recipe, type its commands, compare what they print."""
    for path, content in files(text).items():
        home.write(f"glia-cookbook/{path}", content)
    typed = blocks(PAGE.split("\n## ")[0]) + blocks(text)
    out = type_into_shell(home.env, f"echo '{MARK}'\n".join(commands for commands, _ in typed))
    for said, (commands, printed) in zip(out.split(f"{MARK}\n"), typed, strict=True):
        assert printed is None or said == printed, commands


@pytest.mark.parametrize("title", RECIPES)
def test_the_recipe_works(home, port, title):
    text = RECIPES[title].replace(PORT, port)
    if REDIS not in text:
        follow(home, text)
        return
    with RedisServer() as redis:
        follow(home, text.replace(REDIS, redis.url))


def test_there_are_twelve_recipes_and_all_are_in_the_table():
    assert len(RECIPES) == 12
    assert re.findall(r"^\| \[(.*?)\]", PAGE, re.M) == list(RECIPES)


def test_the_metrics_in_the_alerts_exist(home):
    rules = files(RECIPES["Metrics and alerts"])["glia-rules.yaml"]
    home.start("serve")
    home.wait_node()
    there = home.ask("GET", "/metrics").body.decode()
    wanted = set(re.findall(r"glia_\w+", rules))
    assert len(wanted) >= 6
    assert all(f"# TYPE {name} " in there for name in wanted)
