"""Formats, prefixes, imports, SKOS, contradictions: what a file says and how it is heard."""

from __future__ import annotations

import pytest

from kbn.errors import OntologyError
from kbn.knowledge.assembly import assemble
from kbn.knowledge.request import Request, Source, guess_format
from tests.knowledge.ask import HEAD, ask, assembled, hierarchy, source

TURTLE = "@prefix v: <http://v#> . v:A <http://www.w3.org/2000/01/rdf-schema#subClassOf> v:B ."
NT = "<http://v#A> <http://www.w3.org/2000/01/rdf-schema#subClassOf> <http://v#B> ."
XML = """<rdf:RDF xmlns:v="http://v#" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
  xmlns:rdfs="http://www.w3.org/2000/01/rdf-schema#">
  <rdfs:Class rdf:about="http://v#A"><rdfs:subClassOf rdf:resource="http://v#B"/></rdfs:Class>
</rdf:RDF>"""
JSON_LD = """{"@context": {"v": "http://v#", "rdfs": "http://www.w3.org/2000/01/rdf-schema#"},
  "@id": "v:A", "rdfs:subClassOf": {"@id": "v:B"}}"""


@pytest.mark.parametrize(
    ("name", "text", "declares"),
    [
        ("a.ttl", TURTLE, True),
        ("a.rdf", XML, True),
        ("a.owl", XML, True),
        ("a.jsonld", JSON_LD, True),
        ("a.nt", NT, False),
        ("a.owl", TURTLE, True),
        ("a", JSON_LD, True),
    ],
)
def test_every_format_is_read_and_its_prefixes_heard(name, text, declares):
    data = text.encode()
    request = Request((Source(name, data, guess_format(name, data)),))
    made = assemble(request, reasoner="none")
    assert ask(made.hierarchy, "http://v#A more_specific http://v#B")
    assert made.warnings == []
    assert ("v" in made.hierarchy.prefixes.table) == declares
    if declares:
        assert ask(made.hierarchy, "v:A more_specific http://v#B")


def test_only_prefixes_of_the_files_and_the_standard_ones_are_registered():
    table = hierarchy(":A a owl:Class .").prefixes.table
    assert set(table) == {"x", "owl", "rdf", "rdfs", "xsd", "skos"}


def two(first, second, **options):
    sources = tuple(
        Source(f"{n}.ttl", text.encode(), "turtle") for n, text in enumerate((first, second))
    )
    return assemble(Request(sources, **options), reasoner="none")


A = "@prefix p: <http://a#> . p:A a <http://www.w3.org/2000/01/rdf-schema#Class> ."
B = "@prefix p: <http://b#> . p:B a <http://www.w3.org/2000/01/rdf-schema#Class> ."


def test_the_first_to_bind_a_prefix_keeps_it_and_the_other_is_warned_about():
    made = two(A, B)
    assert made.hierarchy.prefixes.expand("p:x") == "http://a#x"
    (warning,) = made.warnings
    assert warning.startswith("1.ttl binds the prefix p:")
    assert made.hierarchy.knows("http://b#B")


def test_configuration_comes_before_every_file():
    made = two(A, B, prefixes=(("p", "http://b#"),))
    assert made.hierarchy.prefixes.expand("p:x") == "http://b#x"
    assert len(made.warnings) == 1


def test_a_registered_prefix_wins_over_a_uri_scheme():
    turtle = "@prefix geo: <http://g#> . <geo:Hall> a geo:C . geo:Hall a geo:D ."
    made = assemble(Request((Source("g.ttl", turtle.encode(), "turtle"),)), reasoner="none")
    assert ask(made.hierarchy, "geo:Hall is_a geo:D")
    assert not ask(made.hierarchy, "geo:Hall is_a geo:C")
    assert made.hierarchy.prefixes.spellings("geo:Hall") == []


def test_two_files_are_reasoned_over_together():
    first = HEAD + ":A rdfs:subClassOf :B ."
    made = two(first, HEAD + ":B rdfs:subClassOf :C . _:b :p :x .")
    assert ask(made.hierarchy, "x:A more_specific x:C")


def test_an_import_is_answered_by_a_file_that_is_loaded():
    first = HEAD + "<http://x/one> a owl:Ontology ; owl:imports <http://x/two> ."
    assert two(first, HEAD + "<http://x/two> a owl:Ontology .").warnings == []


