"""Nodes, keepers, steps and machines die while flows wait for items, signals, people, times and
limits: every flow ends with the same result, nothing unsafe is done twice, every signal is taken
once. Every round prints its seed; GLIA_CRASH_SEED=n replays one, GLIA_CRASH_ROUNDS says how many"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from crashgates import attack_gates  # noqa: E402
from test_crash import ROUNDS, seeds, side_by_side  # noqa: E402

KILLS = 8


def test_whatever_waits_goes_on_after_every_crash():
    def one(seed):
        print(f"gates: GLIA_CRASH_SEED={seed}", flush=True)
        return attack_gates(seed, KILLS)

    judged = side_by_side(one, seeds("gates", ROUNDS))
    assert sum(map(len, judged)) > 0
