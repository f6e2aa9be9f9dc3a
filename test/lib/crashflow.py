"""Random flows for the crash tests: retries, fan-out and join, waits, marks."""

import json
import os

MARKS = ("unsafe", "idempotent", "")
EXACT_RULES = ("all_success", "all_done")


class Step:
    """One step: what is written into the flow file, and what the oracle needs to judge it."""

    def __init__(self, number, needs):
        self.id = f"s{number}"
        self.weight = 1 << (number % 40)
        self.needs = needs
        self.noop = False
        self.through_shell = False
        self.through_file = False
        self.sleep_ms = 0
        self.plan = [0]
        self.attempts = 1
        self.backoff_ms = 50
        self.mark = ""
        self.on_failure = "fail"
        self.rule = "all_success"
        self.timeout_ms = 0

    def code(self, attempt):
        """What it exits with, if nothing happens to it."""
        return self.plan[min(attempt, len(self.plan)) - 1]

    def spec(self, tool, ledger):
        words = [tool, ledger, str(self.weight), str(self.sleep_ms), ",".join(map(str, self.plan))]
        spec = {"needs": self.needs, "trigger_rule": self.rule, "on_failure": self.on_failure}
        if self.noop:
            spec["noop"] = True
            return spec
        if self.through_file:  # a blob
            spec["python"] = f"import os\nos.execv({words[0]!r}, {words!r})\n"
        elif self.through_shell:  # a child and a grandchild of the keeper
            spec["sh"] = " ".join(words) + "; exit $?"
        else:
            spec["run"] = words
        spec["retry"] = {"attempts": self.attempts, "backoff": f"{self.backoff_ms}ms", "factor": 1}
        if self.mark:
            spec[self.mark] = True
        if self.timeout_ms:
            spec["timeout"] = f"{self.timeout_ms}ms"
            spec["grace"] = "1s"
        return spec


class Flow:
    """A DAG of steps, numbered in an order in which they can run."""

    def __init__(self, name, steps):
        self.name = name
        self.steps = {s.id: s for s in steps}

    def write(self, folder, tool, ledger):
        path = os.path.join(folder, f"{self.name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"name": self.name, "steps": {
                s.id: s.spec(tool, ledger) for s in self.steps.values()}}, file, indent=1)
        return path


def small(name, sleep_ms=60):
    """The flow of the failpoint tests: each mark once, a fan-out, a retry and a join."""
    root, retried, unsafe, idempotent, join = (Step(i, []) for i in range(5))
    retried.needs = unsafe.needs = idempotent.needs = [root.id]
    join.needs = [retried.id, unsafe.id, idempotent.id]
    for step in (root, retried, unsafe, idempotent):
        step.sleep_ms = sleep_ms
    retried.plan, retried.attempts = [3, 0], 3
    unsafe.mark, idempotent.mark = "unsafe", "idempotent"
    return Flow(name, [root, retried, unsafe, idempotent, join])


def fan(name, width, sleep_ms):
    """One step, many beside each other, and one that joins them."""
    root = Step(0, [])
    middle = [Step(i + 1, [root.id]) for i in range(width)]
    for step in middle:
        step.sleep_ms = sleep_ms
    return Flow(name, [root, *middle, Step(width + 1, [s.id for s in middle])])


def random_step(rng, number, before):
    step = Step(number, rng.sample(before, min(len(before), rng.choice((0, 1, 1, 1, 2, 3)))))
    step.mark = rng.choice(MARKS)
    step.sleep_ms = rng.choice((0, 5, 20, 50, 100, 100, 200, 300, 600))
    step.through_shell = rng.random() < 0.2
    if rng.random() < 0.35:
        step.attempts = rng.randint(2, 4)
        step.plan = [rng.randint(1, 9) for _ in range(rng.randint(1, step.attempts - 1))] + [0]
        step.backoff_ms = rng.choice((10, 100, 400))
    elif rng.random() < 0.12:
        step.plan = [rng.randint(1, 9)]
        step.attempts = rng.randint(1, 2)
        step.on_failure = rng.choice(("continue", "continue", "skip", "fail"))
    elif rng.random() < 0.08:
        step.sleep_ms, step.timeout_ms = 60000, 300
        step.on_failure = "continue"
    if step.needs and rng.random() < 0.2:
        step.rule = rng.choice(("all_done", "one_success", "none_failed_min_one_success"))
    return step


def random_flow(rng, name):
    """Layers that fan out and join, and between them whatever chance wants."""
    steps = []
    for _ in range(rng.randint(2, 5)):
        before = [s.id for s in steps][-8:]
        if steps and rng.random() < 0.3:  # fan out of one step, and join
            root, width = steps[-1].id, rng.randint(3, 8)
            middle = [random_step(rng, len(steps) + i, [root]) for i in range(width)]
            for step in middle:
                step.needs = [root]
            steps += middle
            join = Step(len(steps), [s.id for s in middle])
            join.noop = rng.random() < 0.3
            join.rule = rng.choice(EXACT_RULES)
            steps.append(join)
        else:
            steps += [random_step(rng, len(steps) + i, before) for i in range(rng.randint(1, 3))]
    return Flow(name, steps)
