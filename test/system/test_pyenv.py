"""Python environments of workers: `glia pyenv CACHE SPEC -- COMMAND...`"""
import json
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "lib"))

import golden  # noqa: E402

GOLDEN = golden.of(__file__)
GLIA = os.path.join(os.environ["GLIA_BUILD_RELEASE"], "glia")


@pytest.fixture
def place(tmp_path):
    """A folder with a cache, two packages of known versions, and a worker's folder."""
    site = tmp_path / "site"
    for name, version in (("glia-demo", "1.4.2"), ("other_demo", "2.0rc1")):
        module = name.replace("-", "_")
        (site / module).mkdir(parents=True)
        (site / module / "__init__.py").write_text("VERSION = %r\n" % version)
        info = site / ("%s-%s.dist-info" % (module, version))
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: %s\nVersion: %s\n"
                                       % (name, version))
    (tmp_path / "work").mkdir()
    (tmp_path / "cache").mkdir()
    return tmp_path


def pyenv(place, spec, *command, **env):
    full = dict(os.environ, PYTHONPATH=str(place / "site"), **env)
    text = spec if isinstance(spec, str) else json.dumps(spec)
    return subprocess.Popen([GLIA, "pyenv", str(place / "cache"), text, "--", *command],
                            cwd=place / "work", env=full, text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def run(place, spec, *command, **env):
    p = pyenv(place, spec, *command, **env)
    out, err = p.communicate(timeout=60)
    return p.returncode, out, err


def made(place):
    return sorted(os.listdir(place / "cache"))


def test_a_command_runs_in_an_environment_that_is_made_once(place):
    code = ("import sys, os, glia_demo; print(sys.prefix != sys.base_prefix, glia_demo.VERSION); "
            "print(sys.prefix); print(os.environ['VIRTUAL_ENV']); "
            "print(os.environ['MN_PYTHON_ENV']); print(os.environ['PATH'].split(':')[0])")
    rc, out, err = run(place, {"packages": ["glia-demo==1.4.2"]}, "python3", "-c", code)
    assert rc == 0 and err == "", err
    first, *paths = out.splitlines()
    assert first == "True 1.4.2"
    (name,) = made(place)
    folder = str(place / "cache" / name)
    assert paths == [folder, folder, folder, folder + "/bin"]
    before = os.stat(folder).st_ino
    assert run(place, {"packages": ["glia-demo==1.4.2"]}, "python3", "-c", code)[1] == out
    assert made(place) == [name] and os.stat(folder).st_ino == before
    assert run(place, {"packages": ["glia-demo>=1"]}, "true")[0] == 0
    assert len(made(place)) == 2


def test_every_name_of_python_means_the_environment(place):
    for name in ("python", "python3", "/usr/bin/python3"):
        rc, out, err = run(place, {}, name, "-c", "import sys; print(sys.prefix)")
        assert rc == 0, err
        assert out.strip() == str(place / "cache" / made(place)[0])


def test_other_commands_find_it_in_path(place):
    rc, out, err = run(place, {}, "sh", "-c", "command -v python3; exit 5")
    assert rc == 5 and out.strip() == str(place / "cache" / made(place)[0] / "bin/python3"), err


def test_version_specifiers(place):
    good = ["glia-demo", "Glia_Demo", "glia.demo [x,y] >= 1.4, <2", "glia-demo~=1.4",
            "glia-demo~=1.4.0", "glia-demo!=1.4.1", "glia-demo==1.4.*", "glia-demo>1.4.1",
            "glia-demo<=1.4.2.0", "glia-demo<1.10", "glia-demo>=1.4.2rc1", "glia-demo===1.4.2",
            "other-demo<2", "other-demo>=2.0b3", "other-demo>2.0.dev1", "glia-demo # why",
            "no-such; python_version < '3'", "glia-demo; sys_platform == 'linux'"]
    rc, _, err = run(place, {"packages": good}, "true")
    assert rc == 0, err
    for bad in ("glia-demo==1.4", "glia-demo~=1.5", "glia-demo~=1.3.1", "glia-demo!=1.4.2",
                "glia-demo==1.5.*", "glia-demo!=1.4.*", "glia-demo>1.4.2", "glia-demo<1.4.2",
                "glia-demo>=1.10", "glia-demo<=1.4.2rc1", "other-demo>=2", "other-demo==2.0",
                "glia-demo>=1,<1.4", "no-such; python_version > '3'"):
        assert run(place, {"packages": [bad]}, "true")[0] == 78, bad


def test_what_is_missing_is_named(place):
    rc, out, err = run(place, {"packages": ["glia-demo>=9"]}, "python3", "-c", "print(1)")
    assert rc == 78 and out == ""
    assert "glia-demo>=9" in err and "1.4.2" in err
    GOLDEN.says("wrong version", re.sub(r"Python 3\S+ \(\S+\)", "Python 3", err))
    rc, out, err = run(place, {"packages": ["no-such-thing"]}, "true")
    assert rc == 78 and "no-such-thing" in err and "installed: " in err
    assert made(place) == []


def test_requirements_are_text_a_list_or_a_file(place):
    (place / "work/requirements.txt").write_text("# ours\nglia-demo==1.4.2\n\nother-demo  # too\n")
    assert run(place, {"requirements": "requirements.txt"}, "true")[0] == 0
    (place / "work/requirements.txt").write_text("glia-demo==1.4.3\n")
    rc, _, err = run(place, {"requirements": "requirements.txt"}, "true")
    assert rc == 78 and "glia-demo==1.4.3" in err
    assert run(place, {"requirements": "glia-demo\nother-demo<3\n"}, "true")[0] == 0
    assert run(place, {"requirements": ["glia-demo"], "packages": None}, "true")[0] == 0
    rc, _, err = run(place, {"requirements": "none.txt"}, "true")
    assert rc == 78 and "none.txt" in err


def test_an_environment_that_is_there_is_used_as_it_is(place):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "mine"], check=True)
    rc, out, err = run(place, {"path": str(place / "mine")}, "python3", "-c",
                       "import sys; print(sys.prefix)")
    assert rc == 0 and out.strip() == str(place / "mine"), err
    rc, _, err = run(place, {"path": str(place / "none")}, "true")
    assert rc == 78
    GOLDEN.says("no environment", err, [place])


