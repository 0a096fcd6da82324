"""Install the packaged ns-3, and compile programs against it."""

import sys
from pathlib import Path

from programs import FOLDER, WORK, cpp_compiler, must_run, say

NS3_VERSION = "3.44.post0"
NS3_LIBRARY_PREFIX = "ns3.44-"
NS3_LIBRARIES = ("core", "network", "internet", "point-to-point", "traffic-control", "stats", "bridge")
NS3_VENV = WORK / "ns3-venv"


def ns3_package() -> Path:
    """Install ns-3 if needed, and return its folder, which contains `include` and `lib64`."""
    if not list(NS3_VENV.glob(f"lib/python*/site-packages/ns3-{NS3_VERSION}.dist-info")):
        say(f"installing ns-3 {NS3_VERSION} into {NS3_VENV}")
        hint = "it has wheels for Linux on x86-64 and CPython 3.11 to 3.13, and needs access to the package index"
        must_run([sys.executable, "-m", "venv", "--clear", str(NS3_VENV)], f"cannot create {NS3_VENV}")
        # Skip the dependencies, which only ns-3's Python bindings need and which take long to build.
        pip = [str(NS3_VENV / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        wheel = ["--no-deps", "--only-binary", ":all:", f"ns3=={NS3_VERSION}"]
        must_run([*pip, *wheel], f"cannot install ns-3 {NS3_VERSION}: {hint}")
    return next(NS3_VENV.glob("lib/python*/site-packages/ns3"))


def build_ns3_program(name: str) -> Path:
    """Compile `NAME.cc` unless the program is newer than its source and ns-3, and return the program's path."""
    source, program = FOLDER / f"{name}.cc", WORK / name
    package = ns3_package()
    if program.exists() and program.stat().st_mtime > max(
        path.stat().st_mtime for path in (source, *FOLDER.glob("*.h"), package)
    ):
        return program
    compiler = cpp_compiler("ns-3")
    say(f"compiling {source.name}")
    libraries = package / "lib64"
    unfinished = program.with_suffix(".new")
    must_run(
        [
            *(compiler, "-std=c++20", "-O3", "-march=native"),
            # ns-3's headers need the options with which the package was built.
            *("-DNS3_LOG_ENABLE", "-DNS3_ASSERT_ENABLE", "-DNS3_BUILD_PROFILE_RELEASE"),
            *("-isystem", str(package / "include"), str(source), "-o", str(unfinished)),
            *(f"-L{libraries}", *(f"-l{NS3_LIBRARY_PREFIX}{name}" for name in NS3_LIBRARIES)),
            # ns-3's libraries find each other through the program's RPATH; a RUNPATH does not apply to them.
            *(f"-Wl,-rpath,{libraries}", "-Wl,--allow-shlib-undefined", "-Wl,--disable-new-dtags"),
        ],
        f"cannot compile {source.name}",
    )
    unfinished.replace(program)
    return program
