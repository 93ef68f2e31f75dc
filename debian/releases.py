# SPDX-License-Identifier: Apache-2.0
"""The versions that were released, and the one that the headers name. releases/VERSION has what a release promised: see debian/release."""
import os
import re

from declarations import HEADERS, ROOT

RELEASES = os.path.join(ROOT, "releases")


def order(version):
    return tuple(int(number) for number in version.split("."))


def releases():
    """The released versions, the oldest first."""
    found = os.listdir(RELEASES) if os.path.isdir(RELEASES) else []
    return sorted((name for name in found if re.fullmatch(r"\d+\.\d+\.\d+", name)), key=order)


def header_version():
    with open(os.path.join(HEADERS, "CRLRunLoop.h"), encoding="utf-8") as file:
        return re.search(r'^#define CRL_VERSION_STRING "(.*)"', file.read(), re.M).group(1)
