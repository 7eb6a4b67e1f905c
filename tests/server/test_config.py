"""One configuration from three sources; every mistake is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from kbn.broker.settings import MasterProtocol, Policy
from kbn.errors import RefusedError
from kbn.server.config import Config, known_keys, load

ROOT = Path(__file__).parent.parent.parent


def write(folder: Path, text: str) -> Path:
    path = folder / "kbn.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_without_any_source_the_defaults_hold() -> None:
    assert load(None, {}, {}) == Config()


def test_the_environment_wins_over_the_file_and_a_flag_over_both(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'listen = ["ka://127.0.0.1:1"]\nlog = "json"\nidentity = "file"\n'
        "[limits]\nconnections = 5\nqueue = 700000\n[times]\nidle = 1.5\n",
    )
    environment = {
        "KBN_IDENTITY": "environment",
        "KBN_LIMITS_CONNECTIONS": "6",
        "KBN_LISTEN": "ka://127.0.0.1:2,senp://127.0.0.1:3",
        "KBN_HANDLERS_ALLOW": "10.0.0.0/8",
    }
    made = load(path, environment, {"identity": "flag", "log": None})
    assert made.identity == "flag"
    assert made.listen == ("ka://127.0.0.1:2", "senp://127.0.0.1:3")
    assert made.log == "json"
    assert (made.limits.connections, made.limits.queue) == (6, 700_000)
    assert made.times.idle == 1.5
    assert len(made.networks) == 1


def test_words_of_a_closed_set_and_booleans_are_read_from_text() -> None:
    made = load(
        None,
        {"KBN_INSECURE": "true", "KBN_POLICY": "disconnect", "KBN_MASTER_PROTOCOL": "siena"},
        {},
    )
    assert made.insecure is True
    assert made.policy is Policy.DISCONNECT
    assert made.master_protocol is MasterProtocol.SIENA


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("lisen = []", "unknown key 'lisen': did you mean 'listen'?"),
        ("[limits]\nconection = 1", "unknown key 'limits.conection'"),
        ("[times]\nidel = 1", "did you mean 'times.idle'?"),
        ('[[principals]]\nname = "a"\ntokn = "x"', "did you mean 'principals.token'?"),
        ("zzzzzz = 1", "unknown key 'zzzzzz'"),
        ("limits = 3", "'limits' is a table"),
        ("policy = 'sometimes'", "policy"),
        ("[limits]\nqueue = 'much'", "limits.queue"),
        ("log = 'loud'", "log"),
        ("listen = [", "kbn.toml"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(RefusedError) as refused:
        load(write(tmp_path, text), {}, {})
    assert said in str(refused.value)
    assert refused.value.code == "syntax"


@pytest.mark.parametrize(
    "flags",
    [{"limits.connections": "0"}, {"limits.packet": 70_000}, {"limits.depth": 17},
     {"times.idle": "-1"}, {"limits.queue": "-5"}, {"handlers.allow": ["10.0.0.0/99"]}],
    ids=str,
)  # fmt: skip
def test_a_number_out_of_range_is_refused_when_it_is_read(flags: dict[str, object]) -> None:
    with pytest.raises(RefusedError) as refused:
        load(None, {}, flags)
    assert next(iter(flags)).split(".")[1] in str(refused.value)


def test_a_variable_nobody_knows_is_refused_with_a_suggestion() -> None:
    with pytest.raises(RefusedError, match="KBN_LIMITS_QUEUE"):
        load(None, {"KBN_LIMITS_QEUE": "1"}, {})
    # These are the client's, the tests' and the command line's own.
    others = ("KBN_BROKER", "KBN_TOKEN", "KBN_USER", "KBN_PASSWORD", "KBN_CA", "KBN_PROFILE")
    load(None, dict.fromkeys((*others, "KBN_CERT", "KBN_KEY", "KBN_CONFIG"), "x"), {})


def test_a_file_that_is_not_there_is_named() -> None:
    with pytest.raises(RefusedError, match=r"cannot read /nowhere\.toml"):
        load(Path("/nowhere.toml"), {}, {})


def test_the_operator_s_page_lists_every_key_with_its_default() -> None:
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    for key in known_keys():
        assert f"| `{key}` |" in page, f"{key} is missing in docs/operating.md"
    for field in ("name", "token", "password", "publish", "subscribe", "may_publish", "admin"):
        assert f"`{field}`" in page
