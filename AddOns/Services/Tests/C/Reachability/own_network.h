/* SPDX-License-Identifier: Apache-2.0 */
/* A network of a test's own, which begins with the interface "lo" alone, and changes to it. Nothing leaves it. */
#ifndef CRL_TESTS_OWN_NETWORK_H
#define CRL_TESTS_OWN_NETWORK_H

#include <netinet/in.h>
#include <stdbool.h>

/* An address, by its text: IPv4, or IPv6 if there is a colon. */
struct sockaddr_storage own_network_address(const char *text);
/* Goes into a network whose interface is down. Skips the test where the process may not. */
void own_network_enter(void);
/* Each fails the test if the kernel refuses. */
void own_network_up(bool is_up);
/* Makes a pair of links, of which routes go by the first from now on. False: the kernel has none. */
bool own_network_add_links(void);
/* `prefix` is in bits. */
void own_network_add_address(const char *address, int prefix, bool is_added);
/* A route by the interface, by way of the gateway unless that is NULL. */
void own_network_add_route(const char *destination, int prefix, const char *gateway, bool is_added);

#endif
