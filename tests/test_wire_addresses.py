"""Tests of the notation of addresses, of host aliases, and of the default folder of keys."""

import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner

from sparelane import _native
from sparelane._native import WireError
from sparelane.cli.main import main
from sparelane.wire import addresses
from wire_processes import Keys, call, running

FINGERPRINT = "0123456789abcdef" * 4


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of this user's configuration."""
    folder = tmp_path / "config" / "sparelane"
    folder.mkdir(parents=True, mode=0o755)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder.parent))
    return folder


def test_an_address_has_the_default_port_if_it_names_none() -> None:
    found = {text: addresses.peer(text).address for text in ("a.example", "a.example:9", "[::1]", "[::1]:9")}
    assert found == {
        "a.example": "a.example:7777",
        "a.example:9": "a.example:9",
        "[::1]": "[::1]:7777",
        "[::1]:9": "[::1]:9",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "allowed: HOST or HOST:PORT"),
        (":9", "allowed: HOST or HOST:PORT"),
        ("a:", "allowed: HOST or HOST:PORT"),
        ("a:b", "with a port up to 65535"),
        ("a:65536", "with a port up to 65535"),
        ("a:-1", "with a port up to 65535"),
        ("a:٧", "with a port up to 65535"),
        ("::1", "with IPv6 addresses in brackets"),
        ("[::1", "allowed: HOST or HOST:PORT"),
        ("[::1]9", "allowed: HOST or HOST:PORT"),
        ("[::1]:", "allowed: HOST or HOST:PORT"),
    ],
)
def test_a_wrong_address_is_one_clear_error(text: str, message: str) -> None:
    with pytest.raises(WireError, match=f"is not an address.*{message}"):
        addresses.peer(text)


def test_a_listening_address_without_host_means_all_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert addresses.listening(":7778") in ("[::]:7778", "0.0.0.0:7778")
    assert addresses.listening("192.0.2.1") == "192.0.2.1:7777"
    for text in (":", ":65536", ":http"):
        with pytest.raises(WireError, match=f'"{text}" is not an address; allowed: .ADDR.:PORT, with a port up to'):
            addresses.listening(text)

    def refuse(*_: object) -> None:
        raise OSError("no IPv6")

    monkeypatch.setattr(socket, "socket", refuse)
    assert addresses.listening(":7778") == "0.0.0.0:7778"


def test_an_alias_has_address_port_key_and_controller(config: Path) -> None:
    (config / "hosts.toml").write_text(
        f'[archive]\naddress = "a.example"\nport = 7\nfingerprint = "{FINGERPRINT.upper()}"\ncc = "cubic"\n'
        f'[six]\naddress = "2001:db8::1"\nfingerprint = "{FINGERPRINT}"\n'
    )
    assert addresses.peer("archive") == addresses.Peer("a.example:7", FINGERPRINT, "cubic")
    assert addresses.peer("archive:8") == addresses.Peer("a.example:8", FINGERPRINT, "cubic")
    assert addresses.peer("six") == addresses.Peer("[2001:db8::1]:7777", FINGERPRINT)
    assert addresses.peer("a.example") == addresses.Peer("a.example:7777")
    with pytest.raises(WireError, match="with a port up to 65535"):
        addresses.peer("archive:0x8")


def test_an_unknown_name_that_resembles_an_alias_is_reported_with_it(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (config / "hosts.toml").write_text(f'[archive]\naddress = "a.example"\nfingerprint = "{FINGERPRINT}"\n')

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(WireError) as raised:
        addresses.resolve(addresses.peer("archve").address)
    assert str(raised.value) == '"archve": Name or service not known; did you mean the alias "archive"?'


def test_aliases_that_others_can_write_are_refused(config: Path) -> None:
    file = config / "hosts.toml"
    file.write_text("")
    assert addresses.read_aliases(file) == {}
    file.chmod(0o664)
    with pytest.raises(WireError, match="others can write to it"):
        addresses.peer("a.example")
    file.chmod(0o600)
    config.chmod(0o777)
    with pytest.raises(WireError, match="others can write to it"):
        addresses.peer("a.example")


def test_keys_are_in_the_users_configuration_by_default(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*words: str) -> str:
        done = CliRunner().invoke(main, words)
        assert done.exit_code == 0, done.output
        return done.output

    made = run("keys", "new", "--quiet").strip()
    assert _native.show_keys(str(config / "keys"))[0] == made
    assert run("keys", "show").strip() == made
    assert (config / "keys").stat().st_mode & 0o777 == 0o700
    # The configuration is ignored if its variable is a relative path, as the XDG specification requires.
    monkeypatch.setenv("XDG_CONFIG_HOME", "config")
    assert addresses.keys_folder() == Path.home() / ".config" / "sparelane" / "keys"


def test_an_alias_is_sent_to_and_accepts_only_its_own_key(config: Path, keys: Keys, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    recv = ("recv", *keys.of("receiver"), "--listen", "127.0.0.1:0", "-o", str(tmp_path / "to"))
    with running(*recv) as receiver:
        port = receiver.until("listening")["address"].rpartition(":")[2]
        alias = f'[site]\naddress = "127.0.0.1"\nport = {port}\ncc = "newreno"\nfingerprint = "%s"\n'
        send = ("send", "--keys", keys.folder["sender"], "--json", str(tmp_path / "file"), "site")
        # The folder trusts the receiver, but the alias names another key.
        call("keys", "trust", "--keys", keys.folder["sender"], keys.fingerprint["receiver"])
        (config / "hosts.toml").write_text(alias % FINGERPRINT)
        assert f"the peer's key is {keys.fingerprint['receiver']}, which is not trusted" in call(*send, code=2)
        call("keys", "untrust", "--keys", keys.folder["sender"], keys.fingerprint["receiver"])
        (config / "hosts.toml").write_text(alias % keys.fingerprint["receiver"])
        report = json.loads(call(*send))
    assert [item["error"] for item in report["items"]] == [None]
    # NewReno has no tail, so nothing was sent in a lower class.
    assert sum(report["segments_by_class"][1:]) == 0
    assert (tmp_path / "to" / "file").read_text() == "x"
