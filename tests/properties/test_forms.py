"""Text, SENP and JSON are three spellings of one syntax tree."""

from __future__ import annotations

import json

from hypothesis import given

from kbn.language import (
    event_from_json,
    event_to_json,
    parse_event,
    parse_subscription,
    print_event,
    print_subscription,
    subscription_from_json,
    subscription_to_json,
)
from senp import decode_event, decode_subscription, encode_event, encode_subscription
from tests import strategies


@given(strategies.any_subscriptions())
def test_the_three_forms_of_a_subscription_are_one_tree(subscription):
    by_text = parse_subscription(print_subscription(subscription))
    by_wire = decode_subscription(encode_subscription(subscription))
    by_json = subscription_from_json(json.loads(json.dumps(subscription_to_json(subscription))))
    assert by_text == by_wire == by_json == subscription


@given(strategies.notifications(strategies.wide_names, strategies.wide_values))
def test_the_three_forms_of_an_event_are_one_notification(event):
    by_text = parse_event(print_event(event))
    by_wire = decode_event(encode_event(event))
    by_json = event_from_json(json.loads(json.dumps(event_to_json(event))))
    assert by_text == by_wire == by_json == event
