# SPDX-License-Identifier: Apache-2.0
"""The fenced pieces and the anchors of a document, and the options with which swiftc compiles a piece against the built package.

For the scripts that compile what the documents show. The programs of PROGRAMS are whole, and check-documents compiles and runs them.
"""
import os
import re
import shutil

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TUTORIAL = os.path.join(ROOT, "docs", "tutorial.md")
COOKBOOK = os.path.join(ROOT, "docs", "cookbook.md")
PROGRAMS = (TUTORIAL, COOKBOOK, os.path.join(ROOT, "Sources/CoreRunLoop/CoreRunLoop.docc/Tutorial.md"))
# Swift modules that import C need these to find their C targets again.
SHIMS = ("CoreRunLoopShims", "CoreRunLoopFoundationShims", "CoreRunLoopTestingShims", "CoreRunLoopExecutorsShims", "CoreRunLoopMainHook")


class Fence:
    """One fenced piece: its language, its text, its first line's number, and the heading of the section that it is in."""

    def __init__(self, language, text, line, heading):
        self.language, self.text, self.line, self.heading = language, text, line, heading


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def fences(path):
    """The fenced pieces of a document in their order."""
    heading, found, language, lines, first = "", [], None, [], 0
    for number, line in enumerate(read(path).split("\n"), 1):
        if language is not None and line == "```":
            found.append(Fence(language, "".join(text + "\n" for text in lines), first, heading))
            language = None
        elif language is not None:
            lines.append(line)
        elif line.startswith("```"):
            language, lines, first = line[3:].strip(), [], number + 1
        elif line.startswith("## "):
            heading = line[3:].strip()
    return found


def headings(path):
    """The sections' headings in their order; lines inside fenced pieces are no headings."""
    text = re.sub(r"^```.*?^```$", "", read(path), flags=re.S | re.M)
    return re.findall(r"^## (.*)$", text, re.M)


def lines_outside_code(path):
    """Each line with its number, without blocks of code."""
    fence = ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            mark = re.match(r" *(```+|~~~+)", line)
            if mark and not fence:
                fence = mark.group(1)
            elif mark and line.strip() == fence:
                fence = ""
            elif not fence:
                yield number, line


def heading_anchors(path):
    """The anchors that GitHub gives the headings of a document, in their order."""
    found, counts = [], {}
    for _, line in lines_outside_code(path):
        heading = re.match(r"#{1,6} +(.*?)(?: +#+)? *$", line)
        if heading:
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading.group(1).strip())
            slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
            found.append(slug if slug not in counts else f"{slug}-{counts[slug]}")
            counts[slug] = counts.get(slug, 0) + 1
    return found


def swift_options(binaries):
    """swiftc's options for a file that imports the modules of the package in `binaries`, which `swift build --show-bin-path` prints."""
    options = ["-I", os.path.join(binaries, "Modules"), "-I", os.path.join(ROOT, "Headers", "Swift"), "-Xcc", "-fblocks",
               "-Xcc", "-fmodule-map-file=" + os.path.join(ROOT, "Headers", "Swift", "module.modulemap")]
    for shims in SHIMS:
        options += ["-Xcc", "-fmodule-map-file=" + os.path.join(binaries, shims + ".build", "module.modulemap")]
    return options


def testing_options():
    """More options, for a piece with a test: where the compiler's plugin for @Test is. The compiler is the swiftc that PATH finds."""
    toolchain = os.path.dirname(os.path.dirname(os.path.realpath(shutil.which("swiftc"))))
    return ["-plugin-path", os.path.join(toolchain, "lib", "swift", "host", "plugins")]
