# SPDX-License-Identifier: Apache-2.0
#
# The add-on library libcorerunloop-net: names of hosts by c-ares, TLS by OpenSSL.

### check-net        the tests of names of hosts and of TLS; TEST_FLAGS="--filter NAME" picks some
### bench-names     how long names take beside getaddrinfo, in a network of its own (root, or user namespaces)
### bench-net        streams with TLS beside `openssl s_client`; BENCH_ARGUMENTS="ROUNDS MEBIBYTES"

net_PACKAGES := 'libcares >= 1.18' 'openssl >= 3.0'
net_TEST_PARTS := Stream/stream_recorder Failure/fork_probe
net_FUZZ_PARTS := AddOns/Net/Tests/C/tls_forge.c
$(call add_on_library,Net)

# A program names nothing of it, so the linker is told to keep it.
NET_PROGRAM_LIBS := -Wl,-u,crl_CRLNetworkInstall $(net_STATIC)

BENCHMARKS += net
bench-net_NEEDS = $(STATIC) $(if $(HAS_net),$(net_STATIC))
define bench-net
$(Q)$(if $(HAS_net),$(COMPILE_PROGRAM) -o $(B)/bench/net AddOns/Net/Benchmarks/main.c $(NET_PROGRAM_LIBS) $(PROGRAM_LIBS) $(net_LIBS) && \
$(B)/bench/net $(BENCH_ARGUMENTS),echo "bench-net: passed over, there is no $(net_PACKAGES) here (make deps-net)")
endef

BENCHMARKS += names
bench-names_NEEDS = $(bench-net_NEEDS)
define bench-names
$(Q)$(if $(HAS_net),$(COMPILE_PROGRAM) -o $(B)/bench/names AddOns/Net/Benchmarks/names.c $(NET_PROGRAM_LIBS) $(PROGRAM_LIBS) $(net_LIBS) && \
AddOns/Net/Benchmarks/names $(B)/bench/names,echo "bench-names: passed over, there is no $(net_PACKAGES) here (make deps-net)")
endef
