"""The chart of a release names what its publisher adds, in the form that Artifact Hub reads."""

import yaml

from tools.rendered.chart import CHART, fill_addresses

TEXT = (CHART / "Chart.yaml").read_text()
URL = "https://git.example/platform/lease-webhook"


def test_addresses_and_image_are_added() -> None:
    chart = yaml.safe_load(fill_addresses(TEXT, URL, "registry.example/lease-webhook@sha256:0"))
    assert (chart["home"], chart["sources"]) == (URL, [URL])
    links = yaml.safe_load(chart["annotations"]["artifacthub.io/links"])
    assert {"name": "Changes", "url": f"{URL}/blob/v{chart['version']}/CHANGELOG.md"} in links
    images = yaml.safe_load(chart["annotations"]["artifacthub.io/images"])
    assert images == [{"name": "lease-webhook", "image": "registry.example/lease-webhook@sha256:0"}]


def test_without_them_the_chart_is_as_it_was() -> None:
    assert yaml.safe_load(fill_addresses(TEXT, "", "")) == yaml.safe_load(TEXT)
    assert all(isinstance(value, str) for value in yaml.safe_load(TEXT)["annotations"].values())
