#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the targets for OSS-Fuzz, whose machines for running have no libbsd, and packs the inputs that each begins with.
set -eu
cd "$SRC/corerunloop"
sources=(Fuzz/fuzz_*.c AddOns/PropertyLists/Fuzz/fuzz_*.c)
programs=()
for source in "${sources[@]}"; do programs+=("build/fuzz/$(basename "$source" .c)"); done
make -j"$(nproc)" HAS_BSD= FUZZ_CC="$CC" FUZZ_FLAGS="$CFLAGS -fuse-ld=lld" "${programs[@]}"
for i in "${!sources[@]}"; do
    cp "${programs[$i]}" "$OUT/"
    python3 - "${sources[$i]}" "$OUT" << 'END'
import os, sys, zipfile
source, out = sys.argv[1:]
name = os.path.basename(source)[:-2]
corpus = os.path.join(os.path.dirname(source), "corpus", name[len("fuzz_"):] + ".txt")
if os.path.exists(corpus):
    with open(corpus, encoding="ascii") as lines, zipfile.ZipFile(os.path.join(out, name + "_seed_corpus.zip"), "w") as packed:
        for number, line in enumerate(line for line in lines if not line.startswith("#")):
            packed.writestr(str(number), bytes.fromhex(line.strip()))
END
done
