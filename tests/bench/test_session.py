"""bench/session.py: jobs in order, beside each other, within their time; every plan in the repository can be read."""

from __future__ import annotations

import importlib.util
import re
import sys
import tarfile
import time
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("session")


def run(session: ModuleType, plan: str, out: Path, seconds: float) -> list[str]:
    """The session's log without its clock."""
    file = out.parent / "plan.toml"
    file.write_text(plan)
    words = {"python": sys.executable, "out": str(out), "bench": str(BENCH)}
    session.Session(session.read_plans([file]), out, time.monotonic() + seconds, words).run()
    return [line.split(" s  ", 1)[1] for line in (out / "session.log").read_text().splitlines()]


PLAN = """
[[job]]
name = "data"
background = true
command = ["{python}", "-c", "import time; time.sleep(1.0); open('{out}/data.txt', 'w').write('here')"]

[[job]]
name = "first"
at_most = 40
command = ["{python}", "-c", "import os; print('{seconds} {minutes}', os.environ['PLACE'])"]
environment = { PLACE = "in {out}" }

[[job]]
name = "second"
needs = ["data"]
command = ["{python}", "-c", "assert open('{out}/data.txt').read() == 'here'; raise SystemExit(3)"]

[[job]]
name = "third"
needs = ["second"]
command = ["{python}", "-c", "pass"]

[[job]]
name = "long"
at_least = 1000
command = ["{python}", "-c", "pass"]
"""


def test_jobs_run_in_order_and_what_failed_is_not_built_upon(session: ModuleType, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = run(session, PLAN, out, 100.0)
    assert (out / "first.log").read_text() == f"40 0.667 in {out}\n"
    assert [line.split(" after")[0] for line in said if "begins" not in line] == [
        "first: done", "data: done", "second: failed (3)", "third: left out, second failed",
        next(line for line in said if line.startswith("long")), "session over",
    ]  # fmt: skip
    assert "too few" in next(line for line in said if line.startswith("long"))
    again = run(session, PLAN, out, 100.0)[len(said) :]
    assert not any(line.startswith(("first", "data")) for line in again), "finished jobs are not run again"
    session.collect(out, tmp_path / "all.tgz")
    with tarfile.open(tmp_path / "all.tgz") as tar:
        assert {"first.log", "session.log", "data.txt"} <= set(tar.getnames())


def test_a_job_that_overruns_is_interrupted_and_may_save(
    session: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "GRACE", 8.0)
    code = "import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: print('saved')"
    plan = f'[[job]]\nname = "slow"\nat_most = 3\nat_least = 1\ncommand = ["{{python}}", "-c", """{code}"""]\n'
    said = run(session, plan, tmp_path / "out", 60.0)
    assert any(line.startswith("slow: done") for line in said)
    assert (tmp_path / "out" / "slow.log").read_text() == "saved\n"


def test_a_detached_session_is_started_once_and_again_only_where_asked(
    session: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, flag = tmp_path / "plan.toml", tmp_path / "flag"
    code = f"import os; raise SystemExit(0 if os.path.exists({str(flag)!r}) else 3)"
    plan.write_text(f'[[job]]\nname = "part"\ncommand = ["{{python}}", "-c", """{code}"""]\n')
    out = tmp_path / "out"

    def call(*more: str) -> str:
        words = ["session.py", str(plan), "--out", str(out), "--seconds", "100", "--detach", "--wait", "60", *more]
        monkeypatch.setattr(sys, "argv", words)
        session.main()
        return capsys.readouterr().out

    assert call().count("failed (3)") == 1
    flag.touch()
    assert "done after" not in call()
    assert "done after" in call("--again", "--collect", str(tmp_path / "all.tgz"))
    assert (tmp_path / "all.tgz").is_file()


def test_a_plan_cannot_need_what_comes_later(session: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "plan.toml"
    file.write_text('[[job]]\nname = "a"\ncommand = ["true"]\nneeds = ["b"]\n')
    with pytest.raises(SystemExit, match="a needs b"):
        session.read_plans([file])


def test_two_plans_are_one_and_a_waiting_background_job_holds_up_nobody(session: ModuleType, tmp_path: Path) -> None:
    first, second = tmp_path / "one.toml", tmp_path / "two.toml"
    sleep = """command = ["{python}", "-c", "import time; time.sleep(%s)"]\n"""
    first.write_text(
        '[[job]]\nname = "log"\nbackground = true\n' + sleep % 1.5
        + '[[job]]\nname = "train"\nbackground = true\nneeds = ["log"]\n' + sleep % 0.1
    )  # fmt: skip
    second.write_text('[[job]]\nname = "quick"\n' + sleep % 0.1 + '[[job]]\nname = "last"\n' + sleep % 2.5)
    jobs = session.read_plans([first, second])
    session.Session(jobs, tmp_path / "out", time.monotonic() + 100.0, {"python": sys.executable}).run()
    said = [line.split(" s  ", 1)[1] for line in (tmp_path / "out" / "session.log").read_text().splitlines()]
    order = [line.split(",")[0].split(" after")[0] for line in said]
    assert order == [
        "log: begins", "quick: begins", "quick: done", "last: begins", "log: done", "train: begins", "train: done",
        "last: done", "session over",
    ]  # fmt: skip
    with pytest.raises(SystemExit, match="quick is the name of two jobs"):
        session.read_plans([second, second])


@pytest.mark.parametrize("path", sorted((BENCH / "plans").glob("*.toml")), ids=lambda path: path.stem)
def test_every_plan_can_be_read_and_names_modules_that_exist(session: ModuleType, path: Path) -> None:
    words = dict.fromkeys(re.findall(r"\{(\w+)\}", path.read_text()), "x")  # what --set names is the caller's
    words |= {"bench": str(BENCH), "study": "table1"}
    for job in session.read_plans([path]):
        filled = [word.format(**words) for word in job.command]
        if "-m" in filled:
            assert importlib.util.find_spec(filled[filled.index("-m") + 1]) is not None
        assert all(Path(word).is_file() for word in filled if word.endswith(".py"))
