# SPDX-License-Identifier: Apache-2.0
"""An echo server on CFSocket, beside the toolchain's CFSocket and libuv: the echo cases of bench_echo.c, in rounds that are interleaved."""
import os
import shutil
import statistics
import subprocess
import sys

from system_calls import calls_of_one, counting_tool

BENCHMARKS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(BENCHMARKS)
SOURCES = ["main.c", "bench_loop.c", "bench_timers.c", "bench_echo.c", "bench_start.c", "bench_threads.c", "bench_memory.c"]
CASES = [("echo-1", 1), ("echo-1", 1000), ("echo-2", 1), ("echo-2", 1000)]
COLUMNS = ["1 connection, 1 processor", "1,000 connections, 1 processor", "1 connection, 2 processors", "1,000 connections, 2 processors"]


def toolchain():
    """The usr folder of the Swift toolchain, or None."""
    swift = shutil.which("swift")
    usr = os.path.dirname(os.path.dirname(os.path.realpath(swift))) if swift else None
    return usr if usr and os.path.exists(os.path.join(usr, "lib/swift/CoreFoundation/CoreFoundation.h")) else None


def peers(library):
    """(name, header, flags, libraries)"""
    usr = toolchain()
    swift = os.path.join(usr or "", "lib/swift")
    runtime = ["-L" + swift + "/linux", "-Wl,-rpath," + swift + "/linux", "-lBlocksRuntime"] if usr else []
    blocks = ["-fblocks"] if usr else []
    foundation = ["-DPEER_TOOLCHAIN", "-w", "-include", "dispatch/dispatch.h", "-I" + swift] + blocks
    own = ["-DPEER_CFSOCKET", "-I" + os.path.join(ROOT, "Headers")] + blocks
    return usr, [("CFSocket of this library", "corefoundation", own, [library] + runtime),
                 ("CFSocket of the Swift toolchain", "corefoundation", foundation, ["-lFoundation", "-ldispatch"] + runtime),
                 ("libuv", "libuv", [], ["-luv"])]


def build(folder, usr, peer):
    """The peer's program, or None where its library is missing."""
    name, header, flags, libraries = peer
    program = os.path.join(folder, "echo-" + "".join(letter for letter in name if letter.isalnum()))
    compiler = [os.path.join(usr, "bin/clang")] if usr else os.environ.get("CC", "cc").split()
    command = compiler + ["-O2", "-std=gnu11", "-D_GNU_SOURCE", "-pthread", "-I" + BENCHMARKS, '-DPEER_HEADER="peers/%s.h"' % header]
    command += flags + ["-o", program] + [os.path.join(BENCHMARKS, source) for source in SOURCES] + libraries + ["-lbsd", "-lm"]
    return program if subprocess.run(command, capture_output=True).returncode == 0 else None


def once(program, case, connections):
    try:
        done = subprocess.run([program, case, str(connections)], capture_output=True, text=True, timeout=120)
        return float(done.stdout)
    except (ValueError, subprocess.SubprocessError):
        return None


def measure(programs, rounds):
    values = {}
    for number in range(rounds):
        for case, connections in CASES:
            for name, program in programs if number % 2 == 0 else reversed(programs):
                value = once(program, case, connections) if program else None
                if value is not None:
                    values.setdefault((name, case, connections), []).append(value)
    return values


def rows(programs, values, folder):
    """Lines of the table, and of the TSV."""
    tool = counting_tool(folder)
    tool = tool if tool == "perf" else None  # strace changes who is asleep when
    table, tsv = [], []
    for name, program in programs:
        cells = []
        for case, connections in CASES:
            found = values.get((name, case, connections))
            calls = program and tool and calls_of_one(
                tool, lambda count: [program, "--iterations", str(count), case, str(connections)], 2000, 8000, folder)
            cells.append("absent" if not program else "–" if not found else "%.3g µs%s" % (
                statistics.median(found) / 1e3, "" if calls is None else ", %.1f calls" % calls))
            tsv.append("\t".join([case, str(connections), name, "%.0f" % statistics.median(found) if found else "absent",
                                  "" if calls is None else "%.2f" % calls]))
        table.append("| %s | %s |" % (name, " | ".join(cells)))
    return table, tsv


def report(library, folder, rounds):
    """The lines of the report; writes echo.tsv into the folder."""
    usr, wanted = peers(os.path.abspath(library))
    programs = [(peer[0], build(folder, usr, peer)) for peer in wanted]
    if not programs[0][1]:
        sys.exit("bench-messages: the echo server could not be built")
    table, tsv = rows(programs, measure(programs, rounds), folder)
    with open(os.path.join(folder, "echo.tsv"), "w", encoding="utf-8") as file:
        file.write("\n".join(["case\tconnections\tpeer\tmedian_ns\tsystem_calls"] + tsv) + "\n")
    return ["### A message of 64 bytes to an echo server and back", "",
            "One processor: processor time of both sides. Two: time on the wall. System calls of both sides.", "",
            "| | " + " | ".join(COLUMNS) + " |", "|---|" + "--:|" * len(COLUMNS), *table, ""]
