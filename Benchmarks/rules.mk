# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks: bench-NAME runs one. The scripts build one program for this library and one for each peer that is here (make deps-bench).

### bench-loop       the loop beside libuv, libev, libevent, GLib, sd-event, Asio, Qt, Tokio, libdispatch and the toolchain's; BENCH_ARGUMENTS=--help
### bench-messages   message ports beside sockets, ZeroMQ, nng and D-Bus
### bench-crowd      thousands of processes that send to one message port at once, beside blocking senders of datagrams
### bench-streams    streams on sockets beside CFSocket, libuv, Asio, GIO and bare calls; BENCH_ARGUMENTS=ROUNDS
### bench-processors signals, posts, timers and messages of many threads: measured on two processors, simulated on up to 128
### bench-trace      what a trace costs: a callout without one, an event with one
### bench-swift      the overlay beside the C calls that it makes, hops between executors, streams beside bare epoll, and allocations
### bench-check      compares system calls, instructions and Swift's allocations of one operation with Benchmarks/baseline.tsv; needs valgrind and strace
### bench-baseline   writes Benchmarks/baseline.tsv
### bench-pictures   draws the pictures of docs/performance from the figures there; needs matplotlib

# The benchmarks run one after the other, each alone on the machine.
.PHONY: bench
bench:
	$(Q)for name in loop messages swift foundation; do $(MAKE) --no-print-directory bench-$$name || exit 1; done

# Each benchmark is a variable of its name, which is the recipe; what it needs is in the variable of that name with _NEEDS behind it.
bench-%: $$(bench-$$*_NEEDS)
	$(if $(filter $*,$(BENCHMARKS)),,$(error there is no bench-$*; there are $(BENCHMARKS)))
	$(Q)mkdir -p $(B)/bench
	$(bench-$*)

BENCHMARKS += loop messages crowd streams processors trace swift check baseline pictures
BENCH_RUN = CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/run --library $(B)/libcorerunloop.so
# With all cases, tables and pictures also go to docs/performance.
bench-loop_NEEDS = $(SHARED) $(B)/libcorerunloop.so
bench-loop = $(Q)$(BENCH_RUN) --build $(B)/bench --publish docs/performance $(BENCH_ARGUMENTS)
bench-messages_NEEDS = $(STATIC)
bench-messages = $(Q)CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/messages/run --library $(STATIC) --build $(B)/bench --publish docs/performance $(BENCH_ARGUMENTS)

bench-crowd_NEEDS = $(STATIC)
bench-crowd = $(Q)$(COMPILE_PROGRAM) -o $(B)/bench/crowd Benchmarks/crowd/main.c $(PROGRAM_LIBS) && Benchmarks/crowd/run $(B)/bench/crowd $(BENCH_ARGUMENTS)

bench-processors_NEEDS = $(STATIC)
define bench-processors
$(Q)$(COMPILE_PROGRAM) -o $(B)/bench/processors Benchmarks/processors/main.c $(PROGRAM_LIBS)
$(Q)Benchmarks/processors/simulate --check $(B)/bench/processors
$(Q)Benchmarks/processors/simulate $(BENCH_ARGUMENTS)
endef

# The peers of streams that are here.
PACKAGE_libuv := libuv
PACKAGE_gio := gio-2.0
STREAM_PEERS_C = $(foreach peer,libuv gio,$(if $(shell pkg-config --exists $(PACKAGE_$(peer)) 2> /dev/null && echo yes),$(peer)))
STREAM_PEERS = $(STREAM_PEERS_C) $(if $(and $(wildcard /usr/include/asio.hpp),$(shell command -v g++)),asio)
STREAM_PEER_LIBS = $(if $(STREAM_PEERS_C),$(shell pkg-config --libs $(foreach peer,$(STREAM_PEERS_C),$(PACKAGE_$(peer))))) \
	$(if $(filter asio,$(STREAM_PEERS)),-lstdc++)
$(B)/bench/streams-%.o: Benchmarks/streams/%.c Benchmarks/streams/peers.h
	$(Q)mkdir -p $(@D) && $(CC) -O2 -g -pthread -IBenchmarks $$(pkg-config --cflags $(PACKAGE_$*)) -c -o $@ $<
$(B)/bench/streams-%.o: Benchmarks/streams/%.cpp Benchmarks/streams/peers.h
	$(Q)mkdir -p $(@D) && g++ -std=c++20 -O2 -g -pthread -IBenchmarks -c -o $@ $<
STREAM_PEER_OBJECTS = $(patsubst %,$(B)/bench/streams-%.o,$(STREAM_PEERS))
bench-streams_NEEDS = $(STATIC) $(STREAM_PEER_OBJECTS)
bench-streams = $(Q)$(COMPILE_PROGRAM) -IBenchmarks $(STREAM_PEERS:%=-DHAS_%) -o $(B)/bench/streams Benchmarks/streams/main.c \
	$(STREAM_PEER_OBJECTS) $(PROGRAM_LIBS) $(STREAM_PEER_LIBS) && $(B)/bench/streams $(BENCH_ARGUMENTS)

bench-trace_NEEDS = $(STATIC)
bench-trace = $(Q)$(COMPILE_PROGRAM) -o $(B)/bench/trace Benchmarks/trace/main.c $(PROGRAM_LIBS) && $(B)/bench/trace $(B)/bench/trace.crltrace

# $(call bench_in_swift,PRODUCT) builds a benchmark in Swift and runs it.
built_in_swift = $(WITHOUT_CC) swift build -c release -j $(TEST_JOBS) --scratch-path .build/release-bench --product $(1)
swift_program = "$$(swift build -c release --scratch-path .build/release-bench --show-bin-path)/$(1)"
bench_in_swift = $(Q)$(if $(HAS_SWIFT),$(built_in_swift) && $(swift_program) $(BENCH_ARGUMENTS),echo "$@: passed over, there is no swift here")
# NIO=PATH: a checkout of SwiftNIO, which the manifest then takes as well.
bench-swift = $(call bench_in_swift,bench-swift)

# Counts do not depend on the clock, so they can be compared with a committed baseline.
bench-check_NEEDS = $(bench-loop_NEEDS)
bench-check = $(Q)$(if $(HAS_SWIFT),$(call built_in_swift,bench-swift) && )$(BENCH_RUN) --build $(B)/bench-check --baseline Benchmarks/baseline.tsv \
	$(if $(HAS_SWIFT),--swift $(call swift_program,bench-swift))
bench-baseline_NEEDS = $(bench-loop_NEEDS)
bench-baseline = $(bench-check) --update

bench-pictures = $(Q)PYTHONDONTWRITEBYTECODE=1 Benchmarks/draw docs/performance && scripts/run-programs pictures 120 Benchmarks/test_draw.py
