# SPDX-License-Identifier: Apache-2.0
#
# Benchmarks. The scripts build one program for this library and one for each peer that is here (make deps-bench).

### bench-loop       the loop beside libuv, libev, libevent, GLib, sd-event, Asio, Qt, Tokio, libdispatch and the toolchain's; BENCH_ARGUMENTS=--help
### bench-messages   message ports beside sockets, ZeroMQ, nng and D-Bus
### bench-crowd      thousands of processes that send to one message port at once, beside blocking senders of datagrams
### bench-streams    streams on sockets beside CFSocket, libuv, Asio, GIO and bare calls; BENCH_ARGUMENTS=ROUNDS
### bench-net        streams with TLS beside `openssl s_client`; BENCH_ARGUMENTS="ROUNDS MEBIBYTES"
### bench-processors signals, posts, timers and messages of many threads: measured on two processors, simulated on up to 128
### bench-trace      what a trace costs: a callout without one, an event with one
### bench-swift      the overlay beside the C calls that it makes, hops between executors, and allocations
### bench-distributed a distributed call between processes beside the request under it, and gRPC where libgrpc++-dev is; BENCH_ARGUMENTS=CALLS
### bench-foundation what it costs that the loops of both, this package's and Foundation's, serve each other's items
### bench-check      compares system calls and instructions of one operation with Benchmarks/baseline.tsv; needs valgrind and strace
### bench-baseline   writes Benchmarks/baseline.tsv
### pictures         draws the pictures of docs/performance from the figures there; needs matplotlib
### check-pictures   draws them twice elsewhere, and checks labels, colours and that both are the same

.PHONY: bench bench-loop bench-messages bench-crowd bench-streams bench-net bench-processors bench-trace bench-swift bench-distributed \
	bench-foundation bench-check bench-baseline
# The benchmarks run one after the other, each alone on the machine.
bench:
	$(Q)$(MAKE) --no-print-directory bench-loop
	$(Q)$(MAKE) --no-print-directory bench-messages
	$(Q)if command -v swift > /dev/null; then $(MAKE) --no-print-directory bench-swift; else echo "bench-swift: skipped, there is no swift here"; fi

BENCH_RUN = CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/run --library $(B)/libcorerunloop.so
# With all cases, tables and pictures also go to docs/performance.
bench-loop: $(SHARED) $(B)/libcorerunloop.so
	$(Q)$(BENCH_RUN) --build $(B)/bench --publish docs/performance $(BENCH_ARGUMENTS)
bench-messages: $(STATIC)
	$(Q)CC="$(CC)" PYTHONDONTWRITEBYTECODE=1 Benchmarks/messages/run --library $(STATIC) --build $(B)/bench --publish docs/performance $(BENCH_ARGUMENTS)

bench-crowd: $(STATIC)
	$(Q)mkdir -p $(B)/bench && $(COMPILE_PROGRAM) -o $(B)/bench/crowd Benchmarks/crowd/main.c $(PROGRAM_LIBS)
	$(Q)Benchmarks/crowd/run $(B)/bench/crowd $(BENCH_ARGUMENTS)

bench-processors: $(STATIC)
	$(Q)mkdir -p $(B)/bench && $(COMPILE_PROGRAM) -o $(B)/bench/processors Benchmarks/processors/main.c $(PROGRAM_LIBS)
	$(Q)Benchmarks/processors/simulate --check $(B)/bench/processors
	$(Q)Benchmarks/processors/simulate $(BENCH_ARGUMENTS)

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
bench-streams: $(STATIC)
	$(Q)$(if $(STREAM_PEERS),$(MAKE) --no-print-directory $(STREAM_PEER_OBJECTS))
	$(Q)mkdir -p $(B)/bench && $(COMPILE_PROGRAM) -IBenchmarks $(STREAM_PEERS:%=-DHAS_%) -o $(B)/bench/streams Benchmarks/streams/main.c \
	$(STREAM_PEER_OBJECTS) $(PROGRAM_LIBS) $(STREAM_PEER_LIBS)
	$(Q)$(B)/bench/streams $(BENCH_ARGUMENTS)

