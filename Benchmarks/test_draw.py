#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests the pictures that Benchmarks/draw makes of the committed figures.

Two drawings are the same, byte by byte; each peer's whole label is in the picture; and every colour has a contrast of at least 3 to a white
page and to a dark one. Skipped, with status 77, where there is no matplotlib.
"""
import importlib.machinery
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
FIGURES = os.path.join(os.path.dirname(HERE), "docs", "performance")
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
loader = importlib.machinery.SourceFileLoader("draw", os.path.join(HERE, "draw"))
draw = importlib.util.module_from_spec(importlib.util.spec_from_loader("draw", loader))
loader.exec_module(draw)


def luminance(colour):
    parts = [int(colour[place:place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one, other):
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def drawn(folder):
    """The pictures that a drawing of the committed figures makes, by name."""
    done = subprocess.run([os.path.join(HERE, "draw"), FIGURES, folder])
    if done.returncode == 77:
        sys.exit(77)
    assert done.returncode == 0, "draw failed"
    pictures = {}
    for name in os.listdir(folder):
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            pictures[name] = file.read()
    return pictures


def peers_of(table, *columns):
    """The peers that have figures, for each value of the first column."""
    peers = {}
    for value, peer, _ in draw.figures(os.path.join(FIGURES, table), columns):
        peers.setdefault(value, set()).add(peer)
    return peers


def main():
    for page in ("#ffffff", "#0d1117"):
        for colour in {colour for _, colour in draw.PEERS.values()} | {draw.TEXT_COLOUR}:
            assert contrast(colour, page) >= 3, f"{colour} has too little contrast to {page}"
    with tempfile.TemporaryDirectory() as folder:
        one, other = (drawn(os.path.join(folder, name)) for name in ("one", "other"))
    cases, places = peers_of("results.tsv", "case", "peer", "median"), peers_of("messages.tsv", "place", "peer", "median_ns")
    committed = {name for name in os.listdir(FIGURES) if name.endswith(".svg")}
    assert set(one) == committed, f"{sorted(set(one) ^ committed)} are not in both of the drawing and docs/performance"
    for name, text in sorted(one.items()):
        assert text == other[name], f"{name} differs from itself, drawn again"
        ElementTree.fromstring(text)
        # matplotlib writes each text that it draws into a comment, too.
        labels = set(re.findall("<!-- (.*) -->", text))
        case = name[:-len(".svg")]
        peers = cases[case] if case in cases else places[case.split("-")[1]]
        missing = {draw.label_of(peer) for peer in peers} - labels
        absent = {draw.label_of(peer) for peer in draw.PEERS if peer not in peers} & labels
        assert not missing and not absent, f"{name} lacks {sorted(missing)} or has {sorted(absent)}"
        assert peers <= set(draw.PEERS), f"{sorted(peers - set(draw.PEERS))} have no colour"
    print(f"{len(one)} pictures")


main()
