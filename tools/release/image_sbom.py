"""`make sbom`: the bill of materials of an image (CycloneDX 1.6), from its files."""

import argparse
import datetime as dt
import sys
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType, Property
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

from tools.release.image_contents import Contents, Package, read_contents
from tools.release.package import DIST, ROOT, read_project

ARCHIVE: Final = ROOT / "build" / "lease-webhook-image.tar"
FILE: Final = DIST / "lease-webhook-image.cdx.json"


def make_bill(found: Contents) -> str:
    """Return the document; the same for the same image, so its time and its serial number are the image's."""
    sha256 = found.digest.removeprefix("sha256:")
    image = Component(
        name="lease-webhook",
        version=read_project()["version"],
        type=ComponentType.CONTAINER,
        bom_ref="image",
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=sha256)],
        properties=[Property(name="distribution", value=found.distribution)],
    )
    components = [_make_component(package, found.distribution) for package in found.packages]
    bom = Bom(
        components=components,
        serial_number=uuid.uuid5(uuid.NAMESPACE_OID, found.digest),
        metadata=BomMetaData(component=image, timestamp=dt.datetime.fromisoformat(found.created)),
    )
    bom.register_dependency(image, components)
    text: str = JsonV1Dot6(bom).output_as_string(indent=2)
    if problem := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"not a valid CycloneDX document: {problem}")
    return text


def _make_component(package: Package, distribution: str) -> Component:
    qualifiers = {"arch": package.architecture, "distro": distribution} if package.kind == "deb" else {}
    namespace = "debian" if package.kind == "deb" else None
    purl = PackageURL(package.kind, namespace, package.name, package.version, qualifiers)
    licenses = [LicenseFactory().make_from_string(package.license)] if package.license else []
    source = [Property(name="debian:source", value=package.source)] if package.source else []
    return Component(
        name=package.name,
        version=package.version,
        purl=purl,
        bom_ref=purl.to_string(),
        licenses=licenses,
        properties=source,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the document into dist/. Return the exit status; without an image 0, with a message."""
    parser = argparse.ArgumentParser(prog="python -m tools.release.image_sbom", description=__doc__)
    parser.add_argument("--archive", type=Path, default=ARCHIVE, help="a docker archive, as `make image` writes it")
    options = parser.parse_args(arguments)
    if not options.archive.exists():
        print(f"*** SKIPPED: no bill of materials of the image, because {options.archive} is not there: make image ***")
        return 0
    found = read_contents(options.archive)
    kinds = {
        kind: sum(1 for package in found.packages if package.kind == kind) for kind in ("deb", "pypi", "npm", "generic")
    }
    if found.unknown or not kinds["deb"] or not kinds["pypi"]:
        print(f"FAILED: {kinds}; files that belong to no package: {', '.join(found.unknown[:20])}", file=sys.stderr)
        return 1
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(f"{make_bill(found)}\n")
    counted = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    print(f"{FILE.relative_to(ROOT)}: packages by kind: {counted}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
