# SPDX-License-Identifier: Apache-2.0
"""Reads the public headers: every declaration at file level with the comment directly above it. For the checks and for make-man."""
import glob
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEADERS = os.path.join(ROOT, "Headers")
ROOTS = ("Sources", "AddOns", "Tools")  # of what is built: the library, its add-ons, its tools
ADD_ON_HEADERS = {"CRLNetwork.h": "net", "CRLNats.h": "nats", "CoreFoundation/CFPropertyList.h": "plist",
                  "CoreFoundation/CFTimeZone.h": "plist", "CoreFoundation/CFStringEncodingExt.h": "plist",
                  "CoreFoundation/CFBundle.h": "plist", "CoreFoundation/CFPreferences.h": "plist",
                  "CoreServices/FSEvents.h": "services", "SystemConfiguration/SCNetworkReachability.h": "services",
                  "SystemConfiguration/SystemConfiguration.h": "services", "CRLFileSource.h": "services", "CRLChild.h": "services",
                  "CRLWriteQueue.h": "services", "CRLWork.h": "services", "CRLMemoryPressure.h": "services",
                  "CRLFileStream.h": "services", "CRLRateLimit.h": "services"}  # the add-on library of each
ADD_ON_NAMES = {"PropertyLists": "plist"}  # of libraries whose name is not that of the wing


def c_libraries():
    """The libraries in C: the folder of each one's sources, and that of its objects in a build: the library, then the add-ons by name."""
    yield "Sources/CCoreRunLoop", "library"
    for path in sorted(glob.glob("AddOns/*/Sources/CCoreRunLoop*", root_dir=ROOT)):
        wing = path.split("/")[1]
        yield path, ADD_ON_NAMES.get(wing, wing.lower())


def c_folders():
    """Each folder of a program or a library in C, with the folder of its objects in a build, or None where SwiftPM alone compiles it."""
    yield from c_libraries()
    for path in sorted(glob.glob("Tools/*/Sources", root_dir=ROOT)):
        yield path, "tools/" + path.split("/")[1]
    for path in sorted(glob.glob("*/**/*Shims", root_dir=ROOT, recursive=True)):
        if path.startswith(ROOTS):
            yield path, None


class Declaration:
    """A declaration: its source, its text on one line, its name, its kind, the comment above it or None, its name in CRL_LINK or None."""

    def __init__(self, header, line, text, comment, conditions):
        self.header, self.line, self.source, self.comment, self.conditions = header, line, text, comment, conditions
        self.text = re.sub(r"\s+", " ", re.sub(r"/\*.*?\*/", " ", text, flags=re.S)).strip()
        link = re.search(r"CRL_LINK\((\w+)\)", self.text)
        self.link = link.group(1) if link else None
        self.is_exported = self.text.startswith("CF_EXPORT")
        self.is_inline = self.text.startswith("CF_INLINE")
        self.kind, self.name = self._kind_and_name()

    @property
    def add_on(self):
        """Which add-on library has it, or None: the library itself."""
        return ADD_ON_HEADERS.get(self.header)

    @property
    def place(self):
        return f"Headers/{self.header}:{self.line}"

    @property
    def is_for_swift_only(self):
        return any("__swift__" in c and "!" not in c for c in self.conditions)

    def prototype(self):
        """Returns the declaration without the library's own macros."""
        text = re.sub(r"\b(CRL_LINK|CRL_SWIFT_NAME|CF_SWIFT_NAME|CF_FORMAT_FUNCTION|CF_FORMAT_ARGUMENT)\([^()]*\)", "", self.text)
        text = re.sub(r"\b(CF_EXPORT|CF_INLINE|CF_(RETURNS_\w+|CONSUMED|RELEASES_ARGUMENT|NOESCAPE|WARN_UNUSED_RESULT))\b", "", text)
        text = re.sub(r"\b_(Nonnull|Nullable|Null_unspecified)\b", "", text)
        text = re.sub(r"\{.*\}", "", text) if self.kind == "function" else text
        return re.sub(r"\s+", " ", text).replace(" ;", ";").replace(" )", ")").strip()

    def _kind_and_name(self):
        text = self.text
        if text.startswith(("CRL_REFERENCE_TYPE", "CRL_REFERENCE_ALIAS")):
            return "reference", re.search(r"\((\w+)", text).group(1)
        if self.is_exported or self.is_inline:
            head = re.split(r"\bCRL_LINK\b|\{", text)[0]
            function = re.search(r"(\w+)\s*\(", head)
            if function:
                return "function", function.group(1)
            return "constant", re.findall(r"\w+", head)[-1]
        text = re.sub(r"^__extension__ ", "", text)
        if text.startswith("typedef"):
            named = re.search(r"\(\s*[*^](?:\s*_N\w+)?\s*(\w+)\s*\)", text) if "{" not in text else None
            listed = re.match(r"typedef CF_\w+\(\s*\w+\s*,\s*(\w+)\)", text)
            last = re.findall(r"\w+", re.sub(r"\b(CF_[A-Z_]+|CRL_SWIFT_NAME\(\w+\))", "", text))
            return "type", (named or listed).group(1) if named or listed else last[-1]
        if re.match(r"(CF_ENUM\(|enum\b)", text):
            return "enumeration", ""
        return "other", text[:40]


