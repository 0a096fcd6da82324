"""ns-3 as it is packaged: installed the first time, and programs compiled against it."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import workloads
from peers_rows import PeersError

FOLDER = Path(__file__).resolve().parent
WORK = workloads.DEFAULT_FOLDER

NS3_VERSION = "3.44.post0"
NS3_LIBRARY_PREFIX = "ns3.44-"
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "traffic-control", "stats", "bridge")
NS3_VENV = WORK / "ns3-venv"


def ns3_package() -> Path:
    """The folder of the installed ns-3, with `include` and `lib64`; installs it the first time."""
    if not list(NS3_VENV.glob(f"lib/python*/site-packages/ns3-{NS3_VERSION}.dist-info")):
        say(f"installing ns-3 {NS3_VERSION} into {NS3_VENV}")
        hint = "it has wheels for Linux on x86-64 and CPython 3.11 to 3.13, and needs the package index to be in reach"
        must_run([sys.executable, "-m", "venv", "--clear", str(NS3_VENV)], f"cannot make {NS3_VENV}")
        # Without its dependencies: they only serve ns-3's Python bindings, and take long to build.
        pip = [str(NS3_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wheel = ["--no-deps", "--only-binary", ":all:", f"ns3=={NS3_VERSION}"]
        must_run([*pip, *wheel], f"cannot install ns-3 {NS3_VERSION}: {hint}")
    return next(NS3_VENV.glob("lib/python*/site-packages/ns3"))


def build_ns3_program(name: str) -> Path:
    """Compile `NAME.cc`, unless the program is newer than its source and than ns-3; the program."""
    source, program = FOLDER / f"{name}.cc", WORK / name
    package = ns3_package()
    if program.exists() and program.stat().st_mtime > max(
        path.stat().st_mtime for path in (source, *FOLDER.glob("ns3_*.h"), package)
    ):
        return program
    compiler = shutil.which("g++")
    if compiler is None:
        raise PeersError("there is no g++, which ns-3's side of the comparison needs; on Debian: apt install g++")
    say(f"compiling {source.name}")
    libraries = package / "lib64"
    unfinished = program.with_suffix(".new")
    must_run(
        [
            *(compiler, "-std=c++20", "-O3", "-march=native"),
            # As the package was built; ns-3's headers depend on it.
            *("-DNS3_LOG_ENABLE", "-DNS3_ASSERT_ENABLE", "-DNS3_BUILD_PROFILE_RELEASE"),
            *("-isystem", str(package / "include"), str(source), "-o", str(unfinished)),
            *(f"-L{libraries}", *(f"-l{NS3_LIBRARY_PREFIX}{name}" for name in NS3_LIBRARIES)),
            # ns-3's libraries find each other through the program's search path; only an old-style one reaches them.
            *(f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined", "-Wl,--disable-new-dtags"),
        ],
        f"cannot compile {source.name}",
    )
    unfinished.replace(program)
    return program


def must_run(command: Sequence[str], failure: str, limit_s: float | None = None) -> str:
    """Run a program; its standard output. Raises with `failure` and the end of what it said when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=limit_s)
    if done.returncode != 0:
        said = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise PeersError(f"{failure} (exit status {done.returncode})\n{said}")
    return done.stdout


def say(what: str) -> None:
    """Tell a person what goes on."""
    print(f"benches: {what}", file=sys.stderr, flush=True)
