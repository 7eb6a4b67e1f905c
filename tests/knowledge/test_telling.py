"""What people are told: reasons, portraits, pictures, differences, unknown terms."""

from __future__ import annotations

import random
from xml.etree import ElementTree

import pytest

from kbn.knowledge.difference import affected, differences
from kbn.knowledge.hierarchy.speaking import absolute, unknown_terms
from kbn.knowledge.picture import picture
from kbn.knowledge.portrait import portray
from kbn.language import parse_event, parse_subscription
from kbn.matching.explain import explain
from kbn.matching.naive import matches
from kbn.matching.world import EMPTY_HISTORY, Reaching, Reasoned, World
from kbn.model.operators import Related, Semantic
from tests.knowledge.ask import hierarchy
from tests.knowledge.worlds import OPERATORS, STRANGERS, random_hierarchy, terms

WINE = """
:ItalianWine rdfs:subClassOf :Wine . :ChiantiClassico a :ItalianWine ; :color :Red .
:Wine rdfs:subClassOf :Drink . :color rdfs:subPropertyOf :look ; rdfs:domain :Coloured .
:paints owl:inverseOf :color . :next a owl:SymmetricProperty . :Red :next :Pink .
:in a owl:TransitiveProperty . :a :in :b . :b :in :c . :c :in :d . :Vino owl:sameAs :Wine .
:Beverage owl:equivalentClass :Drink . :ChiantiClassico :price 20 ; rdfs:label "Chianti Classico" .
"""


@pytest.mark.parametrize(
    ("op", "value", "operand", "said"),
    [
        ("is_a", "x:ChiantiClassico", "x:ItalianWine", "ChiantiClassico → ItalianWine"),
        ("is_a", "x:ChiantiClassico", "x:Wine", "ChiantiClassico → ItalianWine → Vino"),
        ("is_a", "x:ChiantiClassico", "x:Coloured", "(the domain of color)"),
        ("is_a", "x:Wine", "x:Drink", "Vino is a class, not an individual"),
        ("is_a", "x:ChiantiClassico", "x:Other", '"x:Other" is not known to the ontology'),
        ("is_a", "x:Red", "x:Wine", "no path leads to Vino"),
        ("is_not_a", "x:Red", "x:Wine", "no path leads to Vino"),
        ("more_specific", "x:ItalianWine", "x:Drink", "ItalianWine → Vino → Drink"),
        ("less_specific", "x:Drink", "x:ItalianWine", "ItalianWine → Vino → Drink"),
        ("more_specific", "x:Drink", "x:Wine", "no path leads from Drink up to Vino"),
        ("more_specific", "x:Red", "x:Red", "not two classes or properties"),
        ("more_specific", "x:color", "x:look", "color → look"),
        ("equivalent", "x:Vino", "x:Wine", "one thing: Vino = Wine"),
        ("equivalent", "x:Beverage", "x:Drink", "each is below the other"),
        ("equivalent", "x:Red", "x:Pink", "nothing says that"),
        ("equivalent", 5, "x:Pink", "5 is not known"),
    ],
)
def test_a_semantic_answer_comes_with_its_path(op, value, operand, said):
    known = hierarchy(WINE)
    asked = next(each for each in Semantic if each.text == op)
    assert said in known.why(asked, value, operand)


@pytest.mark.parametrize(
    ("prop", "value", "operand", "said"),
    [
        ("x:color", "x:ChiantiClassico", "x:Red", "ChiantiClassico color Red"),
        ("x:look", "x:ChiantiClassico", "x:Red", "ChiantiClassico color Red, color → look"),
        ("x:paints", "x:Red", "x:ChiantiClassico", "inverse of paints"),
        ("x:next", "x:Pink", "x:Red", "Red next Pink, symmetric"),
        ("x:in", "x:a", "x:d", "a in → b in → c in → d"),
        ("x:color", "x:ChiantiClassico", "x:Pink", "ChiantiClassico color only Red"),
        ("x:color", "x:Red", "x:Pink", "Red has no color"),
        ("x:price", "x:ChiantiClassico", 20, "ChiantiClassico price 20"),
        ("x:price", "x:ChiantiClassico", 21, "neither known nor the value of a property"),
        ("x:none", "x:Red", "x:Pink", 'the property "x:none" is not known'),
        ("rdf:type", "x:ChiantiClassico", "x:ItalianWine", "ChiantiClassico → ItalianWine"),
    ],
)
def test_a_relation_comes_with_what_it_follows_from(prop, value, operand, said):
    assert said in hierarchy(WINE).why(Related(prop), value, operand)