bench-net: $(STATIC) $(if $(HAS_NET),$(NET_STATIC))
	$(Q)$(if $(HAS_NET),mkdir -p $(B)/bench && $(COMPILE_PROGRAM) -o $(B)/bench/net AddOns/Net/Benchmarks/main.c $(NET_PROGRAM_LIBS) $(PROGRAM_LIBS) $(NET_LIBS) && \
	$(B)/bench/net $(BENCH_ARGUMENTS),echo "bench-net: skipped, there is no $(NET_PACKAGES) here (make deps)")

bench-trace: $(STATIC)
	$(Q)mkdir -p $(B)/bench && $(COMPILE_PROGRAM) -o $(B)/bench/trace Benchmarks/trace/main.c $(PROGRAM_LIBS)
	$(Q)$(B)/bench/trace $(B)/bench/trace.crltrace

bench-swift:
	$(Q)env -u CC -u CFLAGS -u LDFLAGS swift build -c release -j $(TEST_JOBS) --scratch-path .build/release-bench --product bench-swift
	$(Q)$$(swift build -c release --scratch-path .build/release-bench --show-bin-path)/bench-swift
	$(Q)$(MAKE) --no-print-directory bench-foundation
bench-foundation:
	$(Q)env -u CC -u CFLAGS -u LDFLAGS swift build -c release -j $(TEST_JOBS) --scratch-path .build/release-bench --product bench-foundation
	$(Q)$$(swift build -c release --scratch-path .build/release-bench --show-bin-path)/bench-foundation

GRPC := $(B)/bench/grpc
bench-distributed:
	$(Q)env -u CC -u CFLAGS -u LDFLAGS swift build -c release -j $(TEST_JOBS) --scratch-path .build/release-bench --product bench-distributed
	$(Q)$$(swift build -c release --scratch-path .build/release-bench --show-bin-path)/bench-distributed $(BENCH_ARGUMENTS)
	$(Q)if pkg-config --exists grpc++ protobuf && command -v protoc grpc_cpp_plugin > /dev/null; then mkdir -p $(GRPC) && \
	protoc --proto_path=AddOns/Distributed/Benchmarks --cpp_out=$(GRPC) --grpc_out=$(GRPC) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) echo.proto && \
	$(CXX) -O2 -I$(GRPC) -o $(GRPC)/bench AddOns/Distributed/Benchmarks/grpc.cpp $(GRPC)/*.cc $$(pkg-config --cflags --libs grpc++ protobuf) && \
	$(GRPC)/bench $(BENCH_ARGUMENTS); else echo "bench-distributed: gRPC is passed over (libgrpc++-dev, protobuf-compiler-grpc)"; fi

# Counts do not depend on the clock, so they can be compared with a committed baseline.
BASELINE := Benchmarks/baseline.tsv
bench-check: $(SHARED) $(B)/libcorerunloop.so
	$(Q)$(BENCH_RUN) --build $(B)/bench-check --baseline $(BASELINE)
bench-baseline: $(SHARED) $(B)/libcorerunloop.so
	$(Q)$(BENCH_RUN) --build $(B)/bench-check --baseline $(BASELINE) --update

.PHONY: pictures check-pictures
pictures:
	$(Q)PYTHONDONTWRITEBYTECODE=1 Benchmarks/draw docs/performance
check-pictures:
	$(Q)scripts/run-programs pictures 120 Benchmarks/test_draw.py

### bench-nats       a request through two bridges beside one of cnats alone, one-way messages a second, memory; needs nats-server
### bench-nats-memory   the memory of two bridges over MESSAGES=10000000
MESSAGES ?= 10000000
.PHONY: bench-nats bench-nats-memory
ifneq ($(HAS_NATS),)
$(B)/bench/bridge: AddOns/Nats/Benchmarks/main.c $(STATIC)
	$(Q)mkdir -p $(@D) && $(COMPILE_PROGRAM) -D_GNU_SOURCE -o $@ $< $(PROGRAM_LIBS) $(NATS_LIBS)
bench-nats: $(B)/bench/bridge $(BRIDGE)
	$(Q)$(B)/bench/bridge $(BRIDGE)
bench-nats-memory: $(B)/bench/bridge $(BRIDGE)
	$(Q)$(B)/bench/bridge $(BRIDGE) $(MESSAGES)
else
bench-nats bench-nats-memory:
	@echo "$@: skipped, there is no libnats here (make deps)"
endif
