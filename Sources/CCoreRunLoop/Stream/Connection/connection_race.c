/* SPDX-License-Identifier: Apache-2.0 */
/* See connection_race.h. */
#include "Stream/Connection/connection_race.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#include "Kernel/Ports/kernel_ports.h"
#include "Kernel/kernel.h"
#include "Stream/Connection/connection_attempt.h"

static const int64_t step_ns = 250000000; /* RFC 8305, 8: from one attempt to the next */

/* ---- the order of the addresses ---- */

REQUIRES(the_item_lock) static sa_family_t family_at(const struct stream_connection *c, CFIndex index)
{
    CFDataRef address = CFArrayGetValueAtIndex(c->addresses, index);
    sa_family_t family = AF_UNSPEC;

    if (CFDataGetLength(address) >= (CFIndex)sizeof family) {
        family = ((const struct sockaddr *)(const void *)CFDataGetBytePtr(address))->sa_family;
    }
    return family;
}

/* Finds the next address of the first one's family, or of another one. Returns false if there is none. */
REQUIRES(the_item_lock) static bool find_next(struct stream_connection *c, bool is_other)
{
    CFIndex *next = &c->race.next[is_other];
    CFIndex count = CFArrayGetCount(c->addresses);

    while (*next < count && (family_at(c, *next) != family_at(c, 0)) != is_other) {
        (*next)++;
    }
    return *next < count;
}

/* Whether there is an address that was not tried yet. If so, `turn` says in which family. */
REQUIRES(the_item_lock) static bool has_next(struct stream_connection *c)
{
    if (!find_next(c, c->race.turn)) {
        c->race.turn = !c->race.turn;
    }
    return find_next(c, c->race.turn);
}

/* ---- attempts ---- */

union attempted_address {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
    struct sockaddr_storage largest;
};

REQUIRES(the_item_lock) static void remove_attempt(struct stream_connection *c, uint32_t index)
{
    struct connection_race *race = &c->race;

    invariant(index < race->count);
    race->count--;
    memmove(race->attempts + index, race->attempts + index + 1, (race->count - index) * sizeof race->attempts[0]);
}

/* Copies the address, with the connection's port if it has none of its own. Returns its length, or a negative errno. */
static int take_address(const struct stream_connection *c, CFDataRef address, union attempted_address *ret_address)
{
    CFIndex length = CFDataGetLength(address);

    *ret_address = (union attempted_address){.any.sa_family = AF_UNSPEC};
    if (length < (CFIndex)sizeof ret_address->any.sa_family || length > (CFIndex)sizeof *ret_address) {
        return -EINVAL;
    }
    memcpy(ret_address, CFDataGetBytePtr(address), (size_t)length);
    if (c->sets_port && ret_address->any.sa_family == AF_INET) {
        ret_address->ipv4.sin_port = htons((uint16_t)c->port);
    } else if (c->sets_port && ret_address->any.sa_family == AF_INET6) {
        ret_address->ipv6.sin6_port = htons((uint16_t)c->port);
    }
    return (int)length;
}

/* Makes a socket for the address, and begins to connect it. Returns it, or a negative errno. */
REQUIRES(the_item_lock) static int begin_to_connect(struct stream_connection *c, CFDataRef address)
{
    union attempted_address bytes;
    int length = take_address(c, address, &bytes);
    int made = length < 0 ? length : kernel.socket_create(bytes.any.sa_family, c->type, c->protocol);
    int result;

    if (made < 0) {
        return made;
    }
    result = kernel.socket_connect(made, &bytes, (size_t)length, 0);
    if ((result == 0 || result == -EINPROGRESS) && c->watches_set) {
        result = race_watch(c, made, kernel_writable);
    }
    if (result == 0 || result == -EINPROGRESS) {
        return made; /* a look at the socket tells the outcome in both cases */
    }
    (void)kernel.close(made);
    return result;
}