def test_explain_tells_the_path_alone_and_inside_bags():
    world = World(hierarchy(WINE), EMPTY_HISTORY)

    def why(text, event):
        asked = explain(parse_subscription(text), parse_event(event), world)
        return asked.alternatives[0].constraints[0].why

    path = "ChiantiClassico → ItalianWine"
    assert path in why("w is_a x:ItalianWine", 'w="x:ChiantiClassico"')
    assert f"({path})" in why("w superbag[is_a] [x:ItalianWine]", 'w=["x:ChiantiClassico" 1]')
    assert "a bag is no term" in why("w is_a x:ItalianWine", "w=[1]")


@pytest.mark.parametrize(
    ("text", "event", "holds"),
    [
        ("w is_a x:Wine", 'w="x:ChiantiClassico"', True),
        ("w related x:color x:Red", 'w="x:ChiantiClassico"', True),
        ("w superbag[related x:color] [x:Red]", 'w=[1 "x:ChiantiClassico"]', True),
        ("w subbag[related x:color] [x:Red]", 'w=[1 "x:ChiantiClassico"]', False),
        ("w subbag[is_a] [x:Wine]", "w=[]", True),
        ("w bageq[equivalent] [x:Wine x:Red]", 'w=["x:Red" "http://x/Vino"]', True),
        ("w bageq[equivalent] [x:Wine x:Red]", 'w=["x:Red" "x:Red"]', False),
        ("w is_a x:White or w is_a x:Drink", 'w="x:ChiantiClassico"', True),
        ("w = x:Vino", 'w="x:Wine"', False),
    ],
)
def test_the_operators_work_alone_in_bags_and_in_alternatives(text, event, holds):
    world = World(hierarchy(WINE), EMPTY_HISTORY)
    assert matches(parse_subscription(text), parse_event(event), world) == holds


def test_a_hierarchy_offers_all_that_matching_can_use():
    known = hierarchy(WINE)
    assert isinstance(known, Reasoned)
    assert isinstance(known, Reaching)


def test_what_a_value_satisfies_is_listed_exactly():
    for seed in range(10):
        known = random_hierarchy(random.Random(f"reaching {seed}"))
        values = [*terms(known), *STRANGERS]
        for op in OPERATORS:
            for value in values:
                keys = known.operand_keys(op, value)
                if keys is not None:
                    for operand in values:
                        key = known.operand_key(op, operand)
                        assert known.holds(op, value, operand) == (key in keys)


# --- portraits and pictures ---


def test_a_portrait_of_a_class_has_what_is_above_below_and_in_it():
    portrait = portray(hierarchy(WINE), "x:Wine")
    assert portrait.kind == "class"
    assert portrait.equivalents == ("x:Wine",)
    assert [n.term for n in portrait.above if n.direct] == ["x:Beverage", "x:Drink"]
    assert [(n.term, n.direct) for n in portrait.below] == [("x:ItalianWine", True)]
    (instance,) = portrait.instances
    assert (instance.term, instance.direct) == ("x:ChiantiClassico", False)
    assert portray(hierarchy(WINE), "x:unheard") is None


def test_a_portrait_of_an_individual_has_its_types_and_relations_with_reasons():
    portrait = portray(hierarchy(WINE), "x:ChiantiClassico")
    assert portrait.label == "Chianti Classico"
    nearest = [n.term for n in portrait.types if n.direct]
    assert nearest == ["x:Coloured", "x:ItalianWine"]
    told = {(r.property, r.object): r.why for r in portrait.relations}
    assert told["x:look", "x:Red"] == "ChiantiClassico color Red, color → look"
    assert told["x:price", "20"] == "ChiantiClassico price 20"
    assert [r.subject for r in portrait.inbound] == ["x:Red"]