@pytest.mark.parametrize("spec", [
    "{", "[]", {"packages": [1]}, {"requirements": 3}, {"packages": ["-r x"]},
    {"packages": ["x @ https://example.org/x.whl"]}, {"packages": ["glia-demo>=new"]},
    {"packages": ["glia-demo; what == '1'"]}])
def test_what_makes_no_sense_is_refused(place, spec):
    rc, out, err = run(place, spec, "true")
    assert rc == 78 and out == "", err
    name = spec if isinstance(spec, str) else "".join(str(v) for v in spec.values())
    GOLDEN.says(f"no sense, {name}", err,
                [place, re.compile(r"3\.\S+ \(\S+\)|(?<=; installed: ).*")])


def test_many_at_once_make_one(place):
    many = [pyenv(place, {"packages": ["glia-demo"]}, "python3", "-c", "import glia_demo")
            for _ in range(8)]
    for p in many:
        _, err = p.communicate(timeout=120)
        assert p.returncode == 0, err
    assert len(made(place)) == 1


def test_what_another_has_just_renamed_is_no_obstacle(place):
    """Its name was listed, and now there is nothing of that name."""
    (place / "cache" / "others.1.tmp").symlink_to(place / "nowhere")
    rc, out, err = run(place, {"packages": ["glia-demo"]}, "sh", "-c", "echo fine")
    assert rc == 0 and out == "fine\n", err


def test_the_workers_own_modules_do_not_get_in_the_way(place):
    for name in ("re.py", "venv.py", "glob.py", "importlib.py"):
        (place / "work" / name).write_text("raise SystemExit('mine')\n")
    rc, out, err = run(place, {"packages": ["glia-demo"]}, "sh", "-c", "echo fine")
    assert rc == 0 and out == "fine\n", err


def test_a_command_that_is_not_there_is_named(place):
    rc, _, err = run(place, {}, "no-such-command")
    assert rc == 127
    GOLDEN.says("no command", err, [place])
    rc, _, err = run(place, {}, "true", PATH=str(place))
    assert rc == 78
    GOLDEN.says("no python", err, [place])