def test_an_import_is_answered_by_the_catalogue(tmp_path):
    (tmp_path / "food.ttl").write_text(
        HEAD + "<http://x/food> a owl:Ontology ; owl:imports <http://x/wine> . :B a owl:Class ."
    )
    turtle = (
        "<http://x/wine> a owl:Ontology ; owl:imports <http://x/food> . :A rdfs:subClassOf :B ."
    )
    catalogue = (("http://x/food", str(tmp_path / "food.ttl")),)
    made = assembled(turtle, catalogue=catalogue)
    assert made.warnings == []
    assert made.hierarchy.knows("x:food")
    gone = (("http://x/food", str(tmp_path / "gone.ttl")),)
    with pytest.raises(OntologyError, match="imports <http://x/food>"):
        assembled(turtle, catalogue=gone)


SKOS = ":a skos:broader :b . :b skos:broader :c . :b skos:narrower :d . :a skos:exactMatch :e ."


def test_skos_is_an_order_when_asked_for_and_only_then():
    plain = hierarchy(SKOS)
    assert not ask(plain, "x:a more_specific x:c")
    assert ask(plain, "x:a related skos:broader x:b")
    data = (HEAD + SKOS).encode()
    request = Request((Source("s.ttl", data, "turtle", skos=True),))
    read = assemble(request, reasoner="none").hierarchy
    for question in ("x:a more_specific x:c", "x:d more_specific x:c", "x:a equivalent x:e"):
        assert ask(read, question)


@pytest.mark.parametrize(
    ("turtle", "named"),
    [
        (":A owl:disjointWith :B . :i a :A , :B .", ("x:i rdf:type x:A", "x:i rdf:type x:B")),
        (":A owl:complementOf :B . :i a :A , :B .", ("owl:complementOf",)),
        ("[] a owl:AllDisjointClasses ; owl:members ( :A :B ) . :i a :A , :B .", ("x:i",)),
        (":C owl:disjointUnionOf ( :A :B ) . :i a :A , :B .", ("x:i", "owl:disjointWith")),
        (":A rdfs:subClassOf :B , :C . :B owl:disjointWith :C . :i a :A .", ("x:B", "x:C")),
        (":i a owl:Nothing .", ("x:i rdf:type owl:Nothing",)),
        (":a owl:sameAs :b ; owl:differentFrom :b .", ("x:a owl:differentFrom x:b",)),
        ("[] a owl:AllDifferent ; owl:distinctMembers ( :a :b ) . :a owl:sameAs :b .", ("x:a",)),
        (":p owl:propertyDisjointWith :q . :a :p :b ; :q :b .", ("x:a x:p x:b", "x:a x:q x:b")),
        (":p a owl:IrreflexiveProperty . :a :p :a .", ("x:a x:p x:a",)),
        (":p a owl:AsymmetricProperty . :a :p :b . :b :p :a .", ("x:p",)),
        (
            ":C rdfs:subClassOf [ owl:onProperty :p ; owl:maxCardinality 0 ] . :a a :C ; :p :b .",
            ("x:a x:p x:b",),
        ),
    ],
)
def test_a_contradiction_loads_with_a_warning_that_names_its_triples(turtle, named):
    made = assembled(turtle)
    (warning,) = made.warnings
    assert warning.startswith("inconsistent: ")
    for words in named:
        assert words in warning


def test_in_an_inconsistent_ontology_is_a_wins():
    known = hierarchy(":A owl:complementOf :B . :i a :A , :B .")
    assert ask(known, "x:i is_a x:B")
    assert not ask(known, "x:i is_not_a x:B")


def test_of_many_contradictions_some_are_told():
    many = ":A owl:disjointWith :B . " + " ".join(f":i{n} a :A , :B ." for n in range(50))
    warnings = assembled(many).warnings
    assert len(warnings) == 21
    assert "more such" in warnings[-1]


def test_an_iri_with_a_blank_in_it_is_refused():
    bad = Source("a.nt", b"<http://x/a b> <http://x/p> <http://x/c> .", "nt")
    with pytest.raises(OntologyError):
        assemble(Request((bad,)), reasoner="none")


def test_the_hash_names_the_knowledge_not_its_spelling():
    plain = hierarchy(":A rdfs:subClassOf :B .")
    longer = hierarchy(":A rdfs:subClassOf :B . :A rdfs:subClassOf :A .")
    other = hierarchy(":A rdfs:subClassOf :C .")
    request = Request((source(":A rdfs:subClassOf :B ."),), prefixes=(("q", "http://q/"),))
    assert plain.hash == longer.hash == assemble(request, reasoner="none").hierarchy.hash
    assert plain.hash != other.hash


def test_labels_prefer_no_language_then_english():
    known = hierarchy(':a rdfs:label "ä"@de , "a"@en . :b rdfs:label "b"@en , "plain" .')
    assert known.reasons.labels[known.thing("x:a")] == "a"
    assert known.reasons.labels[known.thing("x:b")] == "plain"
