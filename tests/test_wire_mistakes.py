"""Tests that each mistake with commands for other hosts is one clear error with the documented exit code."""

import json
import os
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from command_line import SPARELANE, invoke
from hangs import HANG_S
from wire_processes import Keys, call, running

# Exit codes: a mistake, and a partial failure.
MISTAKE, INCOMPLETE = 2, 3

UNREACHABLE = "127.0.0.1:9"


# Arguments after `send --keys ... --trust ...`, in which {file} is a file, and a part of the message.
SEND = {
    "not an address": (["{file}", "nowhere:"], '"nowhere:" is not an address; allowed: HOST or HOST:PORT'),
    "a port beyond all": (["{file}", "127.0.0.1:65536"], "is not an address"),
    "unknown host": (["{file}", "no.such.host.invalid:1"], '"no.such.host.invalid": '),
    "no peer": (["--connect-timeout", "0.3", "{file}", UNREACHABLE], "refused the connection"),
    "no file": (["{file}.none", UNREACHABLE], "No such file or directory"),
    "a device": (["/dev/null", UNREACHABLE], "neither a file nor a folder"),
    "unknown controller": (["--cc", "rc4", "{file}", UNREACHABLE], 'there is no controller "rc4"'),
    "unknown parameter": (["--set", "lanes=3", "{file}", UNREACHABLE], 'has no parameter "lanes"'),
    "no setting": (["--set", "levels", "{file}", UNREACHABLE], "allowed: key=value"),
    "a setting twice": (["--set", "levels=1", "--set", "levels=2", "{file}", UNREACHABLE], "is set twice"),
    "a tail's rate of zero": (["--tail-rate", "0Mbps", "{file}", UNREACHABLE], "allowed: a rate"),
    "a pace of zero": (["--cc", "constant", "--set", "pace=0Mbps", "{file}", UNREACHABLE], "pace"),
    "a rate without unit": (["--tail-rate", "100", "{file}", UNREACHABLE], "allowed: a rate"),
    "no window": (["--window", "0MB", "{file}", UNREACHABLE], 'window = "0MB"; allowed: a size'),
    "classes that repeat": (["--dscp", "0,3,3", "{file}", UNREACHABLE], "the code point 3 for two classes"),
    "too many classes": (["--dscp", "0,1,2,3,4,5,6,7,8", "{file}", UNREACHABLE], "9 code points"),
    "no code point": (["--dscp", "64", "{file}", UNREACHABLE], "the code point 64"),
    "no list": (["--dscp", "a", "{file}", UNREACHABLE], "not a list of numbers"),
    "small packets": (["--mtu", "500", "{file}", UNREACHABLE], "--mtu"),
    "a fingerprint that is none": (["--trust", "abc", "{file}", UNREACHABLE], '"abc" is not a fingerprint'),
}


@pytest.mark.parametrize("case", SEND)
def test_a_mistake_of_a_sender_is_one_clear_error(keys: Keys, tmp_path: Path, case: str) -> None:
    file = tmp_path / "file"
    file.write_text("x")
    arguments, message = SEND[case]
    done = invoke("send", *keys.of("sender"), *(word.format(file=file) for word in arguments))
    assert (done.exit_code, message in done.stderr) == (MISTAKE, True), done.output


