"""The verbs that need no broker, as a person or a script calls them."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest


def kbn(*arguments: str, stdin: bytes = b"") -> tuple[int, str, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kbn", *arguments], input=stdin, capture_output=True, check=False
    )
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize(
    ("wide", "narrow", "code"),
    [
        ("x <= 5", "x < 5", 0),
        ('x <= "abc"', 'x prefix "ab"', 1),
        ("a != 5", "a > 1 and a < 3", 0),
        ("x < 5.0", "x <= 4", 0),
        ("x <= 4", "x < 5.0", 1),
        ("x < 5 or x > 7", "x < 3", 0),
        ("x = 1 or x = 2", "x in [1 2]", 1),
    ],
)
def test_covers_answers_by_its_exit_code(wide, narrow, code):
    assert kbn("covers", wide, narrow) == (code, "no\n" if code else "yes\n", "")


@pytest.mark.parametrize(
    ("asked", "event", "code"),
    [
        ("b subbag[<] [1 3 5 7 9]", "b=[2 4]", 0),
        ("b subbag[<] [1 3 4]", "b=[2 2 2]", 1),
        ("x = 9007199254740993", "x=9007199254740992.0", 1),
        ("a = 1 or b in [2 3]", "b=2", 0),
        ("end after(2s) { x any }", 'KBN_PUB_TYPE=["END"] KBN_END_TIME=5', 1),
    ],
)
def test_match_answers_by_its_exit_code(asked, event, code):
    assert kbn("match", asked, "--event", event) == (
        code,
        "no match\n" if code else "match\n",
        "",
    )


def test_match_prints_the_events_of_a_file_that_match_and_counts_them(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text('{"x": 1}\n\n{"x": 2.5}\n{"y": 1}\n')
    code, out, _ = kbn("match", "x any", "--events", str(events))
    assert (code, out) == (0, '{"x": 1}\n{"x": 2.5}\n2 of 3 events match\n')
    code, out, _ = kbn("match", "x > 5", "--events", str(events), "--json")
    assert (code, json.loads(out)) == (1, {"matched": 0, "total": 3, "events": []})


def test_match_reads_events_from_standard_input():
    code, out, _ = kbn("match", "x = 1", "--events", "-", "--json", stdin=b'{"x": 1}\n')
    assert (code, json.loads(out)["events"]) == (0, [{"x": 1}])


def test_a_bad_line_is_named_by_its_number(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_text('{"x": 1}\n{"x": [[1]]}\n')
    code, _, err = kbn("match", "x any", "--events", str(events))
    assert code == 2
    assert "line 2" in err


def test_a_malformed_filter_exits_with_2_and_points_at_the_place():
    code, out, err = kbn("match", "price <", "--event", "price=1")
    assert (code, out) == (2, "")
    assert "line 1, column 8" in err
    assert err.rstrip().endswith("^")


def test_a_semantic_operator_without_an_ontology_exits_with_2():
    code, _, err = kbn("match", "w is_a wine:Red", "--event", 'w="x"')
    assert code == 2
    assert "no_ontology" in err


def test_a_temporal_operator_on_no_time_exits_with_2():
    code, _, err = kbn("parse", "price during { x any }")
    assert code == 2
    assert "temporal_reference" in err


def test_match_wants_one_source_of_events():
    assert kbn("match", "x any")[0] == 2
    assert kbn("match", "x any", "--events", "no-such-file")[0] == 2


def test_explain_tells_each_constraint_with_both_values():
    code, out, _ = kbn("explain", "price < 80 and x any", "--event", "price=79.5", "--json")
    said = json.loads(out)
    assert code == 1
    assert said["event"] == {"price": 79.5}
    first, second = said["alternatives"][0]["constraints"]
    assert (first["holds"], first["value"], first["operand"]) == (True, "79.5", "80")
    assert (second["holds"], second["present"]) == (False, False)
    code, out, _ = kbn("explain", "price < 80 or x any", "--event", "price=79.5")
    assert code == 0
    assert "alternative 1: yes" in out
    assert "alternative 2: no" in out


def test_parse_prints_the_three_forms_of_one_filter():
    asked = 'price < 80 and symbol prefix "IB"'
    assert kbn("parse", asked)[1] == asked + "\n"
    assert kbn("parse", asked, "--to", "senp")[1] == 'filter{ price <80 symbol >*"IB"}\n'
    form = {"any": [{"all": [["price", "<", 80], ["symbol", "prefix", "IB"]]}]}
    assert json.loads(kbn("parse", asked, "--to", "json")[1]) == form
    whole = json.loads(kbn("parse", asked, "--json")[1])
    assert (whole["text"], whole["json"], whole["warnings"]) == (asked, form, [])


def test_parse_warns_when_a_filter_can_hold_for_instants_only():
    code, _, err = kbn("parse", "start during { x any } and end during { x any }")
    assert code == 0
    assert "instant" in err


def test_senp_decodes_and_encodes_the_same_packet():
    packet = 'senp{version=1 method="SUB" ttl=30 id="c1"} filter{ price <80}'
    code, out, _ = kbn("senp", "decode", packet, "--json")
    assert code == 0
    assert json.loads(out)["subscription"] == {"any": [{"all": [["price", "<", 80]]}]}
    assert kbn("senp", "encode", out)[1] == packet + "\n"
    framed = len(packet).to_bytes(2) + packet.encode()
    assert kbn("senp", "decode", "--framed", "--json", stdin=framed)[1] == out
    assert "method       SUB" in kbn("senp", "decode", packet)[1]


@pytest.mark.parametrize(
    "payload",
    [
        {"event": {"x": 1}},
        {"events": [{"x": 1}, {"y": [1, "a"]}]},
        {"pattern": [{"any": [{"all": [["x", "any"]]}]}]},
        {"to": ["a", "b"], "event": {}},
    ],
)
def test_senp_carries_every_payload_there_and_back(payload):
    given = {"version": 1, "method": "PUB", "ttl": 30, **payload}
    code, wire, _ = kbn("senp", "encode", json.dumps(given), "--json")
    assert code == 0
    again = json.loads(kbn("senp", "decode", json.loads(wire)["senp"], "--json")[1])
    assert again == given


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"ttl": "x"}', '{"nope": 1}', '{"events": 5}', '{"to": [1]}']
)
def test_senp_encode_refuses_what_is_no_packet(text):
    code, _, err = kbn("senp", "encode", text)
    assert code == 2
    assert "syntax" in err


def test_senp_decode_names_the_byte_that_is_wrong():
    code, _, err = kbn("senp", "decode", "senp{version=1 method=}")
    assert code == 2
    assert "at byte" in err


def test_the_version_and_the_help_are_there():
    assert kbn("--version")[1].startswith("kbn ")
    code, out, _ = kbn("--help")
    assert code == 0
    for verb in ("match", "explain", "covers", "parse", "senp"):
        assert verb in out


def test_the_empty_filter_prints_as_the_empty_text_and_not_as_another_form():
    assert kbn("parse", "") == (0, "\n", "")
    assert kbn("parse", "", "--to", "senp") == (0, "filter{}\n", "")
    assert kbn("parse", "", "--to", "json") == (0, '{"any":[{"all":[]}]}\n', "")


def test_a_file_of_events_may_begin_with_a_byte_order_mark(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_bytes(b'\xef\xbb\xbf{"x": 1}\r\n{"x": 2}\r\n')
    code, out, _ = kbn("match", "x = 1", "--events", str(events))
    assert (code, out) == (0, '{"x": 1}\n1 of 2 events match\n')


def test_a_line_that_is_not_utf_8_is_named_and_not_a_crash(tmp_path):
    events = tmp_path / "events.jsonl"
    events.write_bytes(b'{"x": 1}\n{"x": "\xff"}\n')
    code, _, error = kbn("match", "x = 2", "--events", str(events))
    assert (code, error) == (2, "kbn: syntax: line 2: this is not UTF-8 at $\n")
    code, _, error = kbn("explain", "x = 2", "--events", "-", stdin=b"\xff")
    assert (code, error) == (2, "kbn: syntax: line 1: this is not UTF-8 at $\n")


def test_a_packet_given_as_bytes_that_are_not_utf_8_is_refused_with_a_position():
    code, _, error = kbn("senp", "decode", 'senp{} event{ a="\udcff"}')
    assert (code, error) == (2, "kbn: syntax: the string is not UTF-8 at byte 17\n")
    code, _, error = kbn("senp", "encode", stdin=b'{"method": "\xff"}')
    assert code == 2
    assert error.startswith("kbn: syntax: not JSON")


@pytest.mark.parametrize(
    "field",
    ['"seq": 0', '"seq": 9223372036854775808', '"version": 2', '"ttl": 128', '"pos": -1'],
)
def test_encode_writes_no_number_that_decode_would_not_read_back(field):
    code, out, error = kbn("senp", "encode", '{"method": "PUB", ' + field + "}")
    assert (code, out) == (2, "")
    assert "must be a whole number from" in error


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "price < 80", "--event", "price=79.5"),
        ("parse", "a = 1", "--to", "senp", "--json"),
        ("covers", "a = 1", "a = 1"),
        ("senp", "decode", "senp{}"),
        ("--help",),
    ],
)
def test_a_verb_imports_no_more_than_it_needs(arguments):
    program = (
        "import sys\nfrom kbn.cli.main import run\n"
        "try:\n    run()\nexcept SystemExit as done:\n    assert not done.code, done.code\n"
        "heavy = {'pydantic', 'asyncio', 'sqlalchemy', 'rdflib', 'rich', 'pyarrow'}\n"
        "print(*sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, check=False, text=True
    )
    assert (done.returncode, done.stderr) == (0, "\n")


def test_a_choice_that_is_none_is_told_the_choices():
    code, out, error = kbn("parse", "a = 1", "--to", "xml")
    assert (code, out) == (2, "")
    assert "'xml' is not one of 'text', 'senp', 'json'" in error


def _instant(name, at):
    seen = ["START", "END", "INSTANT"]
    return {"PUB_ID": name, "KBN_PUB_TYPE": seen, "KBN_START_TIME": at, "KBN_END_TIME": at}


_ENDED = {"PUB_ID": "a", "KBN_PUB_TYPE": ["END"], "KBN_END_TIME": 3000}
STORY = "".join(
    json.dumps(event) + "\n"
    for event in (
        {"PUB_ID": "a", "KBN_PUB_TYPE": ["START"], "KBN_START_TIME": 1000, "k": 1},
        _ENDED,
        _ENDED,
        _instant("b", 5000),
        _instant("c", 5300),
        {"k": 1},
    )
)


def test_match_over_a_file_builds_the_history_line_by_line():
    code, out, err = kbn(
        "match", "end after(2s) { k = 1 }", "--events", "-", "--json", stdin=STORY.encode()
    )
    said = json.loads(out)
    assert (code, err, said["matched"], said["total"]) == (0, "", 1, 6)
    assert said["events"][0]["PUB_ID"] == "b"
    code, out, _ = kbn("match", "k filter(=) { k = 1 }", "--events", "-", stdin=STORY.encode())
    assert (code, out) == (0, '{"k": 1}\n1 of 6 events match\n')


def test_explain_over_a_file_names_the_event_or_the_nearest_miss():
    code, out, err = kbn(
        "explain", "end after(2s) { k = 1 }", "--events", "-", stdin=STORY.encode()
    )
    assert code == 0
    assert "5000 − 3000 = 2,000 ms: event 'a' ended that long before, limit 2,000 ms" in out
    assert "the nearest was event 'a', ended 2,300 ms before, limit 2,000 ms" in out
    assert "the history is empty" in out
    assert "told before, skipped" in err


def test_a_half_temporal_line_exits_with_2_and_names_the_line():
    lines = b'{"k": 1}\n{"PUB_ID": "a", "k": 1}\n'
    code, _, err = kbn("match", "end after(2s) { k = 1 }", "--events", "-", stdin=lines)
    assert code == 2
    assert "temporal_missing: line 2" in err
