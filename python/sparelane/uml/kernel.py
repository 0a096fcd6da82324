"""Builds the kernel that runs scenarios from the distribution's source package, and keeps it in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sparelane._native import LinuxError
from sparelane.common import folders

FILES = Path(__file__).parent / "source"
# The long-term kernel for which the configuration and the patches are written.
RELEASE = "6.12"
ARCHIVE = Path(f"/usr/src/linux-source-{RELEASE}.tar.xz")
PACKAGES = f"linux-source-{RELEASE} gcc make flex bison bc libelf-dev xz-utils patch iproute2"
MEND = f"sudo apt-get install -y {PACKAGES}"
TOOLS = ("gcc", "make", "flex", "bison", "bc", "xz", "patch", "ip", "tc")
# Own parts of the kernel, each a folder below net/ipv4: a controller, and the code that serves the sockets of flows.
OWN_PARTS = (FILES / "rtcp", FILES / "traffic")
# These settings make builds reproducible: every build of the same source gives the same kernel, bit for bit.
SAME_EACH_TIME = (
    "KBUILD_BUILD_TIMESTAMP=Thu Jan  1 00:00:00 UTC 1970",
    "KBUILD_BUILD_VERSION=1",
    "KBUILD_BUILD_USER=sparelane",
    "KBUILD_BUILD_HOST=sparelane",
)
# RC3 in a kernel: no patches, patches with the option on, or patches with the option off.
Rc3 = Literal["none", "on", "off"]
# The size of the unpacked source and its objects, bytes.
BUILD_BYTES = 2_500_000_000
# The approximate number of files that the build compiles; for progress only.
COMPILED_FILES = 900


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel that is ready to run.

    Attributes:
        binary: the kernel, a program of the host.
        guest: the program that the kernel starts.
        key: a fingerprint of the sources of the kernel.
    """

    binary: Path
    guest: Path
    key: str


def cache_folder() -> Path:
    """The folder of kernels: `sparelane/linux` in the user's cache."""
    return folders.cache_folder("linux")


def find(rc3: Rc3 = "none") -> Kernel | None:
    """The kernel of this version of the package with this form of RC3, if it has been built."""
    place = cache_folder() / _key(rc3)
    kernel = Kernel(place / "linux", place / _guest_name(), place.name)
    return kernel if kernel.binary.is_file() and kernel.guest.is_file() else None


def build(progress: Callable[[float], object], jobs: int, rc3: Rc3 = "none") -> Kernel:
    """Builds the kernel, unless it exists already. The build takes about eight minutes of processor time.

    Args:
        progress: called with the approximate share of the work that is done, 0 to 1.
        jobs: the number of compilers that run at once.
        rc3: the form of RC3 in the kernel.

    Raises:
        LinuxError: a tool, the source package or disk space is missing, or the build failed; no file is left behind.
        OSError: the cache cannot be written.
    """
    if (there := find(rc3)) is not None:
        return there
    _require_tools()
    key = _key(rc3)
    cache = cache_folder()
    cache.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(cache).free
    if free < BUILD_BYTES:
        raise LinuxError(
            f"{cache}: {free / 1e9:.1f} GB are free, and the build of the kernel takes {BUILD_BYTES / 1e9:.1f} GB; "
            "XDG_CACHE_HOME=/a/larger/disk chooses another place"
        )
    with tempfile.TemporaryDirectory(prefix="building-", dir=cache) as work:
        ready = Path(work) / "ready"
        ready.mkdir()
        _compile_guest(ready / _guest_name())
        if (cache / key / "linux").is_file():
            (ready / _guest_name()).rename(cache / key / _guest_name())
            return _built(cache / key, rc3)
        _compile_kernel(Path(work), ready / "linux", progress, jobs, rc3)
        try:
            ready.rename(cache / key)
        except OSError:
            # Another process may have built the same kernel meanwhile.
            if find(rc3) is None:
                raise
    return _built(cache / key, rc3)


def _built(place: Path, rc3: Rc3) -> Kernel:
    if (built := find(rc3)) is None:
        raise LinuxError(f"{place}: the kernel was built, and is not there; allowed: a cache that keeps files")
    return built


def _require_tools() -> None:
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    missing = [tool for tool in TOOLS if shutil.which(tool, path=path) is None]
    if not ARCHIVE.is_file():
        missing.append(str(ARCHIVE))
    if missing:
        raise LinuxError(f"the kernel cannot be built without {', '.join(missing)}: {MEND}")