def test_a_folder_without_a_key_and_a_key_that_others_can_read_are_refused(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    send = ("--trust", keys.fingerprint["receiver"], str(tmp_path / "file"), UNREACHABLE)
    assert "holds no key; `sparelane keys new" in call("send", "--keys", str(tmp_path), *send, code=MISTAKE)
    Path(keys.folder["sender"], "key.pem").chmod(0o644)
    assert "others have access" in call("send", "--keys", keys.folder["sender"], *send, code=MISTAKE)
    Path(keys.folder["sender"], "key.pem").chmod(0o600)
    Path(keys.folder["sender"], "key.pem").write_text("no key")
    assert "no Ed25519 private key" in call("send", "--keys", keys.folder["sender"], *send, code=MISTAKE)


def test_a_wrong_key_and_the_key_of_another_site_are_refused_with_their_fingerprints(
    keys: Keys, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "to").mkdir()
    other = call("keys", "new", "--keys", str(tmp_path / "other"), "--quiet").strip()
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        wrong = ["--keys", keys.folder["sender"], "--trust", other, str(tmp_path / "file"), address]
        report = call("send", *wrong, code=MISTAKE)
        assert f"the peer's key is {keys.fingerprint['receiver']}, which is not trusted" in report
        foreign = ["--keys", str(tmp_path / "other"), "--trust", keys.fingerprint["receiver"]]
        report = call("send", *foreign, str(tmp_path / "file"), address, code=MISTAKE)
        assert f"the peer does not trust this host's key, {other}" in report
    assert list((tmp_path / "to").iterdir()) == []


def test_an_existing_target_is_kept_unless_recv_has_force(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("new")
    (tmp_path / "to").mkdir()
    (tmp_path / "to" / "file").write_text("old")
    for more, code, left in (((), INCOMPLETE, "old"), (("--force",), 0, "new")):
        recv = ("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to"), "--once", *more)
        with running(*recv) as receiver:
            address = receiver.until("listening")["address"]
            report = call("send", *keys.of("sender"), str(tmp_path / "file"), address, code=code)
            assert code == 0 or "file: it is there already" in report
            events, errors = receiver.rest(code=(code,))
            [item] = [event for event in events if event["event"] == "item"]
            assert (item["name"], item["error"] is None) == ("file", code == 0)
            assert code == 0 or "it is there already" in errors
        assert (tmp_path / "to" / "file").read_text() == left


def test_an_existing_equal_file_counts_as_sent(keys: Keys, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for name in ("one", "two"):
        (tree / name).write_text(name)
    # The folder is created, since its parent exists.
    recv = ("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to"))
    with running(*recv) as receiver:
        address = receiver.until("listening")["address"]
        call("send", *keys.of("sender"), str(tree), address)
        (tmp_path / "to" / "tree" / "two").unlink()
        report = json.loads(call("send", *keys.of("sender"), "--json", str(tree), address))
        assert [(item["name"], item["resumed_bytes"], item["error"]) for item in report["items"]] == [
            ("tree", 0, None),
            ("tree/one", 3, None),
            ("tree/two", 0, None),
        ]
        # No data crossed the path, so no rate is printed.
        assert "Mb/s" not in call("send", *keys.of("sender"), str(tree), address)
    assert (tmp_path / "to" / "tree" / "two").read_text() == "two"


def test_names_in_a_folder_that_cannot_be_sent_are_reported_and_the_rest_is_sent(keys: Keys, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "plain").write_text("x")
    (tree / "10:30.log").write_text("x")
    (tree / "link").symlink_to("/etc")
    Path(os.fsdecode(os.fsencode(tree) + b"/not-\xff")).write_text("x")
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        line = [*SPARELANE, "send", *keys.of("sender"), "--json", str(tree), address]
        done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == INCOMPLETE, done
    items = {Path(item["name"]).name: item["error"] for item in json.loads(done.stdout)["items"]}
    assert len(items) == 5
    assert (items["tree"], items["plain"]) == (None, None)
    assert "separator" in items["10:30.log"]
    assert "links" in items["link"]
    assert sum("UTF-8" in (error or "") for error in items.values()) == 1
    assert "3 of 5 items were not sent" in done.stderr
    assert [path.name for path in (tmp_path / "to" / "tree").iterdir()] == ["plain"]


def test_mistakes_of_a_receiver_are_clear_errors(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    with socket.socket(type=socket.SOCK_DGRAM) as taken:
        taken.bind(("127.0.0.1", 0))
        cases = [
            (f"127.0.0.1:{taken.getsockname()[1]}", tmp_path, "in use"),
            ("192.0.2.1:7777", tmp_path, "Cannot assign requested address"),
            ("127.0.0.1:0", tmp_path / "none" / "inbox", "No such file"),
            ("127.0.0.1:0", tmp_path / "plain", "Not a directory"),
            ("nowhere:", tmp_path, "is not an address"),
        ]
        for listen, folder, message in cases:
            report = call("recv", *keys.of("receiver"), "--listen", listen, "-o", str(folder), code=MISTAKE)
            assert message.lower() in report.lower(), report
            assert report.count("\n") == 1, report


def test_missing_permissions_are_clear_errors(keys: Keys, tmp_path: Path) -> None:
    lacking: list[str] = []
    if os.geteuid() == 0:
        setpriv = shutil.which("setpriv")
        if setpriv is None:
            pytest.skip("root has all rights, and setpriv, which takes them away, is not here")
        lacking = [setpriv, "--bounding-set", "-dac_override,-dac_read_search,-net_bind_service"]
    (tmp_path / "secret").write_text("x")
    (tmp_path / "secret").chmod(0)
    (tmp_path / "closed").mkdir(mode=0o500)
    (tmp_path / "file").write_text("x")

    def report(*arguments: str) -> str:
        line = [*lacking, *SPARELANE, *arguments]
        done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode in (MISTAKE, INCOMPLETE), done
        return done.stderr

    (tmp_path / "to").mkdir()
    with running("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to")) as receiver:
        address = receiver.until("listening")["address"]
        assert "Permission denied" in report("send", *keys.of("sender"), str(tmp_path / "secret"), address)
    first = int(Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").read_text())
    if first > 80:
        listen = ("--listen", "127.0.0.1:80", "-o", str(tmp_path))
        assert "127.0.0.1:80: Permission denied" in report("recv", *keys.of("receiver"), *listen)
    line = [
        *lacking,
        *SPARELANE,
        "recv",
        *keys.of("receiver"),
        "--listen",
        "127.0.0.1:0",
        "-o",
        str(tmp_path / "closed"),
    ]
    with subprocess.Popen([*line, "--json"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split('"')[7]
        error = call("send", *keys.of("sender"), str(tmp_path / "file"), address, code=INCOMPLETE)
        assert "Permission denied" in error
        process.kill()


def test_a_host_without_a_route_is_reported_at_once(keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    unshare = shutil.which("unshare")
    alone = [unshare or "", "-n"]
    if unshare is None or subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("this user may not make a network without routes")
    line = [*alone, *SPARELANE, "send", *keys.of("sender"), str(tmp_path / "file"), "192.0.2.1:7777"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == MISTAKE
    assert "192.0.2.1:7777: this host has no route to it" in done.stderr
