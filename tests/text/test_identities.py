"""Random parts of identities are cut where they stay different."""

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.text.identities import make_shortener

FIRST = "db-0_8bb635b4-4965-4adb-ad3e-a95042a5608d"
SECOND = "db-0_17bd61bf-fb91-4f7c-9b85-8825a17ecf47"
ALIKE = "db-0_8bb635b4-4965-4adb-ad3e-000000000000"


def test_the_random_part_of_an_identity_is_cut_to_its_beginning() -> None:
    texts = [f"{FIRST} took it after {SECOND}", f"see {FIRST}, which lost it"]
    shorten = make_shortener(texts)
    assert [shorten(text) for text in texts] == [
        "db-0_8bb635b4... took it after db-0_17bd61bf...",
        "see db-0_8bb635b4..., which lost it",
    ]


@pytest.mark.parametrize("other", [ALIKE, "db-0_8bb635b4..."], ids=["begins alike", "is written as if it was cut"])
def test_an_identity_is_whole_beside_one_that_looks_like_it_when_cut(other: str) -> None:
    texts = [f"{FIRST} holds it", f"{other} took it"]
    assert [make_shortener(texts)(text) for text in texts] == texts


@pytest.mark.parametrize(
    "text",
    ["pod 8bb635b4-4965-4adb-ad3e-a95042a5608d", f"{FIRST}-2", f"{FIRST}_2", f"{FIRST}a"],
    ids=["a uid", "a longer name", "a name after it", "no UUID"],
)
def test_what_is_no_identity_of_client_go_is_whole(text: str) -> None:
    assert make_shortener([text])(text) == text


@given(st.lists(st.uuids(version=4) | st.integers(0, 3).map(lambda n: UUID(int=(0x8BB635B4 << 96) + n)), max_size=6))
def test_different_identities_stay_different(uuids: list[UUID]) -> None:
    names = {f"db-0_{uuid}" for uuid in uuids}
    shorten = make_shortener(sorted(names))
    assert len({shorten(name) for name in names}) == len(names)
