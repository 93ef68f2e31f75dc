/* SPDX-License-Identifier: Apache-2.0 */
/* See host_lookup.h. */
#include "host_lookup.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>

#include "Runtime/Text/c_string.h"
#include "Support/invariant.h"

enum { family_count = 2 };

static const char hosts_file[] = "/etc/hosts"; /* c-ares's, which takes no other */
static const int64_t patience_with_other_family_ns = 50000000;

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- functions that c-ares calls ---- */

/* Puts a socket of a channel into the wait set, or takes it out. After a failure the answer is missed until its deadline. */
static void watch_socket(void *info, ares_socket_t socket, int reads, int writes)
{
    struct host_lookup *l = info;
    struct epoll_event event = {.events = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u), .data.fd = socket};

    if (event.events == 0) {
        (void)epoll_ctl(l->wait_set, EPOLL_CTL_DEL, socket, &event);
    } else if (epoll_ctl(l->wait_set, EPOLL_CTL_MOD, socket, &event) < 0) {
        (void)epoll_ctl(l->wait_set, EPOLL_CTL_ADD, socket, &event);
    }
}

static void note_names(void *info, int status, int timeouts, struct hostent *host)
{
    struct family_question *question = info;

    (void)timeouts;
    question->is_asking = false;
    if (status == ARES_SUCCESS) {
        invariant(!question->lookup->names);
        question->lookup->names = resolver_create_names(host);
        status = question->lookup->names ? ARES_SUCCESS : ARES_ENOMEM;
    }
    question->status = status;
}

static void note_addresses(void *info, int status, int timeouts, struct ares_addrinfo *found)
{
    struct family_question *question = info;

    (void)timeouts;
    invariant(!question->found);
    question->is_asking = false;
    question->status = status;
    if (status == ARES_SUCCESS && found->nodes) {
        question->found = found;
    } else {
        ares_freeaddrinfo(found);
        question->status = status == ARES_SUCCESS ? ARES_ENODATA : status;
    }
}

/* ---- asking ---- */

static bool open_channel(struct host_lookup *l, int family, const char *lookups)
{
    struct family_question *question = &l->families[family];
    const struct resolver_terms terms = {watch_socket, l, lookups, &l->configuration};

    if (!question->channel) {
        question->status = resolver_create(&terms, &question->channel);
    }
    return question->channel;
}

static void close_channel(struct family_question *question)
{
    if (question->channel) {
        ares_destroy(question->channel);
        question->channel = NULL;
    }
}

/* The hosts file answers at once, for both families. */
static void ask_hosts_file(struct host_lookup *l)
{
    struct family_question *question = &l->families[0];

    l->families[1].status = ARES_ENOTFOUND;
    if (dns_hosts_file_is_fit(hosts_file) && open_channel(l, 0, "f")) {
        resolver_ask_addresses(question->channel, l->name, AF_UNSPEC, note_addresses, question);
    }
    close_channel(question); /* the next one asks servers */
    if (question->status != ARES_ENOMEM) {
        question->status = ARES_ENOTFOUND; /* c-ares tells that no server was reached */
    }
}

/* The domain with the number, which the packed domains have. */
static const char *domain_at(const struct dns_configuration *c, int number)
{
    const char *domain = c->domains;

    invariant(number < c->domain_count);
    while (number-- > 0) {
        domain += strlen(domain) + 1;
    }
    return domain;
}

static bool is_absolute(const struct host_lookup *l)
{
    return l->name[strlen(l->name) - 1] == '.';
}

/* Writes the name to ask for. Returns false if it would be too long. */
static bool make_candidate(const struct host_lookup *l, char ret_name[longest_host_name])
{
    int dots = 0;
    int own_place;
    int length;

    for (const char *c = l->name; *c; c++) {
        dots += *c == '.';
    }
    own_place = dots >= l->configuration.ndots || is_absolute(l) ? 0 : l->configuration.domain_count;
    if (l->candidate == own_place) {
        length = snprintf(ret_name, longest_host_name, "%s", l->name);
    } else {
        length = snprintf(ret_name, longest_host_name, "%s.%s", l->name,
                          domain_at(&l->configuration, l->candidate - (l->candidate > own_place)));
    }
    return length < longest_host_name && resolver_name_is_valid(ret_name);
}

static void ask_servers(struct host_lookup *l)
{
    static const int families[family_count] = {AF_INET, AF_INET6};
    char name[longest_host_name];
    bool is_name = make_candidate(l, name);

    for (int i = 0; i < family_count; i++) {
        struct family_question *question = &l->families[i];

        question->status = ARES_ENOTFOUND;
        if (is_name && open_channel(l, i, "b")) {
            question->is_asking = true;
            resolver_ask_addresses(question->channel, name, families[i], note_addresses, question);
        }
    }
}

static void ask(struct host_lookup *l)
{
    if (*l->stage == 'f') {
        ask_hosts_file(l);
    } else {
        ask_servers(l);
    }
}

/* ---- answers ---- */

/* How much a failure says about the name: a server that could not answer says more than one that has no such name. */
static int weight_of(int status)
{
    return status == ARES_ENOTFOUND ? 0 : status == ARES_ENODATA ? 1 : status == ARES_ESERVFAIL ? 2 : 3;
}

static int weightier(int status, int other)
{
    return weight_of(other) > weight_of(status) ? other : status;
}

static void end(struct host_lookup *l, int status)
{
    invariant(!l->is_over);
    l->is_over = true;
    l->status = status;
}

