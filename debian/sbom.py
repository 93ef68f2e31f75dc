# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release, as SPDX 2.3 in JSON: the files that are published, and the libraries that the built ones ask for."""
import hashlib
import json
import os
import re
import subprocess


def output_of(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout if done.returncode == 0 else ""


def needed(library):
    """The sonames that a library names, but for the C library's and our own."""
    names = re.findall(r"^\s*NEEDED\s+(\S+)", output_of("objdump", "-p", library), re.M)
    return [name for name in names if not re.match(r"lib(c|m|rt|pthread|dl|corerunloop\S*)\.so|ld-linux", name)]


def package_of(soname, libraries):
    """The Debian package that has a library, and its version; the soname and no version where dpkg does not know it."""
    for library in libraries:
        path = re.search(rf"{re.escape(soname)} => (\S+)", output_of("ldd", library))
        owner = output_of("dpkg-query", "--search", "*/" + os.path.basename(os.path.realpath(path.group(1)))).split(": ")[0] if path else ""
        if owner:
            return owner.split(":")[0], output_of("dpkg-query", "--show", "--showformat=${Version}", owner)
    return soname, None


def package(name, version, **more):
    identifier = "SPDXRef-" + re.sub(r"[^A-Za-z0-9.-]", "-", name)
    said = dict.fromkeys(("downloadLocation", "licenseConcluded", "licenseDeclared", "copyrightText"), "NOASSERTION")
    entry = {"SPDXID": identifier, "name": name, "filesAnalyzed": False, **said, **more}
    return {**entry, "versionInfo": version} if version else entry


def bill(version, folder, files, libraries, created):
    """The text: of the files in a folder, by their names there, and of libraries by their paths. `created` is a time of UTC in ISO 8601."""
    ours = package("corerunloop", version, licenseConcluded="Apache-2.0", licenseDeclared="Apache-2.0", supplier="NOASSERTION")
    entries, relations = [], [("SPDXRef-DOCUMENT", "DESCRIBES", ours["SPDXID"])]
    for number, name in enumerate(files):
        with open(os.path.join(folder, name), "rb") as file:
            data = file.read()
        sums = [{"algorithm": kind, "checksumValue": hashlib.new(kind.lower(), data).hexdigest()} for kind in ("SHA1", "SHA256")]
        entries.append({"SPDXID": f"SPDXRef-File-{number}", "fileName": "./" + name, "checksums": sums, "licenseConcluded": "Apache-2.0",
                        "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"})
        relations.append((ours["SPDXID"], "GENERATES", entries[-1]["SPDXID"]))
    others = {}
    for soname in sorted({name for library in libraries for name in needed(library)}):
        entry = package(*package_of(soname, libraries))
        others[entry["SPDXID"]] = entry
    relations += [(ours["SPDXID"], "DYNAMIC_LINK", identifier) for identifier in others]
    unique = hashlib.sha256(json.dumps(entries).encode()).hexdigest()[:32]
    return json.dumps({
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": f"corerunloop-{version}",
        "documentNamespace": f"https://spdx.org/spdxdocs/corerunloop-{version}-{unique}",
        "creationInfo": {"created": created, "creators": ["Tool: corerunloop-release"]}, "packages": [ours, *others.values()],
        "files": entries,
        "relationships": [{"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other} for one, kind, other in relations],
    }, indent=1) + "\n"
