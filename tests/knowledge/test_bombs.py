"""Files that mean harm: refused by a worker, with a reason, and without any connection."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from kbn.errors import KbnError, LimitError, MalformedError, UnsupportedError
from kbn.knowledge.build import obtain
from kbn.knowledge.request import Limits, Request, Source
from tests.knowledge.ask import HEAD, ask, source

SMALL = Limits(memory_bytes=700 * 2**20, seconds=20, max_triples=50_000, max_closure=300_000)
#: For what must be told by another limit than time, on a busy machine too.
PATIENT = replace(SMALL, seconds=300)


def refused(kind, data, format="turtle", limits=SMALL):
    body = data if isinstance(data, bytes) else (HEAD + data).encode()
    with pytest.raises(kind) as caught:
        obtain(Request((Source("bomb", body, format),), limits=limits))
    assert isinstance(caught.value, KbnError)
    return caught.value


@pytest.fixture
def trap():
    """A listener on loopback that counts who comes."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        done = threading.Event()

        def listen():
            while not done.is_set():
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    continue
                came.append(connection)
                connection.close()

        thread = threading.Thread(target=listen)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/x", came
        done.set()
        thread.join()


def test_a_list_that_is_too_long_is_refused():
    items = " ".join(f":i{n}" for n in range(11_000))
    said = refused(LimitError, f":C owl:oneOf ( {items} ) .", limits=PATIENT)
    assert said.limit == "max_list"


def test_lists_within_lists_without_end_are_refused():
    deep = "(" * 5000 + ")" * 5000
    said = refused(LimitError, f":C owl:oneOf {deep} .")
    assert said.limit == "max_nesting"


@pytest.mark.parametrize(
    "turtle",
    [
        ":C owl:oneOf _:a . _:a rdf:first :x ; rdf:rest _:b . _:b rdf:first :y ; rdf:rest _:a .",
        ":C owl:oneOf _:a . _:a rdf:first :x ; rdf:rest _:a .",
        ":C owl:oneOf _:z . _:z rdf:first :x ; rdf:rest _:a . _:a rdf:first :x ; rdf:rest _:a .",
    ],
)
def test_a_list_that_goes_in_circles_is_refused(turtle):
    assert "cyclic" in str(refused(MalformedError, turtle))


@pytest.mark.parametrize(
    "turtle",
    [
        ":C owl:oneOf _:a . _:a rdf:first :x ; rdf:rest rdf:nil , ( :y ) .",
        ":C owl:oneOf _:a . _:a rdf:first :x .",
        ":C owl:oneOf :nothing .",
        ":C owl:oneOf _:a . _:a rdf:first :x , :y ; rdf:rest rdf:nil .",
    ],
)
def test_a_list_that_forks_or_breaks_off_is_refused(turtle):
    refused(MalformedError, turtle)


def test_too_many_triples_are_refused():
    many = "".join(f":i{n} :p :i{n + 1} .\n" for n in range(3000))
    assert refused(LimitError, many, limits=Limits(max_triples=2000)).limit == "max_triples"


def test_a_million_things_said_to_be_the_same_are_not_even_parsed():
    many = "".join(f":i{n} owl:sameAs :i0 .\n" for n in range(1_000_000))
    assert refused(LimitError, many, limits=Limits()).limit == "max_same"


def test_a_stated_clique_is_joined_and_costs_no_square():
    many = "".join(f":i{n} owl:sameAs :i0 .\n" for n in range(5000))
    built = obtain(Request((source(many + ":i7 a :C ."),), limits=SMALL))
    assert ask(built.hierarchy, "x:i4999 is_a x:C")


def test_a_clique_that_only_reasoning_finds_is_bounded():
    many = ":p a owl:InverseFunctionalProperty .\n"
    many += "".join(f":i{n} :p :x .\n" for n in range(6000))
    limits = Limits(memory_bytes=400 * 2**20, seconds=10)
    said = refused(LimitError, many, limits=limits)
    assert said.limit in ("memory", "seconds", "max_closure")


def test_a_chain_of_classes_whose_closure_explodes_is_refused():
    many = "".join(f":c{n} rdfs:subClassOf :c{n + 1} .\n" for n in range(3000))
    assert refused(LimitError, many).limit == "max_closure"


def test_a_transitive_property_whose_closure_explodes_is_refused():
    many = ":p a owl:TransitiveProperty .\n"
    many += "".join(f":c{n} :p :c{n + 1} .\n" for n in range(3000))
    assert refused(LimitError, many).limit == "max_closure"


def test_entities_that_double_are_refused():
    levels = "".join(
        f'<!ENTITY l{n} "&l{n - 1};&l{n - 1};&l{n - 1};&l{n - 1};">' for n in range(1, 20)
    )
    xml = f'<!DOCTYPE r [<!ENTITY l0 "lol">{levels}]><rdf:RDF xmlns:rdf="x">&l19;</rdf:RDF>'
    assert refused(LimitError, xml.encode(), "xml").limit == "max_entity"


