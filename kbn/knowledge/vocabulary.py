"""The words of RDF, RDFS and OWL that rules speak of, numbered first in every table."""

from __future__ import annotations

from kbn.knowledge.facts import Table
from kbn.knowledge.hierarchy.names import OWL, RDF, RDFS

#: In the order of the numbers below.
WORDS = (
    *(RDF + word for word in ("type", "first", "rest", "nil", "Property", "List")),
    *(
        RDFS + word
        for word in (
            "subClassOf",
            "subPropertyOf",
            "domain",
            "range",
            "label",
            "Class",
            "Datatype",
        )
    ),
    *(
        OWL + word
        for word in (
            "Class",
            "Thing",
            "Nothing",
            "Restriction",
            "NamedIndividual",
            "Ontology",
            "imports",
        )
    ),
    *(OWL + word for word in ("sameAs", "equivalentClass", "equivalentProperty", "inverseOf")),
    *(OWL + word for word in ("ObjectProperty", "DatatypeProperty", "AnnotationProperty")),
    *(
        OWL + word
        for word in ("FunctionalProperty", "InverseFunctionalProperty", "SymmetricProperty")
    ),
    *(OWL + word for word in ("TransitiveProperty", "AsymmetricProperty", "IrreflexiveProperty")),
    *(
        OWL + word
        for word in ("intersectionOf", "unionOf", "oneOf", "disjointUnionOf", "complementOf")
    ),
    *(
        OWL + word
        for word in ("onProperty", "someValuesFrom", "allValuesFrom", "hasValue", "onClass")
    ),
    *(
        OWL + word
        for word in ("maxCardinality", "maxQualifiedCardinality", "propertyChainAxiom", "hasKey")
    ),
    *(OWL + word for word in ("disjointWith", "propertyDisjointWith", "differentFrom")),
    *(OWL + word for word in ("AllDisjointClasses", "AllDifferent", "members", "distinctMembers")),
)
TYPE, FIRST, REST, NIL, PROPERTY, LIST = range(6)
SUBCLASS, SUBPROPERTY, DOMAIN, RANGE, LABEL, RDFS_CLASS, DATATYPE = range(6, 13)
CLASS, THING, NOTHING, RESTRICTION, NAMED_INDIVIDUAL, ONTOLOGY, IMPORTS = range(13, 20)
SAME, EQUIVALENT_CLASS, EQUIVALENT_PROPERTY, INVERSE = range(20, 24)
OBJECT_PROPERTY, DATATYPE_PROPERTY, ANNOTATION_PROPERTY = range(24, 27)
FUNCTIONAL, INVERSE_FUNCTIONAL, SYMMETRIC = range(27, 30)
TRANSITIVE, ASYMMETRIC, IRREFLEXIVE = range(30, 33)
INTERSECTION, UNION, ONE_OF, DISJOINT_UNION, COMPLEMENT = range(33, 38)
ON_PROPERTY, SOME, ALL, VALUE, ON_CLASS = range(38, 43)
MAX, MAX_QUALIFIED, CHAIN, KEY = range(43, 47)
DISJOINT, PROPERTY_DISJOINT, DIFFERENT = range(47, 50)
ALL_DISJOINT, ALL_DIFFERENT, MEMBERS, DISTINCT_MEMBERS = range(50, 54)

CLASS_TYPES = (CLASS, RDFS_CLASS, RESTRICTION, DATATYPE)
PROPERTY_TYPES = (
    *(PROPERTY, OBJECT_PROPERTY, DATATYPE_PROPERTY, ANNOTATION_PROPERTY),
    *(FUNCTIONAL, INVERSE_FUNCTIONAL, SYMMETRIC, TRANSITIVE, ASYMMETRIC, IRREFLEXIVE),
)
#: Whose subject, and whose object, is a class or a property by its position.
CLASS_SUBJECTS = (
    *(SUBCLASS, EQUIVALENT_CLASS, DISJOINT, COMPLEMENT, KEY),
    *(INTERSECTION, UNION, ONE_OF, DISJOINT_UNION),
)
CLASS_OBJECTS = (
    *(TYPE, SUBCLASS, EQUIVALENT_CLASS, DISJOINT, COMPLEMENT),
    *(DOMAIN, RANGE, SOME, ALL, ON_CLASS),
)
PROPERTY_SUBJECTS = (
    *(SUBPROPERTY, EQUIVALENT_PROPERTY, INVERSE, PROPERTY_DISJOINT, DOMAIN, RANGE, CHAIN),
)
PROPERTY_OBJECTS = (SUBPROPERTY, EQUIVALENT_PROPERTY, INVERSE, PROPERTY_DISJOINT, ON_PROPERTY)
#: Whose object is a list.
LISTS = (INTERSECTION, UNION, ONE_OF, DISJOINT_UNION, CHAIN, KEY, MEMBERS, DISTINCT_MEMBERS)


def new_table() -> Table:
    """A table in which every word has its number."""
    table = Table()
    for word in WORDS:
        table.number(word)
    return table
