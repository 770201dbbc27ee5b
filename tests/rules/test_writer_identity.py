"""Which holder identities begin with the name of a pod."""

import pytest

from webhook.admission.rules.holders import fits_pod, names_pod

POD = "checkout-6d5f9c-x2x8p"


@pytest.mark.parametrize(
    ("holder", "fits"),
    [
        pytest.param(POD, True, id="the pod's name"),
        pytest.param(f"{POD}_1f0e", True, id="then an underscore"),
        pytest.param(f"{POD}-1", True, id="then a dash"),
        pytest.param(f"{POD}é", True, id="then a letter of another script"),
        pytest.param(f"{POD}2", False, id="then a digit"),
        pytest.param(f"{POD}z", False, id="then a letter"),
        pytest.param(f"{POD}Z", False, id="then a capital"),
        pytest.param("other", False, id="another name"),
        pytest.param("", False, id="no holder"),
        pytest.param(POD[:-1], False, id="part of the name"),
    ],
)
def test_what_fits_a_pod(holder: str, fits: bool) -> None:
    assert fits_pod(holder, POD) is fits


@pytest.mark.parametrize(
    ("holder", "names"),
    [
        pytest.param(POD, True, id="the pod's name"),
        pytest.param(f"{POD}_1f0e", True, id="then an underscore"),
        pytest.param(f"{POD}_8afec204-37f9-4eda-909d-b7e476be8975", True, id="then an underscore and a uuid"),
        pytest.param(f"{POD}-8afec204-37f9-4eda-909d-b7e476be8975", True, id="then a dash and a uuid"),
        pytest.param(f"{POD}.8afec204-37f9-4eda-909d-b7e476be8975", True, id="then a dot and a uuid"),
        pytest.param(f"{POD}-", True, id="then a dash, with which no name ends"),
        pytest.param(f"{POD}-A", True, id="then a dash and a capital, which no name has"),
        pytest.param(f"{POD}:8080", True, id="then a colon"),
        pytest.param(f"{POD}-1_1f0e", False, id="then a dash, a digit and an underscore"),
        pytest.param(f"{POD}--1", False, id="then two dashes and a digit"),
        pytest.param(f"{POD}.1", False, id="then a dot and a digit"),
        pytest.param(f"{POD}-8afec204-37f9-4eda-909d-b7e476be8975-0", False, id="then a uuid and more"),
        pytest.param(f"{POD}z", False, id="then a letter"),
        pytest.param("other", False, id="another name"),
    ],
)
def test_what_names_a_pod_and_no_other(holder: str, names: bool) -> None:
    assert names_pod(holder, POD) is names


def test_a_host_name_that_is_cut_names_its_pod() -> None:
    assert names_pod("a" * 63 + "_id", "a" * 70)
    assert names_pod("a" * 63 + "-b_id", "a" * 63 + "-b")


def test_a_long_pod_name_fits_whole_and_cut_to_a_host_name() -> None:
    pod = "a" * 70
    assert fits_pod(pod, pod)
    assert fits_pod("a" * 63 + "_id", pod)
    assert not fits_pod("a" * 64 + "_id", pod)