/* Neither family has an address of the name that was asked for. A failure that another name would share ends the stage. */
static void note_failure(struct host_lookup *l)
{
    int status = weightier(l->families[0].status, l->families[1].status);

    l->status = weightier(l->status, status);
    if (*l->stage == 'b' && weight_of(status) < 3 && !is_absolute(l) && l->candidate < l->configuration.domain_count) {
        l->candidate++;
    } else {
        l->stage++;
        l->candidate = 0;
    }
    if (*l->stage && l->status != ARES_ENOMEM) {
        ask(l);
    } else {
        end(l, l->status);
    }
}

void host_lookup_advance(struct host_lookup *l)
{
    while (!l->is_over) {
        bool is_asking = l->families[0].is_asking || l->families[1].is_asking;
        bool is_found = l->families[0].found || l->families[1].found;

        if (is_found && is_asking && l->use_at_ns == 0) {
            l->use_at_ns = now_ns() + patience_with_other_family_ns;
        }
        if (is_asking && (!is_found || now_ns() < l->use_at_ns)) {
            return;
        }
        if (is_found || l->names) {
            end(l, ARES_SUCCESS);
        } else if (*l->stage == '\0') {
            end(l, l->families[0].status);
        } else {
            note_failure(l);
        }
    }
}

void host_lookup_process(struct host_lookup *l, ares_socket_t readable, ares_socket_t writable)
{
    for (int i = 0; i < family_count; i++) {
        if (l->families[i].channel) { /* which passes over the sockets of the other */
            ares_process_fd(l->families[i].channel, readable, writable);
        }
    }
}

int64_t host_lookup_wait_ns(const struct host_lookup *l)
{
    int64_t wait_ns = -1;

    for (int i = 0; i < family_count; i++) {
        struct timeval left;

        if (l->families[i].is_asking && ares_timeout(l->families[i].channel, NULL, &left)) {
            int64_t left_ns = left.tv_sec * INT64_C(1000000000) + left.tv_usec * INT64_C(1000);

            wait_ns = wait_ns < 0 || left_ns < wait_ns ? left_ns : wait_ns;
        }
    }
    if (l->use_at_ns) {
        int64_t left_ns = l->use_at_ns - now_ns();

        left_ns = left_ns > 0 ? left_ns : 0;
        wait_ns = wait_ns < 0 || left_ns < wait_ns ? left_ns : wait_ns;
    }
    return wait_ns;
}

/* ---- the beginning and the end ---- */

/* Each lookup begins with another server. */
static void rotate_servers(struct dns_configuration *c)
{
    static _Atomic unsigned lookups;
    struct dns_configuration before = *c;
    unsigned first = atomic_fetch_add_explicit(&lookups, 1, memory_order_relaxed);

    for (int i = 0; i < c->server_count; i++) {
        memcpy(c->servers[i], before.servers[(first + (unsigned)i) % (unsigned)c->server_count], sizeof c->servers[i]);
    }
}

void host_lookup_init(struct host_lookup *l, int wait_set, const struct dns_configuration *configuration)
{
    *l = (struct host_lookup){.wait_set = wait_set, .status = ARES_ENOTFOUND};
    for (int i = 0; i < family_count; i++) {
        l->families[i].lookup = l;
    }
    if (configuration) {
        l->configuration = *configuration;
    } else if (!dns_configuration_read("/etc/resolv.conf", "/etc/nsswitch.conf", &l->configuration)) {
        end(l, ARES_ENOMEM);
    }
    if (l->configuration.rotates) {
        rotate_servers(&l->configuration);
    }
    l->stage = l->configuration.lookups;
}

static void drop_questions(struct host_lookup *l)
{
    for (int i = 0; i < family_count; i++) {
        close_channel(&l->families[i]); /* whose question ends with a failure */
        if (l->families[i].found) {
            ares_freeaddrinfo(l->families[i].found);
            l->families[i].found = NULL;
        }
    }
}

void host_lookup_destroy(struct host_lookup *l)
{
    drop_questions(l);
    if (l->names) {
        CFRelease(l->names);
    }
}

void host_lookup_ask_addresses(struct host_lookup *l, CFStringRef host)
{
    if (l->is_over) {
        return;
    }
    if (!c_string_copy(host, l->name, sizeof l->name, kCFStringEncodingASCII) || !resolver_name_is_valid(l->name)) {
        end(l, ARES_EBADNAME);
        return;
    }
    ask(l);
    host_lookup_advance(l);
}

void host_lookup_ask_names(struct host_lookup *l, CFDataRef address)
{
    struct family_question *question = &l->families[0];
    const char *lookups = dns_hosts_file_is_fit(hosts_file) ? l->configuration.lookups : strchr(l->configuration.lookups, 'b') ? "b" : "";

    if (l->is_over) {
        return;
    }
    question->status = ARES_ENOTFOUND;
    if (*lookups && open_channel(l, 0, lookups)) {
        question->is_asking = true;
        resolver_ask_names(question->channel, address, note_names, question);
    }
    l->stage += strlen(l->stage); /* the channel asks in all stages */
    host_lookup_advance(l);
}

void host_lookup_ask_again(struct host_lookup *l, CFDataRef address)
{
    invariant(!l->is_over);
    drop_questions(l);
    l->use_at_ns = 0;
    if (address) {
        l->stage = l->configuration.lookups;
        host_lookup_ask_names(l, address);
    } else {
        ask(l);
        host_lookup_advance(l);
    }
}