def _made_of(rc3: Rc3) -> tuple[list[Path], list[Path]]:
    """The files of the kernel's configuration, and its patches in the order of application."""
    folders = [FILES / "patches", *([] if rc3 == "none" else [FILES / "rc3"])]
    patches = [patch for folder in folders for patch in sorted(folder.glob("*.patch"))]
    return [FILES / "kernel.config", *([FILES / "rc3" / "kernel.config"] if rc3 == "on" else [])], patches


def _own_files(part: Path) -> list[Path]:
    """The sources of an own part, including its Makefile."""
    return sorted(path for path in part.iterdir() if path.is_file())


def _add_own_parts(tree: Path) -> None:
    ipv4 = tree / "net" / "ipv4"
    for part in OWN_PARTS:
        (ipv4 / part.name).mkdir()
        for path in _own_files(part):
            shutil.copyfile(path, ipv4 / part.name / path.name)
        with (ipv4 / "Makefile").open("a") as makefile:
            makefile.write(f"obj-y += {part.name}/\n")


def _key(rc3: Rc3) -> str:
    """A fingerprint of all sources of the kernel. Its first program is not part of the kernel."""
    mixed = hashlib.sha256()
    configurations, patches = _made_of(rc3)
    own = (path for part in OWN_PARTS for path in _own_files(part))
    for path in (*configurations, *patches, *own):
        mixed.update(path.name.encode() + b"\0" + path.read_bytes())
    mixed.update("\0".join(SAME_EACH_TIME).encode())
    # The version of the package; on systems without dpkg, the size of the archive tells versions apart.
    query = ["dpkg-query", "-W", "-f", "${Version}", f"linux-source-{RELEASE}"]
    try:
        version = subprocess.run(query, capture_output=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        version = str(ARCHIVE.stat().st_size).encode() if ARCHIVE.is_file() else b""
    mixed.update(version)
    return f"{RELEASE}-{mixed.hexdigest()[:16]}"


def _guest_name() -> str:
    """The name of the guest's program, with a fingerprint of its own, since it compiles without a new kernel."""
    mixed = hashlib.sha256()
    for path in (*sorted(FILES.glob("*.[ch]")), FILES / "traffic" / "traffic.h"):
        mixed.update(path.name.encode() + b"\0" + path.read_bytes())
    return f"guest-{mixed.hexdigest()[:16]}"


def _compile_guest(target: Path) -> None:
    sources = [str(path) for path in sorted(FILES.glob("*.c"))]
    _call(["gcc", "-static", "-O2", "-Wall", "-Wextra", "-o", str(target), *sources], target.parent)


def _compile_kernel(work: Path, target: Path, progress: Callable[[float], object], jobs: int, rc3: Rc3) -> None:
    _call(["tar", "xf", str(ARCHIVE)], work)
    tree = work / ARCHIVE.name.removesuffix(".tar.xz")
    configurations, patches = _made_of(rc3)
    for patch in patches:
        _call(["patch", "-p1", "--forward", "--silent", "-i", str(patch)], tree)
    _add_own_parts(tree)
    wanted = work / "kernel.config"
    wanted.write_text("".join(path.read_text() for path in configurations))
    _call(["make", "ARCH=um", "allnoconfig", f"KCONFIG_ALLCONFIG={wanted}"], tree)
    _require_configuration(tree / ".config", wanted)
    log = work / "build.log"
    with (
        log.open("w") as errors,
        subprocess.Popen(
            ["make", "ARCH=um", f"-j{jobs}", *SAME_EACH_TIME, "linux"],
            cwd=tree,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as make,
    ):
        assert make.stdout is not None
        try:
            for count, _ in enumerate(line for line in make.stdout if line.startswith("  CC")):
                progress(min(count / COMPILED_FILES, 0.99))
        except BaseException:
            make.terminate()
            raise
    if make.returncode:
        raise LinuxError(f"the kernel's build failed: {_last_line(log.read_text())}")
    _call(["strip", "-o", str(target), "linux"], tree)
    progress(1.0)


def _require_configuration(path: Path, asked: Path) -> None:
    """Raises if the configuration lacks a requested option. The build would ignore an unknown option silently."""
    set_options = set(path.read_text().splitlines())
    wanted = [line for line in asked.read_text().splitlines() if line.startswith("CONFIG_")]
    missing = [line for line in wanted if line not in set_options]
    if missing:
        raise LinuxError(f"{ARCHIVE}: this kernel has no {', '.join(missing)}; allowed: Linux {RELEASE}")


def _call(words: list[str], folder: Path) -> None:
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise LinuxError(f"the kernel's build failed at {words[0]}: {_last_line(done.stderr or done.stdout)}")


def _last_line(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "no message"
