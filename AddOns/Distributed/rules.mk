# SPDX-License-Identifier: Apache-2.0
#
# Distributed actors over message ports, in Swift: SwiftPM builds and tests them (make check-swift).

### bench-distributed a distributed call between processes beside the request under it, and gRPC where libgrpc++-dev is; BENCH_ARGUMENTS=CALLS

BENCHMARKS += distributed
GRPC = $(B)/bench/grpc
define bench-distributed
$(call bench_in_swift,bench-distributed)
$(Q)if pkg-config --exists grpc++ protobuf && command -v protoc grpc_cpp_plugin > /dev/null; then mkdir -p $(GRPC) && \
protoc --proto_path=AddOns/Distributed/Benchmarks --cpp_out=$(GRPC) --grpc_out=$(GRPC) --plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) echo.proto && \
$(CXX) -O2 -I$(GRPC) -o $(GRPC)/bench AddOns/Distributed/Benchmarks/grpc.cpp $(GRPC)/*.cc $$(pkg-config --cflags --libs grpc++ protobuf) && \
$(GRPC)/bench $(BENCH_ARGUMENTS); else echo "bench-distributed: gRPC is passed over (libgrpc++-dev, protobuf-compiler-grpc)"; fi
endef

# The files that read the bytes of calls need nothing of the rest.
FUZZ_TARGETS_OF_ADD_ONS += $(if $(HAS_SWIFT),calls)
FUZZ_CALLS := AddOns/Distributed/Fuzz/fuzz_calls.swift $(addprefix AddOns/Distributed/Sources/CoreRunLoopDistributed/,ActorCoding.swift CallFrame.swift \
	CompactDecoder.swift CompactEncoder.swift CompactFormat.swift MessagePortActorError.swift MessagePortActorID.swift)
build/fuzz/fuzz_calls: $(FUZZ_CALLS)
	@mkdir -p $(@D)
	$(Q)$(WITHOUT_CC) swiftc -swift-version 6 -parse-as-library -O -g -use-ld=lld -sanitize=fuzzer,address -module-name FuzzCalls -o $@ $^
