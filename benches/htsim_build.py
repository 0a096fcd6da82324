"""Find a checkout of htsim (csg-htsim), and compile `htsim_peer.cc` against its library."""

import os
import subprocess
from pathlib import Path

from peers_rows import PeersError
from programs import FOLDER, WORK, cpp_compiler, must_run, say

# The environment variable with the folder, if `--htsim` is not given.
HTSIM_VARIABLE = "HTSIM"

# The parts of htsim's library that TCP, queues and pipes need. The whole library takes four times as long to compile.
HTSIM_SOURCES = (
    "config",
    "eth_pause_packet",
    "eventlist",
    "fairpullqueue",
    "logfile",
    "loggers",
    "mtcp",
    "ndppacket",
    "network",
    "pipe",
    "queue",
    "rng",
    "route",
    "tcp",
    "tcppacket",
)

# htsim's Makefile also uses -O3. Assertions are off, as in sparelane.
HTSIM_FLAGS = ("-std=c++20", "-O3", "-march=native", "-DNDEBUG", "-w")


def htsim_folder(given: Path | None) -> Path | None:
    """Return the checkout that the option or the environment names, or `None` if neither does.

    Raises:
        PeersError: The folder is not a checkout of csg-htsim.
    """
    from_environment = os.environ.get(HTSIM_VARIABLE)
    if given is None and not from_environment:
        return None
    origin = "--htsim" if given is not None else HTSIM_VARIABLE
    folder = given if given is not None else Path(from_environment or "")
    if not folder.is_dir():
        raise PeersError(f'{origin}: there is no folder "{folder}"; allowed: a checkout of csg-htsim')
    missing = [name for name in HTSIM_SOURCES if not _source(folder, name).is_file()]
    if missing:
        raise PeersError(
            f'{origin}: the folder "{folder}" is not a checkout of csg-htsim, because it has no sim/{missing[0]}.cpp'
        )
    return folder.resolve()


def htsim_commit(folder: Path) -> str:
    """Return the commit of a checkout, marked if files of `sim` differ from it, or `unknown` without Git."""
    top = _git(folder, "rev-parse", "--show-toplevel")
    # A copy without .git inside another repository has no commit of its own.
    if top is None or Path(top).resolve() != folder.resolve():
        return "unknown"
    commit = _git(folder, "rev-parse", "HEAD")
    if commit is None:
        return "unknown"
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no", "--", "sim")
    return f"{commit} with local changes" if changes else commit


def build_htsim_program(folder: Path) -> Path:
    """Compile the driver with htsim's sources, unless the program is newer than both, and return the program's path."""
    program, origin = WORK / "htsim_peer", WORK / "htsim_peer.origin"
    driver = FOLDER / "htsim_peer.cc"
    sources = [_source(folder, name) for name in HTSIM_SOURCES]
    description = f"{folder}\n{htsim_commit(folder)}\n{' '.join(HTSIM_FLAGS)}\n"
    inputs = [driver, *FOLDER.glob("*.h"), *sources, *(folder / "sim").glob("*.h")]
    if program.exists() and origin.exists() and origin.read_text(encoding="utf-8") == description:
        built = program.stat().st_mtime
        if all(path.stat().st_mtime < built for path in inputs):
            return program
    compiler = cpp_compiler("htsim")
    say("compiling htsim and htsim_peer.cc, which takes about half a minute")
    unfinished = program.with_suffix(".new")
    must_run(
        [
            *(compiler, *HTSIM_FLAGS, "-I", str(FOLDER), "-I", str(folder / "sim")),
            *(str(driver), *map(str, sources), "-o", str(unfinished)),
        ],
        "cannot compile htsim_peer.cc with htsim",
    )
    unfinished.replace(program)
    origin.write_text(description, encoding="utf-8")
    return program


def _source(folder: Path, name: str) -> Path:
    return folder / "sim" / f"{name}.cpp"


def _git(folder: Path, *arguments: str) -> str | None:
    """Return the output of a Git command, or `None` if it fails or Git is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
