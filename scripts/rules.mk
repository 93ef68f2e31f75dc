# SPDX-License-Identifier: Apache-2.0
#
# Checks of the sources and of the library's symbols, and the files that are written from the headers.

### check-symbols    compares what the library exports with the headers and corerunloop.symbols
### check-headers    compiles each public header alone, C89 to C23 and C++
### format           formats the C sources by clang-format and the Swift sources by swift-format
### symbols          writes corerunloop.symbols, the files of link names and the names for Swift's importer
### deps-integration deps-bench deps-deb deps-musl deps-architecture   installs what integration, bench, deb, check-musl and check-architecture need

.PHONY: lint format symbols check-symbols check-headers
lint: $(SHARED) $(PLAIN) $(B)/whole.o $(if $(HAS_NET),$(B)/net-whole.o) $(if $(HAS_NATS),$(B)/nats-whole.o)
	$(Q)scripts/lint --build $(B)

check-symbols: $(SHARED) $(B)/whole.o $(if $(HAS_NET),$(NET_SHARED) $(B)/net-whole.o) $(if $(HAS_NATS),$(NATS_SHARED) $(B)/nats-whole.o)
	$(Q)scripts/check-symbols $(SHARED)
	$(Q)scripts/check-link-names $(B)
	$(Q)$(if $(HAS_NET),scripts/check-symbols --net $(NET_SHARED))
	$(Q)$(if $(HAS_NATS),scripts/check-symbols --nats $(NATS_SHARED))
check-headers:
	$(Q)scripts/check-headers

# .clang-format and .swift-format hold the style.
format:
	clang-format -i $$(git ls-files 'Sources/*.[ch]' 'Tests/CTests/*.[ch]' 'Tests/Conformance/*.[ch]' 'Examples/*.[ch]' 'Benchmarks/*.[ch]')
	if command -v swift-format > /dev/null; then swift-format format --in-place --recursive Package.swift Tests/*Tests; fi

# The exported names and their names for Swift's importer come from the headers. The link names of private functions come from the built library.
symbols: $(B)/whole.o $(if $(HAS_NET),$(B)/net-whole.o) $(if $(HAS_NATS),$(B)/nats-whole.o)
	$(Q)scripts/check-symbols --update
	$(Q)scripts/check-swift-names --update
	$(Q)scripts/check-link-names --update $(B)
