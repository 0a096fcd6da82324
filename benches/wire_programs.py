"""Compare `sparelane send` with scp and rsync: time and processor time between two network namespaces without delay.

A program that is missing is named and left out. The namespaces are joined by one pair of
virtual interfaces, with all offloads that Linux has by default. All programs run alternately, each with an empty
destination. The processor time of a server is what it and its finished children used during the transfer.

The servers are started before, so that the times contain the start of the client only. All programs encrypt, except
the rsync daemon. sparelane forces received files to the disk by default, as rsync does with `--fsync`; scp does not.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from wire_transfers import say

from sparelane._native import WireError
from sparelane.emulation import namespaces

SENDER, RECEIVER = "10.92.1.1", "10.92.1.2"
SSH_PORT, RSYNC_PORT, WIRE_PORT = 2222, 8873, 7777

# Sizes of the large file, and number and size of the small files.
LARGE_BYTES, FILES, FILE_BYTES = 200_000_000, 2_000, 3_000

# A server that does not answer within this time has failed, seconds; a transfer within the other one.
START_S, LIMIT_S = 10.0, 120.0

SPARELANE = [sys.executable, "-m", "sparelane"]
SSHD = "/usr/sbin/sshd"


@dataclass(frozen=True, slots=True)
class Place:
    """The namespaces, and folders for keys, files to send, and received files."""

    sender: str
    receiver: str
    folder: Path

    @property
    def inbox(self) -> Path:
        """The folder of received files."""
        return self.folder / "inbox"

    def at(self, namespace: str, line: Sequence[str]) -> list[str]:
        """Return a command line that runs in a namespace."""
        return ["ip", "netns", "exec", namespace, *line]


@dataclass(frozen=True, slots=True)
class Program:
    """A program that copies a path to the receiver's inbox.

    Attributes:
        name: the name in the table.
        needs: the programs that must be installed.
        client: makes the command line of the sender for a path.
        server: the name of its server, one of `SERVERS`.
    """

    name: str
    needs: tuple[str, ...]
    client: Callable[[Place, Path], list[str]]
    server: str


def ssh_options(place: Place) -> list[str]:
    """Return options with which ssh and scp use the measurement's own keys."""
    options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "BatchMode=yes")
    return ["-i", str(place.folder / "key"), *(word for option in options for word in ("-o", option))]


def rsync_over_ssh(place: Place, path: Path, *options: str) -> list[str]:
    """Return the command line of rsync over ssh."""
    shell = " ".join(["ssh", "-p", str(SSH_PORT), *ssh_options(place)])
    return ["rsync", "-a", *options, "-e", shell, str(path), f"root@{RECEIVER}:{place.inbox}/"]


def send(place: Place, path: Path) -> list[str]:
    """Return the command line of `sparelane send`."""
    return [*SPARELANE, "send", "--keys", str(place.folder / "ours"), str(path), f"{RECEIVER}:{WIRE_PORT}"]


def scp(place: Place, path: Path) -> list[str]:
    """Return the command line of scp."""
    return ["scp", "-q", "-r", "-P", str(SSH_PORT), *ssh_options(place), str(path), f"root@{RECEIVER}:{place.inbox}/"]


PROGRAMS = (
    Program("sparelane", (), send, "recv"),
    Program("scp", ("scp", SSHD), scp, "sshd"),
    Program("rsync over ssh", ("rsync", "ssh", SSHD), rsync_over_ssh, "sshd"),
    Program(
        "rsync over ssh, fsync",
        ("rsync", "ssh", SSHD),
        lambda place, path: rsync_over_ssh(place, path, "--fsync"),
        "sshd",
    ),
    Program(
        "rsync daemon (plain)",
        ("rsync",),
        lambda place, path: ["rsync", "-a", str(path), f"rsync://{RECEIVER}:{RSYNC_PORT}/inbox/"],
        "rsync",
    ),
)


