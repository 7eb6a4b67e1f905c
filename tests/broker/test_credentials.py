"""The answer to an HLO with credentials names the request it answers."""

from __future__ import annotations

import pytest

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
