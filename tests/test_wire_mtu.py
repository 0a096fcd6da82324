"""Tests of paths with a small or falling MTU, between namespaces of this machine."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from command_line import SPARELANE
from hangs import HANG_S, wait_until
from sparelane.emulation import namespaces
from wire_processes import Keys

pytestmark = pytest.mark.skipif(namespaces.missing() is not None, reason=f"{namespaces.missing()}")


@pytest.mark.parametrize("kind", ["reported", "silent"])
def test_a_file_arrives_if_the_mtu_falls_during_the_transfer(tmp_path: Path, kind: str) -> None:
    keys = Keys(tmp_path)
    file, into = tmp_path / "file", tmp_path / "to"
    file.write_bytes(os.urandom(16_000_000))
    into.mkdir()
    with namespaces.hosts(20, priorities=True) as ends:
        at = ["--listen", f"{namespaces.RECEIVER}:0", "-o", str(into), "--once", "--json"]
        receive = ends.command(ends.receiver, *SPARELANE, "recv", *keys.of("receiver"), *at)
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
            try:
                assert receiver.stdout is not None
                address = json.loads(receiver.stdout.readline())["address"]
                # One class only, since with a tail the transfer would be complete by then.
                own = [*keys.of("sender"), "--cc", "cubic", "--json", str(file), address]
                send = ends.command(ends.sender, *SPARELANE, "send", *own)
                with subprocess.Popen(send, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as sender:
                    part = into / ".file.sparelane-part"
                    wait_until(lambda: part.exists() and part.stat().st_size > 500_000, sender)
                    # A router reports that a packet is too large for its next link; the far end of a link does not.
                    namespace, device = (ends.router, "r1") if kind == "reported" else (ends.receiver, "b0")
                    subprocess.run(["ip", "-n", namespace, "link", "set", device, "mtu", "1280"], check=True)
                    try:
                        output, errors = sender.communicate(timeout=HANG_S)
                    finally:
                        sender.kill()
                assert sender.returncode == 0, errors
                report = json.loads(output)
                assert report["items"][0]["error"] is None
                # The MTU that the router reports without headers, or the minimum of every IPv6 path.
                assert report["udp_payload_bytes"] == (1252 if kind == "reported" else 1232)
                assert receiver.wait(HANG_S) == 0
            finally:
                receiver.kill()
    assert (into / "file").read_bytes() == file.read_bytes()


@pytest.mark.parametrize("socket", ["IPv4", "both families"])
def test_a_path_with_a_small_mtu_gets_packets_that_fit(tmp_path: Path, socket: str) -> None:
    keys = Keys(tmp_path)
    into = tmp_path / "to"
    into.mkdir()
    with namespaces.hosts(20, priorities=True) as ends:
        subprocess.run(["ip", "-n", ends.router, "link", "set", "r1", "mtu", "1280"], check=True)
        at = ["--listen", f"{namespaces.RECEIVER}:0", "-o", str(into), "--json"]
        receive = ends.command(ends.receiver, *SPARELANE, "recv", *keys.of("receiver"), *at)
        with subprocess.Popen(receive, stdout=subprocess.PIPE, text=True) as receiver:
            try:
                assert receiver.stdout is not None
                address = json.loads(receiver.stdout.readline())["address"]
                if socket != "IPv4":
                    host, _, port = address.rpartition(":")
                    address = f"[::ffff:{host}]:{port}"
                # The router informs the first transfer, and the kernel, which has stored the MTU, the second.
                for name in ("first", "second"):
                    file = tmp_path / name
                    file.write_bytes(os.urandom(300_000))
                    send = [*SPARELANE, "send", *keys.of("sender"), "--json", str(file), address]
                    output = namespaces.run(*ends.command(ends.sender, *send))
                    assert json.loads(output)["udp_payload_bytes"] == 1252, name
                    assert (into / name).read_bytes() == file.read_bytes()
            finally:
                receiver.kill()
