"""The answer to an HLO with credentials names the request it answers."""

from __future__ import annotations

import pytest

from kbn.broker.instructions import Log
from kbn.broker.settings import Principal
from kbn.broker.stimuli import Authenticated
from tests.broker.desk import Desk


@pytest.mark.parametrize(("known", "answers"), [(True, ["HLO", "ACK"]), (False, ["ERR"])])
def test_the_answer_about_credentials_carries_the_number_of_the_hello(
    known: bool, answers: list[str]
) -> None:
    desk = Desk()
    link = desk.opened()
    desk.say(link, 'senp{version=1 method="HLO" id="x" seq=3 token="t"}')
    (asked,) = desk.authentications()
    desk.feed(Authenticated(asked.link, Principal("ann") if known else None))
    heard = desk.hear(link)
    assert [p.split('method="')[1][:3] for p in heard] == answers
    assert " seq=3" in heard[-1]


def test_refused_credentials_are_a_warning_with_the_peer_and_the_code() -> None:
    desk = Desk()
    link = desk.opened()
    desk.say(link, 'senp{version=1 method="HLO" id="x" seq=3 token="t"}')
    desk.feed(Authenticated(link, None))
    (line,) = [i for i in desk.asked if isinstance(i, Log)]
    assert (line.level, line.event) == ("warning", "auth")
    assert line.message == "127.0.0.1:9: auth: unknown user, password or token"
