"""Which holder identities begin with the name of a pod."""

import pytest

from webhook.rules.writer_identity import fits_pod

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


def test_a_long_pod_name_fits_whole_and_cut_to_a_host_name() -> None:
    pod = "a" * 70
    assert fits_pod(pod, pod)
    assert fits_pod("a" * 63 + "_id", pod)
    assert not fits_pod("a" * 64 + "_id", pod)