/* Tries the address whose turn it is. Returns false if that has failed already. */
REQUIRES(the_item_lock) static bool begin_attempt(struct stream_connection *c)
{
    struct connection_race *race = &c->race;
    int made = begin_to_connect(c, CFArrayGetValueAtIndex(c->addresses, race->next[race->turn]++));

    race->turn = !race->turn;
    if (made < 0) {
        c->error = (CFStreamError){kCFStreamErrorDomainPOSIX, -made};
        return false;
    }
    if (race->count == 0 && c->watched < 0 && c->limit_at_ns == kernel_never && !has_next(c)) {
        c->descriptor = made; /* there is nothing else to wait for */
        return true;
    }
    if (race->count == race_most_attempts) {
        (void)kernel.close(race->attempts[0]);
        remove_attempt(c, 0);
    }
    race->attempts[race->count++] = made;
    return true;
}

REQUIRES(the_item_lock) static void close_attempts(struct stream_connection *c)
{
    while (c->race.count > 0) {
        (void)kernel.close(c->race.attempts[--c->race.count]);
    }
}

/* Takes the attempt's socket for the connection's. */
REQUIRES(the_item_lock) static void win(struct stream_connection *c, uint32_t index)
{
    invariant(c->descriptor < 0);
    c->descriptor = c->race.attempts[index];
    remove_attempt(c, index);
    close_attempts(c);
    c->state = c->security ? connection_shaking_hands : connection_open;
}

/* Returns 0 if the socket is connected, EINPROGRESS, or why it will not be. */
static int outcome_of(int attempt)
{
    bool is_over = kernel.descriptor_ready(attempt, kernel_writable) & (kernel_writable | kernel_failed);
    int error = is_over ? kernel.socket_take_error(attempt) : EINPROGRESS;

    return error < 0 ? -error : error;
}

/* Asks the only attempt, which is the connection's socket. That stays, also if it has failed, as streams may watch it. */
REQUIRES(the_item_lock) static void look_at_socket(struct stream_connection *c)
{
    int outcome = outcome_of(c->descriptor);

    if (outcome == 0) {
        c->state = c->security ? connection_shaking_hands : connection_open;
    } else if (outcome != EINPROGRESS) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, outcome);
    }
}

/* Asks each socket whether it is connected by now. Returns whether one has failed that others can follow. */
REQUIRES(the_item_lock) static bool look_at_attempts(struct stream_connection *c)
{
    struct connection_race *race = &c->race;
    bool has_failed = false;
    uint32_t i = 0;

    if (c->descriptor >= 0) {
        look_at_socket(c);
    }
    while (i < race->count) {
        int outcome = outcome_of(race->attempts[i]);

        if (outcome == EINPROGRESS) {
            i++;
        } else if (outcome == 0) {
            win(c, i);
        } else {
            c->error = (CFStreamError){kCFStreamErrorDomainPOSIX, outcome};
            (void)kernel.close(race->attempts[i]);
            remove_attempt(c, i);
            has_failed = true;
        }
    }
    return has_failed;
}

void race_advance(struct stream_connection *c)
{
    struct connection_race *race = &c->race;
    int64_t now_ns = kernel.monotonic_ns();
    bool is_due = look_at_attempts(c) || race->step_at_ns <= now_ns;

    while (c->state == connection_connecting && is_due && has_next(c)) {
        is_due = !begin_attempt(c) || look_at_attempts(c);
        race->step_at_ns = now_ns + step_ns;
    }
    if (c->state == connection_connecting && race->count == 0 && c->descriptor < 0) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, c->error.error ? c->error.error : EADDRNOTAVAIL);
    }
}

/* ---- the wait set ---- */

int race_watch(struct stream_connection *c, int descriptor, uint32_t interest)
{
    int result;

    invariant(c->watches_set && c->watched >= 0);
    result = kernel.set_add(c->watched, descriptor, interest, 0);
    return result == -EEXIST ? kernel.set_change(c->watched, descriptor, interest, 0) : result;
}

