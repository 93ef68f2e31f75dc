#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds every fuzz target in C with the compiler, flags and engine of OSS-Fuzz ($CC, $CFLAGS, $LIB_FUZZING_ENGINE) into $OUT, each with its corpus.
set -euo pipefail

targets=$(ls Fuzz/fuzz_*.c AddOns/*/Fuzz/fuzz_*.c)
for source in $targets; do
    name=$(basename "$source" .c)
    # A target of an add-on whose packages are not here has no rule.
    make -n "build/fuzz/$name" > /dev/null 2>&1 || continue
    make -j"$(nproc)" "build/fuzz/$name" FUZZ_CC="$CC" FUZZ_FLAGS="$CFLAGS" FUZZ_ENGINE="$LIB_FUZZING_ENGINE"
    cp "build/fuzz/$name" "$OUT/"
    corpus=$(dirname "$source")/corpus/${name#fuzz_}.txt
    [ -e "$corpus" ] || continue
    python3 - "$corpus" "$OUT/${name}_seed_corpus.zip" << 'END'
import sys, zipfile
with zipfile.ZipFile(sys.argv[2], "w") as archive:
    for number, line in enumerate(open(sys.argv[1])):
        if not line.startswith("#"):
            archive.writestr(str(number), bytes.fromhex(line))
END
done
