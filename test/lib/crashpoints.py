"""Deaths at named failpoints: which there are, and a small story for each."""

import os
import random
import re
import subprocess

import golden
from crashflow import Flow, Step, small
from crashworld import END_SECONDS_MAX, World
from glianode import ROOT, wait_for

GOLDEN = golden.of(__file__)
CLIENTS_MAX = 8  # until the point is reached

# What is needed to reach a point that a small flow on a sound disk does not reach.
LONG_CHAIN = {"sqlite.before_checkpoint", "sqlite.after_checkpoint"}
FAILED_SYNC = {"sqlite.before_recovery", "sqlite.after_recovery"}
ONCE_PER_NODE = {"sqlite.before_session", "sqlite.after_session"}
FILES = {"file.written", "file.renamed"}  # 1: node's identity, 2: a blob, 3: the keeper's memory


def names_in_source():
    """Every failpoint in the sources."""
    out = subprocess.check_output(["grep", "-rhoE", r'GL_FAILPOINT\("[a-z_.]+"\)',
                                   os.path.join(ROOT, "src")], text=True)
    return sorted(set(re.findall(r'"([a-z_.]+)"', out)))


def names_in_docs():
    with open(os.path.join(ROOT, "docs", "HACKING.md"), encoding="utf-8") as file:
        section = file.read().split("## Failpoints")[1].split("\n## ")[0]
    return sorted(re.findall(r"^\| `([a-z_.]+)` \|", section, re.M))


def flow_for(name, flow_name):
    flow = small(flow_name)
    # Enough commits to fill the log three times; or for a few syncs, as commits of a busy machine
    # share one.
    length = 500 if name in LONG_CHAIN else 20 if name in FAILED_SYNC else 0
    if length > 0:
        chain = [Step(10 + i, [f"s{9 + i}"] if i else ["s4"]) for i in range(length)]
        for step in chain:
            step.noop = True
        flow = Flow(flow_name, [*flow.steps.values(), *chain])
    if name in FILES:
        flow.steps["s4"].through_file = True
    return flow


def environment(name, count):
    env = {"GLIA_FAILPOINT": f"{name}:{count}"}
    if name in ONCE_PER_NODE or name in FILES and count == 3:
        env["GLIA_FAILPOINT"] = name
    if name in FAILED_SYNC:
        env["GLIA_TEST_VFS"] = f"cut:{'late' if count % 2 else 'lost'}={8 + count}"
        env["GLIA_FAILPOINT"] = name
    return env


COUNTS_ALONE = (1, 2, 3)  # every point is passed so often, in one way or another


def counts_as_host(name):
    """The same for a node with a second command beside it: while it starts, and while it works."""
    if name in ONCE_PER_NODE or name in FILES:
        return (1,)
    return (2, 4) if name.startswith("keeper.") else (2, 4, 7)


def keeper_died(world):
    try:
        log = world.read("data/node.log")
    except OSError:
        return False
    return GOLDEN.tells("keeper gone", log) or GOLDEN.tells("keeper not started", log)


def die_alone(name, count):
    """One command, which is the node, dies at the point (or its keeper does). Everything is started
    again, and must end right."""
    rng = random.Random(f"{name}:{count}")
    with World() as world:
        try:
            if name in FILES and count == 3:
                world.glia("run", "--", "true")  # now the folder is known, and the blob is there
                world.submit(flow_for(name, "before")).wait(END_SECONDS_MAX)
                world.kill_keeper()
            for turn in range(count if name in ONCE_PER_NODE else 1):
                first = world.submit(flow_for(name, f"alone{turn}"), **environment(name, count))
                code = first.wait(END_SECONDS_MAX)
                hit = code == -9 or keeper_died(world)
                assert hit, f"{name} was not passed {count} times: {code} {world.read(first.err)}"
            if not world.accepted():  # then its user tries again, whatever became of it
                world.submit(flow_for(name, "again"))
            world.finish(rng)
            jobs = world.judge(losses=None)
            assert jobs, "nothing was judged"
        except Exception as error:
            raise AssertionError(f"{name}:{count}: {error}\n{world.story()}") from error


def wait_death(world, host, name, count):
    """Until the host has died at the point. A job that was over before is followed by another."""
    clients = [world.submit(flow_for(name, "client"))]

    def has_died():
        if clients[-1].poll() is not None and host.poll() is None:
            assert len(clients) < CLIENTS_MAX, f"{name} was not passed {count} times"
            clients.append(world.submit(flow_for(name, f"client{len(clients)}")))
        return host.poll() is not None

    if name.startswith("keeper."):
        wait_for("the keeper's death", lambda: keeper_died(world))
    else:
        wait_for(f"a death at {name}", has_died)
        assert host.poll() == -9, world.read(host.err)
    return clients


def die_as_host(name, count):
    """The node dies at the point while the command of another job waits for it: that one carries
    on, and nobody has to do anything."""
    rng = random.Random(f"{name}:{count}")
    with World() as world:
        try:
            host = world.start_host(**environment(name, count))
            wait_for("a node", lambda: world.node_pid() or host.poll() is not None)
            clients = wait_death(world, host, name, count)
            world.finish(rng)
            jobs = world.judge(losses=None)
            assert len(jobs) == len(clients), f"{len(clients)} submissions, and jobs {list(jobs)}"
            for client in clients:
                assert client.poll() in (0, 1, 6), world.read(client.err)
        except Exception as error:
            raise AssertionError(f"{name}:{count}: {error}\n{world.story()}") from error
