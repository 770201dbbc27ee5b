"""The single file holds what every supported Python needs on each platform of krew."""

from pathlib import Path
from typing import cast

from tools.release.krew import PLATFORMS
from tools.release.package import list_supported
from tools.release.pex import list_downloads, list_targets


def test_every_python_and_platform_is_a_target() -> None:
    targets = [*list_targets()]
    assert len(targets) == len(list_supported()) * len(PLATFORMS)
    tags = {tag for target in targets for tag in cast("list[str]", target["compatible_tags"])}
    assert {"cp311-abi3-manylinux_2_28_aarch64", "cp314-cp314-macosx_11_0_arm64", "py3-none-any"} <= tags


def test_what_is_downloaded_is_pinned_by_hash(tmp_path: Path) -> None:
    downloads = [*list_downloads(tmp_path)]
    assert len(downloads) == len([*list_targets()])
    for arguments in downloads:
        assert {"--require-hashes", "--no-deps", "--only-binary=:all:"} <= {*arguments}
    assert "--hash=sha256:" in (tmp_path / "requirements.txt").read_text()
