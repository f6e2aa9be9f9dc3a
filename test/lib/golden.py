"""Sentences for people, compared with a file beside the tests: the one place that knows them.

    GOLDEN = golden.of(__file__)               test_keeper.py has keeper.golden
    GOLDEN.says("no program", end["error"])    the line `no program: ...` of it

Whatever is different in each run (folders, process ids) is passed as `hide`, and stands there as
`<>`. With GLIA_GOLDEN=write in the environment, lines are written instead of compared.
"""

import os
import re


class Golden:
    def __init__(self, path):
        self.path = path

    def lines(self):
        if not os.path.exists(self.path):
            return {}
        with open(self.path, encoding="utf-8") as file:
            return dict(line.rstrip("\n").split(": ", 1) for line in file)

    def says(self, key, text, hide=()):
        for part in hide:
            text = text.replace(str(part), "<>")
        text = re.sub(r"\s*\n\s*", " | ", text.strip())
        if os.environ.get("GLIA_GOLDEN") == "write":
            lines = {**self.lines(), key: text}
            with open(self.path, "w", encoding="utf-8") as file:
                file.writelines(f"{k}: {v}\n" for k, v in sorted(lines.items()))
        assert text == self.lines().get(key), f"{self.path}: {key}"


def of(test_file):
    folder, name = os.path.split(os.path.abspath(test_file))
    name = name.removeprefix("test_").removesuffix(".py")
    return Golden(os.path.join(folder, f"{name}.golden"))
