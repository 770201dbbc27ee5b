"""The address under which a policy file says that its rules are explained."""

import pytest

from tests.policy.files import policy, text
from webhook.admission.policy.parse import parse
from webhook.admission.policy.schema import PolicyError


@pytest.mark.parametrize(
    ("written", "page"),
    [
        pytest.param("https://example.com", "https://example.com/RULE", id="a host"),
        pytest.param("https://example.com/", "https://example.com/RULE", id="a slash at the end"),
        pytest.param("https://a.example:8443/a/b-c_d.e", "https://a.example:8443/a/b-c_d.e/RULE", id="a path"),
        pytest.param("https://example.com/" + "a" * 108, f"https://example.com/{'a' * 108}/RULE", id="128 characters"),
        pytest.param("https://example.com/{rule}.md", "https://example.com/RULE.md", id="a suffix"),
        pytest.param("https://example.com/a/{rule}/", "https://example.com/a/RULE/", id="a folder for each rule"),
        pytest.param("https://example.com/{rule}/x-{rule}", "https://example.com/RULE/x-RULE", id="the id twice"),
    ],
)
def test_an_address_of_pages_is_accepted(written: str, page: str) -> None:
    assert policy(docs_url=written).find_page("RULE") == page


def test_none_is_empty() -> None:
    assert policy().docs_url == ""


@pytest.mark.parametrize(
    "written",
    [
        pytest.param("", id="empty"),
        pytest.param("https://", id="no host"),
        pytest.param("http://example.com", id="not encrypted"),
        pytest.param("javascript:alert(1)//https://example.com", id="another scheme"),
        pytest.param("HTTPS://example.com", id="capitals"),
        pytest.param(" https://example.com", id="a blank before"),
        pytest.param("https://example.com ", id="a blank after"),
        pytest.param("https://example.com\n", id="a line break after"),
        pytest.param("https://example.com/a\nb", id="a line break inside"),
        pytest.param("https://example.com/\x1b[31m", id="a control character"),
        pytest.param("https://example.com/\u202ea", id="an invisible character"),
        pytest.param("https://ex\u0430mple.com", id="a letter that looks like another"),
        pytest.param("https://user:secret@example.com", id="a password"),
        pytest.param("https://example.com?rule=", id="a query"),
        pytest.param("https://example.com/rules#", id="a fragment"),
        pytest.param("https://example.com/a b", id="a blank inside"),
        pytest.param('https://example.com/"', id="a quotation mark"),
        pytest.param("https://example.com/a)", id="a bracket, which ends the address for readers"),
        pytest.param("https://{rule}.example.com", id="the id in the host"),
        pytest.param("https://example.com/{id}", id="another word in braces"),
        pytest.param("https://example.com/{rule", id="a brace that is not closed"),
        pytest.param("https://example.com:port", id="a port that is not a number"),
        pytest.param("https://example.com/" + "a" * 109, id="129 characters"),
        pytest.param("https://" + "a" * 1_000_000 + "!", id="a million characters"),
        pytest.param("https://a" + "/a" * 500_000 + "!", id="half a million segments"),
        pytest.param("https://a/" + "{rule}" * 200_000 + "!", id="the id many times"),
    ],
)
def test_any_other_address_is_refused(written: str) -> None:
    with pytest.raises(PolicyError) as caught:
        parse(text(docs_url=written))
    assert caught.value.path == "docs_url"
    assert caught.value.line == 1
    assert str(caught.value).isprintable()


def test_the_refusal_of_an_address_says_what_it_must_be() -> None:
    with pytest.raises(PolicyError) as caught:
        parse("apiVersion: lease-webhook/v1\ndocs_url: docs.example.com\n")
    assert str(caught.value) == (
        "line 2: docs_url: must be an https address of at most 128 characters, without user, query and fragment; "
        "`{rule}` in its path stands for the rule's id"
    )


def test_the_digest_covers_it_as_it_is_written() -> None:
    assert policy(docs_url="https://example.com").digest != policy().digest
    assert policy(docs_url="https://example.com").digest != policy(docs_url="https://example.org").digest
