"""tools/tidy finds each kind of offence, and nothing in a clean tree."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.sqlite_only("tests the house rules")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

HEADER = """/* {name} - a header. */
#ifndef X
#define X

int gl_x(int v);

#endif
"""

CLEAN = """#include "base/good.h"

#include <string.h>

int gl_x(int v)
{
    if (v > 0) {
        return 1;
    }
    return 0;
}
"""


class Project:
    """A small project of its own, with the objects of a build."""

    def __init__(self, folder):
        self.folder = str(folder)
        self.write("base/good.h", HEADER.format(name="good.h"), "src")
        self.write("base/good.c", CLEAN, "src")
        os.makedirs(f"{self.folder}/tools")
        for name in ("tools/tidy", "tools/asserts.py", "tools/sentences.py", ".clang-format"):
            shutil.copy(f"{ROOT}/{name}", f"{self.folder}/{name}")
        self.write("tidy.ratchet", "", "tools")
        subprocess.run(["git", "init", "-q"], cwd=self.folder, check=True)
        self.write(".gitignore", "build\n", ".")
        self.compile("base", "good.c")
        self.link("")

    def write(self, name, text, where="src"):
        path = f"{self.folder}/{where}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)

    def compile(self, room, name):
        out = f"{self.folder}/build/src/lib{room}.a.p/{room}_{name}.o"
        os.makedirs(os.path.dirname(out), exist_ok=True)
        subprocess.run(["gcc", "-O2", "-Isrc", "-c", f"src/{room}/{name}", "-o", out],
                       cwd=self.folder, check=True)

    def link(self, extra):
        source = "int main(void) { return 0; }\n" + extra
        subprocess.run(["gcc", "-x", "c", "-", "-o", "build/glia-sim"], cwd=self.folder,
                       input=source, text=True, check=True)

    def tidy(self):
        done = subprocess.run(["tools/tidy", "--build", "build"], cwd=self.folder, text=True,
                              capture_output=True, check=False)
        failed = [l[6:] for l in done.stdout.splitlines() if l.startswith("FAIL")]
        assert (done.returncode != 0) == bool(failed), done.stdout + done.stderr
        return failed, done.stdout


@pytest.fixture(name="project")
def make_project(tmp_path):
    return Project(tmp_path)


def test_a_clean_tree_passes(project):
    failed, output = project.tidy()
    assert failed == [], output


OFFENCES = {
    "an include that points outward": (
        "base/bad.c", '#include "core/core.h"\n', "includes point inward"),
    "an adapter that sees its sibling": (
        "http/bad.c", '#include "store/sqlite.h"\n', "deleting an adapter breaks only"),
    "a command that names an adapter": (
        "cli/bad.c", '#include "store/sqlite.h"\n', "deleting an adapter breaks only"),
    "a library outside its adapter": (
        "core/bad.c", "#include <sqlite3.h>\n", "libraries are included only by"),
    "a long function": (
        "base/bad.c", "int gl_x(int v)\n{\n" + "    v++;\n" * 70 + "    return v;\n}\n",
        "functions have at most"),
    "a long file": (
        "base/bad.c", "int x;\n" * 801, "functions have at most"),
    "a long line": (
        "base/bad.c", "/* " + "x" * 100 + " */\n", "lines have at most"),
    "a tab": (
        "base/bad.c", "int gl_x(int v)\n{\n\treturn v;\n}\n", "lines have at most"),
    "a strange layout": (
        "base/bad.c", "int gl_x(int v) {\n  return v;\n}\n", "clang-format has nothing"),
    "a body without braces": (
        "base/bad.c", "int gl_x(int v)\n{\n    if (v)\n        return 1;\n    return 0;\n}\n",
        "every body of if"),
    "an else without braces": (
        "base/bad.c",
        "int gl_x(int v)\n{\n    if (v) {\n        v++;\n    } else\n        v--;\n"
        "    return v;\n}\n",
        "every body of if"),
    "a header without prose": (
        "base/bad.h", "#ifndef Y\n#define Y\n#endif\n", "a header opens with"),
    "a name used twice": (
        "model/good.c", "int x;\n", "file names are unique"),
    "work left over": (
        "base/bad.c", "/* TO" "DO: finish */\n", "nothing is left to do"),
    "a path of one machine": (
        "base/bad.c", "/* see /wor" "k/notes */\n", "no path leads out"),
}


@pytest.mark.parametrize("what", OFFENCES)
def test_it_finds(project, what):
    name, text, rule = OFFENCES[what]
    project.write(name, text)
    failed, output = project.tidy()
    assert any(f.startswith(rule) for f in failed), output


def test_a_unit_test_has_the_name_of_its_file(project):
    rule = "a file's unit test"
    project.write("unit/test_good.c", CLEAN, "test")
    project.write("unit/test_flow_broken.c", CLEAN, "test")
    failed, output = project.tidy()
    assert not any(f.startswith(rule) for f in failed), output
    project.write("unit/test_base_good.c", CLEAN, "test")
    failed, output = project.tidy()
    assert any(f.startswith(rule) for f in failed) and "no file base_good.[ch]" in output, output
    os.remove(f"{project.folder}/test/unit/test_base_good.c")
    project.write("base/flow_broken.c", "int gl_y;\n")
    failed, output = project.tidy()
    assert any(f.startswith(rule) for f in failed) and "test_flow_broken.c" in output, output


def test_it_finds_a_broken_link_in_a_document(project):
    project.write("guide.md", "See ../elsewhere/notes.md.\n", "docs")
    failed, output = project.tidy()
    assert len(failed) == 1 and failed[0].startswith("no path"), output


@pytest.mark.parametrize("text, rule", [
    ("#include <stdlib.h>\n\nint gl_x(void)\n{\n    return rand();\n}\n",
     "objects of the pure rooms"),
    ("#include <time.h>\n\nlong gl_x(void)\n{\n    return (long)time(NULL);\n}\n",
     "objects of the pure rooms"),
    ("int helper(void)\n{\n    return 1;\n}\n", "exported names begin with"),
    ("int gl_count;\n", "there are no mutable globals"),
    ("int gl_x(void)\n{\n    static int calls;\n    return ++calls;\n}\n",
     "there are no mutable globals"),
])
def test_it_finds_in_the_symbols(project, text, rule):
    project.write("base/bad.c", text)
    project.compile("base", "bad.c")
    failed, output = project.tidy()
    assert any(f.startswith(rule) for f in failed), output


def test_constant_tables_are_no_mutable_globals(project):
    project.write("base/table.c",
                  'const char *const gl_words[] = {"a", "b"};\nconst int gl_number = 3;\n')
    project.compile("base", "table.c")
    failed, output = project.tidy()
    assert failed == [], output


def test_it_finds_a_foreign_library_in_the_simulator(project):
    project.link("void MHD_start_daemon(void) {}\n")
    failed, output = project.tidy()
    assert len(failed) == 1 and failed[0].startswith("the simulator"), output


def test_the_ratchet_only_goes_down(project):
    body = "int gl_long(int v)\n{\n" + "    v++;\n" * 75 + "    return v;\n}\n"
    project.write("base/bad.c", body)
    project.write("tidy.ratchet", "src/base/bad.c gl_long 79\n", "tools")
    failed, output = project.tidy()
    assert failed == [], output
    project.write("tidy.ratchet", "src/base/bad.c gl_long 90\n", "tools")
    failed, output = project.tidy()
    assert len(failed) == 1 and "gl_long" in output and " 79" in output, output
    project.write("tidy.ratchet", "src/base/bad.c gl_other 90\n", "tools")
    failed, output = project.tidy()
    assert len(failed) == 1 and "gl_other" in output and "gone" in output


MATCHES = """def test_a(box):
    assert "there is no job" in box.glia("x").stderr
    assert box.reason("x") == "no_such_job"