def public_headers():
    """Without those of Apple's that only say that they are not there."""
    found = []
    for path in glob.glob(HEADERS + "/**/*.h", recursive=True):
        with open(path, encoding="utf-8") as file:
            if "\n#error" not in file.read(200):
                found.append(os.path.relpath(path, HEADERS))
    return sorted(found)


def _end_of_declaration(text, start):
    """Returns the index behind the `;` at depth 0, or behind the `}` of an inline function."""
    depth, i, is_inline = 0, start, text.startswith(("CF_INLINE", "static"), start)
    while i < len(text):
        if text.startswith("/*", i):
            i = text.index("*/", i) + 2
            continue
        if text[i] in "({":
            depth += 1
        elif text[i] in ")}":
            depth -= 1
            if depth == 0 and text[i] == "}" and is_inline:
                return i + 1
        elif text[i] == ";" and depth == 0:
            return i + 1
        i += 1
    return len(text)


def declarations(header):
    """Returns all declarations of one header, which is named by its path below Headers."""
    with open(os.path.join(HEADERS, header), encoding="utf-8") as file:
        text = file.read()
    found, conditions, comment, i = [], [], None, 0
    while i < len(text):
        if text[i].isspace():
            i += 1
        elif text.startswith("/*", i):
            end = text.index("*/", i) + 2
            comment = text[i:end] if text.startswith("/**", i) else None
            i = end
        elif text[i] == "#":
            line = re.compile(r"(?:[^\n\\]|\\.)*", re.S).match(text, i)
            words = line.group().split(None, 1)
            directive = line.group().replace("# ", "#").split()[0]
            if directive in ("#if", "#ifdef", "#ifndef"):
                conditions.append(words[-1])
            elif directive in ("#elif", "#else"):
                conditions[-1] = "!" + conditions[-1] if directive == "#else" else words[-1]
            elif directive == "#endif":
                conditions.pop()
            elif directive in ("#define", "#include"):
                comment = None
            i = line.end()
        elif re.compile(r"CF_EXTERN_C_(BEGIN|END)|CF_ASSUME_\w+|CF_IMPLICIT_\w+").match(text, i):
            i = re.compile(r"\w+").match(text, i).end()
        else:
            end = _end_of_declaration(text, i)
            found.append(Declaration(header, text.count("\n", 0, i) + 1, text[i:end], comment, list(conditions)))
            comment, i = None, end
    return found


def all_declarations():
    return [d for header in public_headers() for d in declarations(header)]
