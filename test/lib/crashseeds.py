"""How many rounds a crash test makes, and with which seeds.

GLIA_CRASH_SEED=n replays one round; GLIA_CRASH_ROUNDS says how many there are; GLIA_SOAK=1 takes
new seeds instead of those that always are the same."""

import os
import random

SOAK = bool(os.environ.get("GLIA_SOAK"))


def rounds(usual, soak):
    return int(os.environ.get("GLIA_CRASH_ROUNDS", soak if SOAK else usual))


def seeds(name, count):
    if os.environ.get("GLIA_CRASH_SEED"):
        return [int(os.environ["GLIA_CRASH_SEED"])]
    if SOAK:
        return [random.SystemRandom().randrange(1 << 32) for _ in range(count)]
    return [sum(name.encode()) * 1000 + i for i in range(count)]
