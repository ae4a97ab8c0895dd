"""Commands that are killed or meet each other, in a process of their own without threads, which can fork.

``python -m tests.torture.crashing FUNCTION ARGUMENT...``.  A try is a fork with everything imported, so what is killed
is work and not the start of Python; it leads a process group of its own, and its folders lie elsewhere.
"""

import os
import random
import signal
import sys
import time
from contextlib import suppress
from functools import partial
from itertools import cycle
from pathlib import Path

from cdfsg import __main__ as cli
from cdfsg.datasets.download import Source, obtain
from cdfsg.paper import archive, compute, experiments
from tests.paper.fakes import TINY
from tests.project import python, replace_and

EXPERIMENTS = {"tiny": TINY, "digits": experiments.QUICK}
STEPS = 6
"""Kills in the time of an undisturbed run, on average; what was finished stays, so a run takes about so many tries."""


def do(*arguments: object) -> str:
    """Run a function of this module in its process, and give what it prints."""
    done = python("-m", "tests.torture.crashing", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def redirect(folder: Path, experiment: str) -> None:
    """Let all that the commands write go to `folder`, and leave out the notebooks of ``quick``."""
    cli.RUNS = folder / "runs"
    cli.RECORDS = cli.FIGURES = cli.NOTEBOOKS = cli.ROOT = folder / "unused"
    cli.KEPT = compute.KEPT = folder / "kept"
    cli.QUICK = archive.QUICK = folder / "quick"
    experiments.QUICK = EXPERIMENTS[experiment]
    cli._execute = lambda tasks, jobs: None
    cli._COMMANDS["verdict"] = (lambda _: None), "", ""  # writes into the repository wherever records are


def warm(experiment: str) -> None:
    """Load the data before any fork: tries are then short, and what is killed is work."""
    for job in EXPERIMENTS[experiment].jobs():
        compute.key_of(job)


def start(folder: Path, experiment: str, arguments: list[str], write=os.replace) -> int:
    """Fork a command into a process group of its own; its output is appended to ``folder.log``."""
    child = os.fork()
    if child:
        return child
    os.setsid()
    log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    redirect(folder, experiment)
    os.replace = write
    sys.exit(cli.main(arguments))  # and not os._exit: joblib ends its workers at exit


def finished(child: int, seconds: float = float("inf")) -> int | None:
    """Exit status of a child, negative for a signal, or None if it still runs after some seconds."""
    end = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if time.monotonic() > end:
            return None
        time.sleep(0.002)


def storm(folder: str, experiment: str, kills: str, jobs: str, whole: str, seed: str) -> None:
    """Runs in ``folder/0``, undisturbed, and in ``folder/1``, ... killed at random moments until they end.

    If `whole`, a kill is of the command with its workers, else of the command alone.
    """
    arguments = ["quick", "--jobs", jobs]
    warm(experiment)
    began = time.monotonic()
    assert finished(start(Path(folder, "0"), experiment, arguments)) == 0
    pause, rng = 2 / STEPS * (time.monotonic() - began), random.Random(int(seed))
    left, number, killed = int(kills), 1, []
    while left:
        child = start(Path(folder, str(number)), experiment, arguments)
        status = finished(child, rng.uniform(0, pause))
        if status is None:
            with suppress(ProcessLookupError):  # it does not lead its group yet
                os.killpg(child, signal.SIGKILL) if whole == "True" else killed.append(child)
            os.kill(child, signal.SIGKILL)
            finished(child)
            print("killed", number, flush=True)
            left -= 1
        else:
            assert status == 0
            number += 1
    assert finished(start(Path(folder, str(number)), experiment, arguments)) == 0
    for group in killed:  # workers that outlived their parent would wait for work for five minutes
        with suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


def writes(folder: str, experiment: str) -> None:
    """Runs that are killed before a write gets its name (in ``folder/1``) or after it (in ``folder/2``).

    It is the first, second or third write of a try by turns: always the same one could for ever be that of a wall time,
    which is measured anew.
    """
    arguments = ["quick", "--jobs", "1"]
    warm(experiment)
    assert finished(start(Path(folder, "0"), experiment, arguments)) == 0
    for number, before in enumerate([True, False], start=1):
        for at in cycle((1, 2, 3)):
            write = replace_and(partial(os.killpg, 0, signal.SIGKILL), at, before)
            status = finished(start(Path(folder, str(number)), experiment, arguments, write))
            if status == 0:
                break
            assert status == -signal.SIGKILL
            print("killed", number, flush=True)


def race(folder: str, second: str) -> None:
    """A run in ``folder/1`` and, while it is at work, the command `second` there, which is refused; then that again."""
    here = Path(folder, "1")
    warm("tiny")
    assert finished(start(Path(folder, "0"), "tiny", ["quick", "--jobs", "1"])) == 0
    first = start(here, "tiny", ["quick", "--jobs", "1"])
    while not ((here / "lock").exists() and (here / "lock").read_text()):
        assert finished(first, 0.001) is None
    assert finished(start(here, "tiny", [second])) == 1
    assert finished(first) == 0
    told = here.with_suffix(".log").read_text()
    assert f"cdfsg: cdfsg quick (process {first} on " in told and f"and cdfsg {second} would write" in told, told
    assert finished(start(here, "tiny", [second])) == 0


def downloads(folder: str, count: str) -> None:
    """Several processes that fetch one file at once, after one that is killed while it writes."""
    os.environ["CDFSG_DATA_DIR"] = folder
    content, plain = b"the right bytes" * 10_000, os.replace

    def fetch(replaced) -> int:
        child = os.fork()
        if child:
            return child
        os.replace = replaced
        source = Source("a mirror", lambda: time.sleep(0.1) or content)
        sys.exit(not obtain("x", "md5:6b1d37af7d98624ed5016dbbc2477416", [source]).exists())

    assert finished(fetch(lambda *_: os.kill(os.getpid(), signal.SIGKILL))) == -signal.SIGKILL
    (left,) = os.listdir(folder)
    os.utime(Path(folder, left), (0, 0))
    for child in [fetch(lambda *names: time.sleep(0.1) or plain(*names)) for _ in range(int(count))]:
        print(finished(child))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
