"""A step cannot read the node's secrets out of the processes beside it."""

import json
import os
import shutil
import subprocess
import sys
import tempfile

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))
from glianode import BUILD, SECONDS_MAX, Box, keepers, wait_for  # noqa: E402

SECRET = "correct-horse-battery-staple"

# A step that reads what /proc shows of some processes; it never prints what it finds, because the
# log would then replace it.
LOOK = """
import json, os
found = {}
for name, pid in json.load(open("pids.json")).items():
    pid = os.getppid() if pid is None else pid
    for what in ("environ", "cmdline"):
        try:
            with open(f"/proc/{pid}/{what}", "rb") as file:
                text = file.read().decode(errors="replace")
            found[f"{name} {what}"] = SECRET in text
        except PermissionError:
            found[f"{name} {what}"] = "denied"
    try:
        with open(f"/proc/{pid}/mem", "rb"):
            found[f"{name} mem"] = "open"
    except PermissionError:
        found[f"{name} mem"] = "denied"
print(json.dumps(found))
""".replace("SECRET in", f'"{SECRET[::-1]}"[::-1] in')


def flow(pids):
    return {"steps": {"look": {
        "run": ["/usr/bin/python3", "-c", LOOK.replace('json.load(open("pids.json"))',
                                                       f"json.loads({json.dumps(pids)!r})")]}}}


@pytest.fixture(name="box")
def make_box(tmp_path):
    box = Box(tmp_path, MY_SECRET=SECRET, GLIA_TOKEN=SECRET)
    yield box
    box.close()


def look(box, pids):
    box.write("look.json", json.dumps(flow(pids)))
    job = box.json("run", "look.json")["job_id"]
    return box.step(job, "look")["output"]


def test_a_step_does_not_see_the_environment_of_keeper_and_node(box):
    node = box.start("serve")
    wait_for("the node", lambda: box.glia("node", "status", code=None).returncode == 0)
    found = look(box, {"keeper": None, "node": node.pid})
    assert [k for k, v in found.items() if v is True] == []
    assert found["node cmdline"] is False  # it could be read


def test_a_secret_still_reaches_the_step_that_declares_it(box):
    node = box.start("serve")
    wait_for("the node", lambda: box.glia("node", "status", code=None).returncode == 0)
    box.write("use.json", json.dumps({"steps": {"use": {
        "sh": f'test "$S" = {SECRET} && echo \'{{"same": true}}\'',
        "env": {"S": {"secret": "env:MY_SECRET"}}}}}))
    job = box.json("run", "use.json")["job_id"]
    assert box.step(job, "use")["output"] == {"same": True}
    assert node.poll() is None


@pytest.mark.parametrize("url, shown", [
    ("redis://someone:{}@127.0.0.1:1/0", ["redis://someone:*", "*@127.0.0.1:1/0"]),
    ("redis+sentinel://127.0.0.1:1/main?sentinel_user=x&sentinel_password={}&wait=all",
     ["sentinel_user=x&sentinel_password=*", "*&wait=all"]),
])
def test_a_password_on_the_command_line_of_a_node_is_not_shown(box, url, shown):
    """The server is not there, and it is none of the node's business to show how to log in."""
    del box.env["GLIA_TOKEN"]
    process = box.start("serve", "--store", url.format(SECRET))

    def cmdline():
        with open(f"/proc/{process.pid}/cmdline", "rb") as file:
            text = file.read().decode()
        return text if "serve" in text and SECRET not in text else None

    text = wait_for("a command line without the password", cmdline)
    assert [s for s in shown if s not in text] == [], text


@pytest.mark.sqlite_only("it names stores of its own, none of which is there")
@pytest.mark.parametrize("url", [
    "postgres://u:horse%zzstaple@127.0.0.1:1/x",         # libpq quotes the password,
    "postgres://u:horse%00staple@127.0.0.1:1/x",
    "postgres://u@127.0.0.1:1/x?password=horse%zzstaple",
    "postgres://u:horsestaple@[127.0.0.1:1/x",           # ... and here the whole URL
    "postgres://u:horse/staple@127.0.0.1:1/x?port=y",
    "redis://:horse/staple@127.0.0.1:1/0",
    "redis://:horse?staple@127.0.0.1:1/0",
    "redis://u:horse#/staple@127.0.0.1:1/0",
    "redis://horse/staple@127.0.0.1:1/0",
    "redis+sentinel://:horse/staple@127.0.0.1:1/name",
])
def test_a_url_that_cannot_be_read_is_refused_without_its_password(box, url):
    box.env["GLIA_STORE"] = url
    for command in ("status", "doctor"):
        done = box.glia(*command.split(), code=None)
        said = done.stdout + done.stderr
        assert "horse" not in said and "staple" not in said, said
        assert "URL" in said or "address" in said or "connection" in said, said


@pytest.mark.sqlite_only("it names a store of its own, which is not there")
def test_an_option_that_postgresql_does_not_know_is_named(box):
    box.env["GLIA_STORE"] = "postgres://u:horse@127.0.0.1:1/x?sslmod=require"
    said = box.glia("status", code=None).stderr
    assert "sslmod" in said and "horse" not in said


def test_a_node_of_an_ordinary_user_keeps_its_memory_to_itself():
    """Root can read everything; the user's own processes can not."""
    assert os.geteuid() == 0, "this test must become another user: run it as root"
    folder = tempfile.mkdtemp(prefix="glia-secrets-")
    box = Box(folder, MY_SECRET=SECRET)
    box.env.pop("GLIA_STORE", None)
    try:
        for name in ("glia", "glia-keeper"):
            shutil.copy(os.path.join(BUILD, name), folder)
        os.chmod(folder, 0o777)
        user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--"]
        node = subprocess.Popen([*user, f"{folder}/glia", "serve"], cwd=folder, env=box.env,
                                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        box.started.append(node)
        box.wait_node()
        box.write("look.json", json.dumps(flow({"keeper": None, "node": node.pid})))
        done = subprocess.run([*user, f"{folder}/glia", "run", "look.json", "--json"], text=True,
                              cwd=folder, env=box.env, capture_output=True, timeout=SECONDS_MAX,
                              check=False)
        assert done.returncode == 0, done.stderr
        job = json.loads(done.stdout)["job_id"]
        found = box.step(job, "look")["output"]
        assert found == {"keeper environ": "denied", "keeper cmdline": False,
                         "keeper mem": "denied", "node environ": "denied", "node cmdline": False,
                         "node mem": "denied"}
        assert list(keepers(box.data))
    finally:
        box.close()
        shutil.rmtree(folder)