def test_an_entity_within_itself_is_refused():
    xml = b'<!DOCTYPE r [<!ENTITY a "&b;"><!ENTITY b "&a;">]><r>&a;</r>'
    refused(LimitError, xml, "xml")


def test_a_long_entity_used_often_is_refused():
    xml = f'<!DOCTYPE r [<!ENTITY a "{"x" * 4000}">]><r>{"&a;" * 20_000}</r>'
    assert refused(LimitError, xml.encode(), "xml").limit == "max_entities"


def test_short_entities_are_read_as_the_w3c_writes_them():
    xml = b"""<?xml version="1.0"?>
    <!DOCTYPE rdf:RDF [<!ENTITY vin "http://w/wine#"><!ENTITY owl "http://www.w3.org/2002/07/owl#">]>
    <rdf:RDF xmlns:vin="&vin;" xmlns:owl="&owl;" xml:base="http://w/wine"
      xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
      <owl:Class rdf:ID="Wine"/>
      <vin:Wine rdf:ID="Merlot"><vin:hasColor rdf:resource="#Red"/></vin:Wine>
    </rdf:RDF>"""
    built = obtain(Request((Source("wine.rdf", xml, "xml"),)))
    assert ask(built.hierarchy, "vin:Merlot is_a vin:Wine")
    assert ask(built.hierarchy, "vin:Merlot related vin:hasColor vin:Red")


def test_an_entity_that_lies_elsewhere_is_refused(trap):
    url, came = trap
    xml = f'<!DOCTYPE r [<!ENTITY a SYSTEM "{url}">]><r>&a;</r>'.encode()
    assert "nothing is fetched" in str(refused(UnsupportedError, xml, "xml"))
    xml = f'<!DOCTYPE r [<!ENTITY % a SYSTEM "{url}"> %a;]><r/>'.encode()
    refused(UnsupportedError, xml, "xml")
    assert came == []


@pytest.mark.parametrize(
    "document",
    [
        '{{"@context": "{url}", "@id": "x:a"}}',
        '{{"@context": ["{url}", {{}}], "@id": "x:a"}}',
        '{{"@context": {{"@import": "{url}"}}, "@id": "x:a"}}',
        '{{"@context": {{"p": {{"@id": "x:p", "@context": "{url}"}}}}, "@id": "x:a", "p": 5}}',
        '[{{"@id": "x:a", "x:p": {{"@context": "{url}"}}}}]',
    ],
)
def test_a_context_that_lies_elsewhere_is_refused(trap, document):
    url, came = trap
    data = document.format(url=url).encode()
    assert "nothing is fetched" in str(refused(UnsupportedError, data, "json-ld"))
    assert came == []


def test_an_import_that_lies_elsewhere_is_left_out_with_a_warning(trap):
    url, came = trap
    turtle = f"<http://x/o> a owl:Ontology ; owl:imports <{url}> . :A rdfs:subClassOf :B ."
    built = obtain(Request((source(turtle),)))
    (warning,) = built.warnings
    assert url in warning
    assert "nothing is fetched" in warning
    assert ask(built.hierarchy, "x:A more_specific x:B")
    assert came == []


def test_json_nested_without_end_is_refused():
    refused(MalformedError, b"[" * 100_000 + b"]" * 100_000, "json-ld")


@pytest.mark.parametrize(
    ("data", "format"),
    [(b"this is no turtle", "turtle"), (b"<r", "xml"), (b"{", "json-ld"), (b"<a> <b>", "nt")],
)
def test_what_cannot_be_read_is_refused_with_the_name_of_the_file(data, format):
    assert "bomb" in str(refused(MalformedError, data, format))


def test_a_file_that_is_too_big_is_not_even_read(tmp_path):
    path = tmp_path / "big.ttl"
    path.write_bytes(b"#" * 2000)
    with pytest.raises(LimitError) as caught:
        Source.read(path, limits=Limits(max_bytes=1000))
    assert caught.value.limit == "max_bytes"


def test_a_worker_that_takes_too_long_is_stopped():
    many = "".join(f":c{n} rdfs:subClassOf :c{n // 2} .\n" for n in range(1, 40_000))
    said = refused(LimitError, many, limits=Limits(seconds=1))
    assert said.limit == "seconds"


def test_memory_beyond_the_limit_is_a_reason_not_a_crash():
    many = "".join(f":c{n} rdfs:subClassOf :c{n // 2} .\n" for n in range(1, 40_000))
    said = refused(LimitError, many, limits=Limits(memory_bytes=160 * 2**20, seconds=300))
    assert said.limit == "memory"


def test_in_a_worker_no_connection_can_be_opened():
    """The hook cannot be taken off again, so it is tried in a process of its own."""
    import subprocess
    import sys

    code = (
        "import socket\nfrom kbn.knowledge.worker import forbid_network\nforbid_network()\n"
        "for use in (socket.socket, lambda: socket.create_connection(('127.0.0.1', 9))):\n"
        "    try:\n        use()\n    except PermissionError:\n        print('refused')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert done.stdout.split() == ["refused", "refused"]
