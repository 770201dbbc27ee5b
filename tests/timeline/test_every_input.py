"""Whatever `why` reads can be drawn: every recorded file, alone and with those beside it.

`make test` draws one of four folders of recorded reviews, and all else but recorded incidents; `make histories` draws
everything, and what takes longest: a folder of folders, which is of no one cluster.
"""

import json
import time
from pathlib import Path

import pytest

from webhook.analysis.timeline.downsampling import fit_into
from webhook.analysis.timeline.lanes import TimelineBuilder
from webhook.analysis.timeline.model import shorten_for_page
from webhook.analysis.timeline.page import encode_page_data
from webhook.cli import reading

DATA = Path("tests/data")
FOLDERS = sorted({path.parent for path in DATA.rglob("*") if path.is_file()})
INCIDENTS = frozenset(DATA.glob("*incidents"))
RECORDINGS = [folder for folder in FOLDERS if folder.is_relative_to(DATA / "recordings")]
SLOWER = frozenset(RECORDINGS) - frozenset(RECORDINGS[::4])
FOLDERS_OF_FOLDERS = [folder for folder in FOLDERS if any(path.is_dir() for path in folder.iterdir())]


def assert_drawn(path: Path) -> None:
    now = time.time_ns() // 1000
    builder = TimelineBuilder(now)
    for item in reading.read_for_history([str(path)]):
        builder.observe(item)
    timeline = builder.timeline(builder.histories.bounds.until or now)
    lanes = json.loads(encode_page_data(fit_into(timeline)))["lanes"]
    expected = {(shorten_for_page(namespace), shorten_for_page(name)) for namespace, name in builder.histories.leases}
    assert {(lane["namespace"], lane["name"]) for lane in lanes} == expected, path


@pytest.mark.uncounted
@pytest.mark.parametrize(
    "folder",
    [
        pytest.param(one, marks=[pytest.mark.deep] if one.parent in INCIDENTS or one in SLOWER else [])
        for one in FOLDERS
    ],
    ids=map(str, FOLDERS),
)
def test_every_lease_of_every_file_has_a_lane(folder: Path) -> None:
    files = [path for path in sorted(folder.iterdir()) if path.is_file()]
    for path in files:
        assert_drawn(path)
    if len(files) > 1 and folder not in FOLDERS_OF_FOLDERS:
        assert_drawn(folder)


@pytest.mark.deep
@pytest.mark.uncounted
@pytest.mark.parametrize("folder", FOLDERS_OF_FOLDERS, ids=str)
def test_every_lease_of_a_folder_of_folders_has_a_lane(folder: Path) -> None:
    assert_drawn(folder)
