"""Every pattern once more, while what runs its workers dies: the keeper (kill -9 takes its workers
with it), keeper and node together, and on a shared store one of two nodes, whose jobs the other
takes over. Now it can be unknown what became of a worker. Then a person is asked, unless the worker
is marked as safe to run again; the job ends as it does without any death, and nobody works twice
without a mark or a word. Each pattern meets one kind of death, with GLIA_SOAK=1 all of them.

A round prints its seed; GLIA_CRASH_SEED=n replays one (what is drawn is the same, the moments are
not). GLIA_SOAK=1 takes new seeds, and GLIA_CRASH_ROUNDS (4) rounds of each."""

import random
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from bundlework import item
from crashseeds import SOAK, rounds, seeds
from deaths import Person, World, marked
from glianode import Box
from httpnode import serve
from onstore import share_of
from patterns import PATTERNS
from teststore import STORE, Lender

ROUNDS = rounds(usual=1, soak=4)
AT_ONCE = 7  # they wait more than they work
# A step is given up when it was lost more often than three times.
KILLS = 2
LULL_SECONDS = 2


def moment(world, rng):
    """Soon; or when a few more workers have begun, which reaches the later steps of a pattern
    however slow the machine is. Nobody may begin any more: then it was over."""
    if rng.random() < 0.6:
        target, until = world.starts.total() + rng.randint(1, 3), time.monotonic() + LULL_SECONDS
        while world.starts.total() < target and time.monotonic() < until:
            time.sleep(0.005)
    time.sleep(rng.choice([0.02, 0.1, 0.5]) * rng.random())


def keeper_dies(world, rng):
    box = world.front
    for _ in range(KILLS):
        moment(world, rng)
        world.kill_keeper(box)


def both_die(world, rng):
    box = world.front
    for _ in range(KILLS):
        moment(world, rng)
        order = [world.kill_node, world.kill_keeper]
        rng.shuffle(order)
        for kill in order:
            kill(box)
        moment(world, rng)
        serve(box)


def one_node_dies(world, rng):
    """For good, or it comes back; with its keeper, or without: that one ends its workers when their
    time is over."""
    box = world.boxes["a"]
    moment(world, rng)
    world.kill_node(box)
    if rng.random() < 0.5:
        world.kill_keeper(box)
    if rng.random() < 0.3:
        time.sleep(rng.random() * 3)
        serve(box)


def patterns_for(how):
    number = list(DEATHS).index(how)
    return PATTERNS if SOAK else share_of(list(PATTERNS)[number::len(DEATHS)])


DEATHS = {"keeper": keeper_dies, "both": both_die, "takeover": one_node_dies}


def judge(pattern, world, person, is_marked, ran):
    """Ended as without deaths, and nobody has worked more often than somebody has allowed."""
    pattern.check(ran)
    if is_marked:
        assert not person.reruns, person.reruns
        return
    for (agent, step), count in world.starts.counts().items():
        allowed = pattern.works.get(agent, 1) + person.words_for(agent, step)
        assert count <= allowed, f"{agent} began {count} times, not {allowed}, for {step}\n{ran!r}"


def round_of(how, name, seed, folder, url):
    pattern, rng = PATTERNS[name], random.Random(seed)
    is_marked = rng.random() < 0.3
    print(f"{how}, {name}: GLIA_CRASH_SEED={seed}")
    world = World(folder, url, ("a", "b") if url else ("a",))
    try:
        path = marked(pattern.path, f"{folder}/bundle") if is_marked else pattern.path
        first = next(iter(world.boxes.values()))
        first.glia("run", path, "--run-id", "k-1", "--detach", *pattern.args)
        DEATHS[how](world, rng)
        person = Person(world, "k-1", pattern.answers)
        judge(pattern, world, person, is_marked, person.see_through())
    finally:
        world.close()


def rounds(how, tmp_path, take_url=lambda: None):
    drawn = [(name, seed) for name in patterns_for(how) for seed in seeds(f"{how} {name}", ROUNDS)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = [(name, seed, pool.submit(round_of, how, name, seed, tmp_path / f"{number}",
                                            take_url()))
                   for number, (name, seed) in enumerate(drawn)]
    bad = [f"{name}, GLIA_CRASH_SEED={seed}: {f.exception()}" for name, seed, f in futures
           if f.exception()]
    assert not bad, "\n\n".join(bad)


@item("B-15-1", "B-9-7")
@pytest.mark.parametrize("how", ["keeper", "both"])
def test_patterns_end_although_their_workers_die(tmp_path, how):
    rounds(how, tmp_path)


@pytest.fixture(name="shared", scope="module")
def make_shared():
    """Empty stores that several nodes can have."""
    if STORE != "sqlite":
        yield Box.lender
        return
    with Lender("redis") as lender:
        yield lender


@item("B-15-1", "B-9-7")
def test_patterns_are_taken_over(tmp_path, shared):
    rounds("takeover", tmp_path, shared.take)