def recv_line(place: Place) -> list[str]:
    """Prepare keys, and return the command line of `sparelane recv`."""
    fingerprints = {
        side: subprocess.run(
            [*SPARELANE, "keys", "new", "--quiet", "--keys", str(place.folder / side)],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for side in ("ours", "theirs")
    }
    for side, other in (("ours", "theirs"), ("theirs", "ours")):
        trust = [*SPARELANE, "keys", "trust", "--keys", str(place.folder / side), fingerprints[other]]
        subprocess.run(trust, capture_output=True, check=True)
    keys = ["--keys", str(place.folder / "theirs")]
    return [*SPARELANE, "recv", *keys, "--listen", f"{RECEIVER}:{WIRE_PORT}", "-o", str(place.inbox)]


def sshd_line(place: Place) -> list[str]:
    """Prepare keys and configuration, and return the command line of sshd."""
    for name in ("host", "key"):
        make = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(place.folder / name)]
        subprocess.run(make, check=True, stdin=subprocess.DEVNULL)
    shutil.copy(place.folder / "key.pub", place.folder / "authorized")
    # sshd demands this folder, which the distribution's service makes.
    Path("/run/sshd").mkdir(exist_ok=True)
    settings = {
        "Port": SSH_PORT,
        "ListenAddress": RECEIVER,
        "HostKey": place.folder / "host",
        "AuthorizedKeysFile": place.folder / "authorized",
        "StrictModes": "no",
        "PidFile": "none",
        "Subsystem": "sftp internal-sftp",
    }
    (place.folder / "sshd.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    return [SSHD, "-D", "-f", str(place.folder / "sshd.conf")]


def rsync_line(place: Place) -> list[str]:
    """Write the configuration, and return the command line of the rsync daemon."""
    lines = ("use chroot = no", "uid = 0", "gid = 0", "[inbox]", f"path = {place.inbox}", "read only = no")
    (place.folder / "rsyncd.conf").write_text("".join(f"{line}\n" for line in lines))
    daemon = ["rsync", "--daemon", "--no-detach", f"--config={place.folder / 'rsyncd.conf'}"]
    return [*daemon, f"--address={RECEIVER}", f"--port={RSYNC_PORT}"]


# The server of each name: its command line, and the protocol and port at which it listens.
SERVERS: dict[str, tuple[Callable[[Place], list[str]], str, int]] = {
    "recv": (recv_line, "udp", WIRE_PORT),
    "sshd": (sshd_line, "tcp", SSH_PORT),
    "rsync": (rsync_line, "tcp", RSYNC_PORT),
}


@contextmanager
def pair() -> Iterator[tuple[str, str]]:
    """Create two namespaces joined by a pair of virtual interfaces, and delete them at the end."""
    number = os.getpid() % 10000
    sender, receiver = f"sl{number}s", f"sl{number}r"
    with ExitStack() as stack:
        for namespace in (sender, receiver):
            stack.callback(subprocess.run, ["ip", "netns", "del", namespace], capture_output=True, check=False)
            namespaces.run("ip", "netns", "add", namespace)
            namespaces.run("ip", "-n", namespace, "link", "set", "lo", "up")
        namespaces.run("ip", "link", "add", "a0", "netns", sender, "type", "veth", "peer", "b0", "netns", receiver)
        for namespace, device, address in ((sender, "a0", SENDER), (receiver, "b0", RECEIVER)):
            namespaces.run("ip", "-n", namespace, "addr", "add", f"{address}/24", "dev", device)
            namespaces.run("ip", "-n", namespace, "link", "set", device, "up")
        yield sender, receiver


@contextmanager
def server(place: Place, name: str) -> Iterator[int]:
    """Run a server in the receiver's namespace, and return its process number once it listens.

    Raises:
        WireError: it ended, or does not listen.
    """
    line, protocol, port = SERVERS[name]
    log = place.folder / f"{name}.log"
    with log.open("w") as output:
        process = subprocess.Popen(place.at(place.receiver, line(place)), stdout=output, stderr=output)
    try:
        until = time.monotonic() + START_S
        listening = place.at(place.receiver, ["ss", "-Hln", f"--{protocol}", f"sport = :{port}"])
        while not subprocess.run(listening, capture_output=True, text=True, check=True).stdout:
            if process.poll() is not None or time.monotonic() > until:
                raise WireError(f"{name} does not listen: {log.read_text().strip()}")
            time.sleep(0.05)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def used_s(pid: int) -> float:
    """Return the processor time of a process and of its finished children, seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Row:
    """The transfers of one program: seconds, and processor seconds of both sides, in order of rounds."""

    name: str
    seconds: list[float] = field(default_factory=list)
    client_s: list[float] = field(default_factory=list)
    server_s: list[float] = field(default_factory=list)

    def add(self, place: Place, program: Program, pid: int, path: Path) -> None:
        """Run one more transfer.

        Raises:
            WireError: it failed, or the files did not arrive.
        """
        for old in place.inbox.iterdir():
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        before, began = used_s(pid), time.monotonic()
        process = subprocess.Popen(
            place.at(place.sender, program.client(place, path)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert process.stderr is not None
        errors = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.monotonic() - began
        if process.returncode != 0:
            raise WireError(f"{self.name} failed: {errors.strip()}")
        if (got := content(place.inbox / path.name)) != (wanted := content(path)):
            raise WireError(f"{self.name}: files and bytes received {got}, sent {wanted}")
        # The server notices the end of its children a little later.
        time.sleep(0.3)
        self.seconds.append(seconds)
        self.client_s.append(usage.ru_utime + usage.ru_stime)
        self.server_s.append(used_s(pid) - before)


def content(path: Path) -> tuple[int, int]:
    """Return the number of files at a path and their bytes."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return len(files), sum(file.stat().st_size for file in files)


def workloads(folder: Path) -> dict[str, Path]:
    """Create what is sent; random, since rsync would detect repetitions."""
    large, small = folder / "large", folder / "small"
    large.write_bytes(os.urandom(LARGE_BYTES))
    small.mkdir()
    for number in range(FILES):
        (small / f"{number:04}").write_bytes(os.urandom(FILE_BYTES))
    return {
        f"one file of {LARGE_BYTES / 1e6:g} MB": large,
        f"{FILES:,} files of {FILE_BYTES:,} bytes": small,
    }


def is_installed(name: str) -> bool:
    """Return whether a program is installed."""
    return shutil.which(name) is not None


def table(title: str, rows: list[Row]) -> None:
    """Print the measurements of one workload, and whether `send` needs at most the time of scp."""
    say(f"\n{title}, median of {len(rows[0].seconds)} (minimum to maximum)")
    say(f"{'':>22}  {'time, s':>22}  {'CPU of sender, s':>17}  {'CPU of receiver, s':>19}")
    for row in rows:
        times = f"{median(row.seconds):.2f} ({min(row.seconds):.2f} to {max(row.seconds):.2f})"
        say(f"{row.name:>22}  {times:>22}  {median(row.client_s):>17.2f}  {median(row.server_s):>19.2f}")
    medians = {row.name: median(row.seconds) for row in rows}
    if "scp" in medians:
        ratio = medians["sparelane"] / medians["scp"]
        say(f"time of sparelane relative to scp {ratio:.2f}, target at most 1{'  MISSED' if ratio > 1 else ''}")


def measure(rounds: int) -> list[dict[str, object]]:
    """Measure and print all programs and workloads.

    Raises:
        WireError: a transfer failed, or the namespaces cannot be created.
    """
    programs = []
    for program in PROGRAMS:
        lacking = [name for name in program.needs if not is_installed(name)]
        if lacking:
            say(f"{program.name} is left out: {', '.join(lacking)} is not installed")
        else:
            programs.append(program)
    results: list[dict[str, object]] = []
    with TemporaryDirectory(prefix="sparelane-") as folder, pair() as (sender, receiver), ExitStack() as stack:
        place = Place(sender, receiver, Path(folder))
        place.inbox.mkdir()
        sources = Path(folder) / "sources"
        sources.mkdir()
        servers = {
            name: stack.enter_context(server(place, name))
            for name in SERVERS
            if any(p.server == name for p in programs)
        }
        for title, path in workloads(sources).items():
            rows = [Row(program.name) for program in programs]
            for _ in range(rounds):
                for row, program in zip(rows, programs, strict=True):
                    row.add(place, program, servers[program.server], path)
            table(title, rows)
            results.append({"workload": title, "rows": [asdict(row) for row in rows]})
    return results