/* Makes the set, with the sockets that there are. Returns 0 or a negative errno. */
REQUIRES(the_item_lock) static int make_set(struct stream_connection *c)
{
    int result;

    invariant(c->watched < 0 && c->race.alarm < 0);
    c->watched = kernel.set_create();
    c->watches_set = c->watched >= 0;
    c->race.alarm = c->watches_set ? kernel.alarm_create() : -1;
    if (c->race.alarm < 0) {
        return c->watches_set ? c->race.alarm : c->watched;
    }
    result = race_watch(c, c->race.alarm, kernel_readable);
    for (uint32_t i = 0; i < c->race.count && result == 0; i++) {
        result = race_watch(c, c->race.attempts[i], kernel_writable);
    }
    if (result == 0 && c->state == connection_shaking_hands) {
        result = race_watch(c, c->descriptor, kernel_writable);
    }
    return result;
}

/*
 * The alarm goes when there is something to do without any descriptor's being ready; at once for what has failed, to wake who waits.
 * Returns 0 or a negative errno.
 */
REQUIRES(the_item_lock) static int set_alarm(struct stream_connection *c)
{
    int64_t alarm_at_ns = c->limit_at_ns;

    if (c->state == connection_failed) {
        alarm_at_ns = 0;
    } else if (c->state == connection_connecting && has_next(c) && c->race.step_at_ns < alarm_at_ns) {
        alarm_at_ns = c->race.step_at_ns;
    }
    return kernel.alarm_set(c->race.alarm, alarm_at_ns);
}

REQUIRES(the_item_lock) static void close_alarm(struct stream_connection *c)
{
    if (c->race.alarm >= 0) {
        (void)kernel.close(c->race.alarm);
        c->race.alarm = -1;
    }
}

void race_end(struct stream_connection *c)
{
    close_attempts(c);
    close_alarm(c);
}

/*
 * Puts the socket in the place of the set, under its number. A socket whose own number is in use, by the program or by a session that was
 * made meanwhile, keeps that as well. Returns 0 or a negative errno.
 */
REQUIRES(the_item_lock) static int leave_set(struct stream_connection *c)
{
    int result = kernel_ports.replace(c->descriptor, c->watched);

    if (result < 0) {
        return result;
    }
    c->watches_set = false;
    close_alarm(c);
    if (c->is_own && !c->session) {
        (void)kernel.close(c->descriptor);
        c->descriptor = c->watched;
    }
    return 0;
}

void race_settle(struct stream_connection *c)
{
    bool has_socket = c->state == connection_open || (c->descriptor >= 0 && c->limit_at_ns == kernel_never);
    int result = 0;

    c->limit_at_ns = c->state == connection_open ? kernel_never : c->limit_at_ns;
    if (has_socket && c->watched < 0) {
        c->watched = c->descriptor;
    } else if (has_socket && c->watches_set) {
        result = leave_set(c);
    } else if (c->state != connection_failed && c->watched < 0) {
        result = make_set(c);
    }
    if (result == 0 && c->race.alarm >= 0) {
        result = set_alarm(c);
    }
    if (result < 0 && c->state != connection_failed) {
        connection_fail(c, kCFStreamErrorDomainPOSIX, -result);
    }
    if (c->state == connection_failed) {
        close_attempts(c);
    }
}

/* ---- the limit ---- */

void race_set_limit(struct stream_connection *c)
{
    c->limit_at_ns = c->limit_ns ? kernel.monotonic_ns() + c->limit_ns : kernel_never;
}

void race_limit_handshake(struct stream_connection *c)
{
    invariant(c->state == connection_shaking_hands && c->watched == c->descriptor && !c->watches_set);
    race_set_limit(c);
    if (c->limit_at_ns != kernel_never) {
        c->watched = -1; /* the session has the number of the socket; the set gets another one */
        race_settle(c);
    }
}
