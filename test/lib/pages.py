"""The pages of the documentation as tests need them: their text, the files they tell a reader to
save, and their commands, typed into a shell."""

import os
import re
import subprocess
import tempfile

from glianode import ROOT, SECONDS_MAX


def text_of(path):
    """A page, by its absolute path or the one below the source."""
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def sections(page):
    """{title: text} of the parts that begin with `## `."""
    parts = re.split(r"^## (.*)\n", page, flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def files(text):
    """{path: content}: a line `path`: followed by a fenced block."""
    return dict(re.findall(r"^`([\w./-]+)`:\n\n```[\w-]+\n(.*?)^```$", text, re.M | re.S))


def type_into_shell(env, script):
    """Run a script as a person would type it, in a session that ends with it; gives back what it
    wrote to stdout."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        shell = subprocess.Popen(["bash", "-c", "set -em\ncd ~\n" + script], env=env, stdout=out,
                                 stderr=err, start_new_session=True)
        try:
            shell.wait(SECONDS_MAX)
        finally:
            subprocess.run(["pkill", "-KILL", "-s", str(shell.pid)], check=False)
            shell.wait()
            out.seek(0)
            err.seek(0)
            said, complaints = out.read(), err.read()
            print(said, complaints, sep="\n")
    assert shell.returncode == 0, f"{said}\n{complaints}"
    return said