@pytest.mark.parametrize("term", ["x:Wine", "x:ChiantiClassico", "x:color", "x:b", "owl:Thing"])
def test_a_picture_is_svg_whose_boxes_do_not_overlap(term):
    portrait = portray(hierarchy(WINE), term)
    root = ElementTree.fromstring(picture(portrait))
    space = "{http://www.w3.org/2000/svg}"
    boxes = [
        tuple(float(group.find(f"{space}rect").get(at)) for at in ("x", "y", "width", "height"))
        for group in root.iter(f"{space}g")
    ]
    texts = [text.text for text in root.iter(f"{space}text")]
    assert portrait.term in texts
    left, top, width, height = map(float, root.get("viewBox").split())
    for at, (x, y, w, h) in enumerate(boxes):
        assert left <= x < x + w <= left + width
        assert top <= y < y + h <= top + height
        for other_x, other_y, other_w, other_h in boxes[:at]:
            apart = x + w <= other_x or other_x + other_w <= x
            assert apart or y + h <= other_y or other_y + other_h <= y


def test_a_picture_of_a_crowd_says_how_many_more():
    known = hierarchy(" ".join(f":c{n} rdfs:subClassOf :Top ." for n in range(40)))
    assert "and 34 more" in picture(portray(known, "x:Top"))


def test_a_picture_escapes_what_it_shows():
    known = hierarchy(':a :p "<script>&" .')
    assert "<script>" not in picture(portray(known, "x:a"))


# --- differences ---


def test_differences_are_told_by_what_they_are_about():
    old = hierarchy(":A rdfs:subClassOf :B . :i a :A ; :p :j , 5 .")
    new = hierarchy(":A rdfs:subClassOf :C . :i a :A ; :p :k , 5 .")
    found = differences(old, new)
    assert found["terms"].added == ("x:C", "x:k")
    assert found["terms"].removed == ("x:B", "x:j")
    assert "x:A more_specific x:C" in found["classes"].added
    assert "x:i is_a x:B" in found["types"].removed
    assert found["relations"].added == ("x:i x:p x:k",)
    assert found["properties"].empty
    assert all(each.empty for each in differences(old, old).values())


def test_subscriptions_that_would_match_differently_are_named_at_any_depth():
    old = hierarchy(":A rdfs:subClassOf :B . :i a :A .")
    new = hierarchy(":i a :A . :j a :A .")
    asked = [
        parse_subscription("x > 5"),
        parse_subscription("w is_a x:Z"),
        parse_subscription("w is_a x:B"),
        parse_subscription("end after(2s) { w superbag[is_a] [x:A] }"),
    ]
    third, fourth = affected(asked, old, new)
    assert third.subscription == "w is_a x:B"
    assert third.parts[0].lost == ("x:i",)
    assert third.unknown == ("x:B",)
    assert fourth.parts[0].gained == ("x:j",)
    assert affected(asked, old, old) == []


# --- unknown terms, and terms that travel ---


@pytest.mark.parametrize(
    ("text", "unknown"),
    [
        ("w is_a x:Wine", []),
        ("w is_a x:Nope and v is_a x:Nope", ["x:Nope"]),
        ("w related x:none x:Red", ["x:none"]),
        ("w related x:price 20", []),
        ("w related x:price 21", ["21"]),
        ('w related x:color "blue"', ["blue"]),
        ("w related rdf:type x:Wine", []),
        ("w superbag[is_a] [x:Wine x:Nope]", ["x:Nope"]),
        ("w is_a [x:Nope]", []),
        ("end after(2s) { w filter(is_a, last 5) { v equivalent x:Deep } }", ["x:Deep"]),
    ],
)
def test_terms_that_name_nothing_are_told(text, unknown):
    assert unknown_terms(parse_subscription(text), hierarchy(WINE)) == unknown


def test_terms_travel_as_absolute_iris():
    asked = parse_subscription(
        "w = x:Wine and w related x:color x:Red and b superbag[related x:color] [x:Red x:Nope 5]"
        " and v filter(related x:color, last 5) { w is_a x:Wine }"
    )
    sent = parse_subscription(
        'w = "x:Wine" and w related "http://x/color" "http://x/Red"'
        ' and b superbag[related "http://x/color"] ["http://x/Red" "x:Nope" 5]'
        ' and v filter(related "http://x/color", last 5) { w is_a "http://x/Wine" }'
    )
    assert absolute(asked, hierarchy(WINE)) == sent