"""


def test_tests_may_not_match_on_more_sentences(project):
    project.write("test_a.py", MATCHES, "test/system")
    failed, output = project.tidy()
    assert len(failed) == 1 and "test_a.py: matches 1 " in output and "lines 2" in output
    project.write("tidy.ratchet", "test/system/test_a.py sentences 1\n", "tools")
    failed, output = project.tidy()
    assert failed == [], output
    project.write("tidy.ratchet", "test/system/test_a.py sentences 2\n", "tools")
    failed, output = project.tidy()
    assert len(failed) == 1 and "tools/tidy.ratchet: test/system/test_a.py" in output


ASSERTS = """int gl_one(int *x, int n)
{
    GL_ASSERT(n > 0 && n < 9);
    GL_ASSERT(x != NULL);
    /* GL_ASSERT(n > 1); */
    return *x;
}

int gl_two(int n)
{
    return n;
}
"""


def test_rooms_may_not_assert_less(project):
    project.write("core/a.c", ASSERTS)
    project.write("tidy.ratchet", "src/core asserts 50\n", "tools")
    failed, output = project.tidy()
    assert failed == [], output
    project.write("tidy.ratchet", "src/core asserts 51\n", "tools")
    failed, output = project.tidy()
    assert len(failed) == 1, output
    assert "src/core: 1 " in output and " 51 are " in output
    project.write("tidy.ratchet", "src/core asserts 45\n", "tools")
    failed, output = project.tidy()
    assert len(failed) == 1 and "up to 50 asserts" in output
