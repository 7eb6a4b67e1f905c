"""What a subscription says in terms: which are unknown, and how they travel.

A subscription that names an unknown term is kept: no pair with that term holds, and
people should hear of it. Between brokers of one ontology terms are absolute IRIs,
since each broker has its own prefixes.
"""

from __future__ import annotations

from collections.abc import Iterator

from kbn.knowledge.hierarchy.parts import AS_OPERATOR
from kbn.knowledge.hierarchy.terms import Hierarchy
from kbn.model.filters import Constraint, Filter, Operand, Subscription, constraints_within
from kbn.model.operators import BagOp, Operator, Related, Semantic, Simple, Window, is_semantic
from kbn.model.values import Bag, Scalar, members_of


def semantic_parts(
    subscription: Subscription,
) -> Iterator[tuple[Constraint, Semantic | Related, tuple[Scalar, ...]]]:
    """Each semantic operator in it, at any depth, with its operands.

    ``filter`` takes its operand from history, so it comes with none.
    """
    for constraint in constraints_within(subscription):
        op: Operator | None = constraint.op
        operands: tuple[Scalar, ...] = ()
        if isinstance(op, Window):
            op = op.op
        elif constraint.inner is None:
            operands = members_of(constraint.value)
        if isinstance(op, BagOp):
            op = op.sub
        elif isinstance(constraint.operand, Bag):
            # A bag is no term: the constraint never holds, whatever is known.
            operands = ()
        if isinstance(op, Semantic | Related):
            yield constraint, op, operands


def unknown_terms(subscription: Subscription, known: Hierarchy) -> list[str]:
    """The properties and operands that name nothing, as they were written, once each."""
    found: dict[str, None] = {}
    for _, op, operands in semantic_parts(subscription):
        named: list[Scalar] = []
        if isinstance(op, Related):
            if known.prefixes.expand(op.property) not in AS_OPERATOR:
                named.append(op.property)
            named += [term for term in operands if known.target(term) is None]
        else:
            named += operands
        for term in named:
            if not known.knows(term):
                found[term if isinstance(term, str) else repr(term)] = None
    return list(found)


def absolute(subscription: Subscription, known: Hierarchy) -> Subscription:
    """The same subscription with every known term written out."""
    return Subscription(
        Filter(_absolute(constraint, known) for constraint in alternative)
        for alternative in subscription
    )


def _absolute(constraint: Constraint, known: Hierarchy) -> Constraint:
    op, operand = constraint.op, constraint.operand
    if isinstance(operand, Subscription):
        operand = absolute(operand, known)
    elif is_semantic(op):
        operand = _written_out(operand, known)
    return Constraint(constraint.name, _operator(op, known), operand)


def _operator(op: Operator, known: Hierarchy) -> Operator:
    if isinstance(op, Window):
        return Window(_simple(op.op, known), op.limit)
    return _simple(op, known) if isinstance(op, Related | BagOp) else op


def _simple(op: Simple | BagOp, known: Hierarchy) -> Simple | BagOp:
    if isinstance(op, Related):
        return Related(_written(op.property, known))
    if isinstance(op, BagOp) and isinstance(op.sub, Related):
        return BagOp(op.kind, Related(_written(op.sub.property, known)))
    return op


def _written_out(operand: Operand, known: Hierarchy) -> Operand:
    if isinstance(operand, Bag):
        return Bag(_term(member, known) for member in operand)
    return operand if isinstance(operand, Subscription) else _term(operand, known)


def _term(value: Scalar, known: Hierarchy) -> Scalar:
    return _written(value, known) if isinstance(value, str) and known.knows(value) else value


def _written(term: str, known: Hierarchy) -> str:
    """The IRI, unless that would be read as a prefix name: then the term as it is."""
    iri = known.prefixes.expand(term)
    return term if known.prefixes.shadows(iri) else iri
