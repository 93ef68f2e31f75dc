/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sockets of SocketPort: listening, what comes in, and lines, which are what goes out.
 *
 * A line is one connection to one address, made when it is needed. `is_busy` is its only long hold: whoever set it writes to the
 * connection, without the mutex; the others wait for `is_free` until their own time limit.
 */
#define _GNU_SOURCE 1
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "CoreRunLoopShims.h"

enum { CONNECTIONS_THAT_WAIT = 64 };

/* The receiver takes no part in a connection on the same machine, so that a message may wait for one though it may not wait for room. */
static const int64_t shortest_connecting_ns = 100 * INT64_C(1000000);
static const int64_t longest_connecting_ns = 86400 * INT64_C(1000000000);

_Static_assert(sizeof(struct sockaddr_storage) == SHIM_ADDRESS_SIZE, "an address fits");

/* ---- addresses ---- */

intptr_t shim_address_make(int family, const uint8_t *host, uint16_t number, uint8_t *ret_address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(number)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(number)};

    if (family == AF_INET) {
        (void)memcpy(&v4.sin_addr, host, sizeof v4.sin_addr);
        (void)memcpy(ret_address, &v4, sizeof v4);
        return sizeof v4;
    }
    (void)memcpy(&v6.sin6_addr, host, sizeof v6.sin6_addr);
    (void)memcpy(ret_address, &v6, sizeof v6);
    return sizeof v6;
}

intptr_t shim_address_of_path(const uint8_t *path, intptr_t length, uint8_t *ret_address)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (length <= 0 || (size_t)length >= sizeof address.sun_path || memchr(path, 0, (size_t)length)) {
        return 0;
    }
    (void)memcpy(address.sun_path, path, (size_t)length);
    (void)memcpy(ret_address, &address, sizeof address);
    return (intptr_t)offsetof(struct sockaddr_un, sun_path) + length + 1;
}

int shim_address_family(const uint8_t *address, intptr_t length)
{
    sa_family_t family;

    if (length < (intptr_t)sizeof family || length > SHIM_ADDRESS_SIZE) {
        return -1;
    }
    (void)memcpy(&family, address, sizeof family);
    switch (family) {
    case AF_INET:
        return length >= (intptr_t)sizeof(struct sockaddr_in) ? family : -1;
    case AF_INET6:
        return length >= (intptr_t)sizeof(struct sockaddr_in6) ? family : -1;
    case AF_UNIX:
        /* Names without a file are refused: any user could have taken one. */
        return length > (intptr_t)offsetof(struct sockaddr_un, sun_path) && address[offsetof(struct sockaddr_un, sun_path)] ? family : -1;
    default:
        return -1;
    }
}

uint16_t shim_address_number(const uint8_t *address)
{
    struct sockaddr_in v4; /* the number lies at the same place in both */

    (void)memcpy(&v4, address, sizeof v4);
    return ntohs(v4.sin_port);
}

const uint8_t *shim_address_host(const uint8_t *address, int family)
{
    return address + (family == AF_INET ? offsetof(struct sockaddr_in, sin_addr) : offsetof(struct sockaddr_in6, sin6_addr));
}

intptr_t shim_host_parse(const char *text, uint8_t *ret_host)
{
    if (inet_pton(AF_INET, text, ret_host) == 1) {
        return sizeof(struct in_addr);
    }
    return inet_pton(AF_INET6, text, ret_host) == 1 ? (intptr_t)sizeof(struct in6_addr) : 0;
}

void shim_host_format(int family, const uint8_t *host, char *ret_text)
{
    if (!inet_ntop(family, host, ret_text, SHIM_ADDRESS_SIZE)) {
        *ret_text = '\0';
    }
}

static intptr_t name_of(int socket, uint8_t *ret_address, int (*get)(int, struct sockaddr *, socklen_t *))
{
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;

    if (get(socket, (struct sockaddr *)&address, &length) != 0) {
        return 0;
    }
    (void)memcpy(ret_address, &address, sizeof address);
    return length;
}

static int get_own(int socket, struct sockaddr *address, socklen_t *length)
{
    return getsockname(socket, address, length);
}

static int get_peer(int socket, struct sockaddr *address, socklen_t *length)
{
    return getpeername(socket, address, length);
}

intptr_t shim_socket_name(int socket, uint8_t *ret_address)
{
    return name_of(socket, ret_address, get_own);
}

intptr_t shim_socket_peer(int socket, uint8_t *ret_address)
{
    return name_of(socket, ret_address, get_peer);
}

static int result_of(int error)
{
    switch (error) {
    case 0:
        return SHIM_SOCKET_FINE;
    case ETIMEDOUT:
        return SHIM_SOCKET_TIMEOUT;
    case EADDRINUSE:
        return SHIM_SOCKET_TAKEN;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOBUFS:
        return SHIM_SOCKET_NO_MEANS;
    default:
        return SHIM_SOCKET_GONE;
    }
}

/* ---- what comes in ---- */

static int option_of(int socket, int option)
{
    int value = -1;
    socklen_t length = sizeof value;

    return getsockopt(socket, SOL_SOCKET, option, &value, &length) == 0 ? value : -1;
}

int shim_socket_protocol(int socket)
{
    return option_of(socket, SO_PROTOCOL);
}

bool shim_socket_is_listening(int socket)
{
    return option_of(socket, SO_TYPE) == SOCK_STREAM && option_of(socket, SO_ACCEPTCONN) == 1;
}

int shim_socket_keep_quiet(int socket)
{
    int flags = fcntl(socket, F_GETFL);

    return flags >= 0 && fcntl(socket, F_SETFL, flags | O_NONBLOCK) == 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) == 0 ? 0 : errno;
}

int shim_socket_listen(int family, int protocol, const uint8_t *address, intptr_t length)
{
    int listener = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);
    int on = 1;
    int error;

    if (listener < 0) {
        return result_of(errno);
    }
    if (family != AF_UNIX) {
        (void)setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        /* A connection counts when its first message is there, so that a run does not return for the connection alone. */
        (void)setsockopt(listener, IPPROTO_TCP, TCP_DEFER_ACCEPT, &on, sizeof on);
    }
    if (bind(listener, (const struct sockaddr *)(const void *)address, (socklen_t)length) == 0 &&
        listen(listener, CONNECTIONS_THAT_WAIT) == 0) {
        return listener;
    }
    error = errno;
    (void)close(listener);
    return result_of(error);
}

int shim_socket_accept(int listener)
{
    int accepted;

    do {
        accepted = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    } while (accepted < 0 && (errno == EINTR || errno == ECONNABORTED));
    return accepted;
}

intptr_t shim_socket_read(int socket, uint8_t *bytes, intptr_t length)
{
    ssize_t count;

    do {
        count = recv(socket, bytes, (size_t)length, 0);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return errno == EAGAIN ? SHIM_NOTHING_YET : SHIM_ENDED;
    }
    return count == 0 ? SHIM_ENDED : count;
}

void shim_socket_close(int socket)
{
    if (socket >= 0) {
        (void)close(socket);
    }
}

/* Writes the path of an AF_UNIX address, with its end. */
static bool path_of(const uint8_t *address, intptr_t length, struct sockaddr_un *ret_address)
{
    if (shim_address_family(address, length) != AF_UNIX || length > (intptr_t)sizeof *ret_address) {
        return false;
    }
    *ret_address = (struct sockaddr_un){0};
    (void)memcpy(ret_address, address, (size_t)length);
    return memchr(ret_address->sun_path, 0, sizeof ret_address->sun_path) != NULL;
}

bool shim_socket_file(const uint8_t *address, intptr_t length, struct shim_file_identity *ret_identity)
{
    struct sockaddr_un unix_address;
    struct stat found;

    if (!path_of(address, length, &unix_address) || lstat(unix_address.sun_path, &found) != 0 || !S_ISSOCK(found.st_mode)) {
        return false;
    }
    *ret_identity = (struct shim_file_identity){found.st_dev, found.st_ino};
    return true;
}

void shim_socket_unlink(const uint8_t *address, intptr_t length, struct shim_file_identity identity)
{
    struct sockaddr_un unix_address;
    struct shim_file_identity found;

    if (path_of(address, length, &unix_address) && shim_socket_file(address, length, &found) && found.device == identity.device &&
        found.number == identity.number) {
        (void)unlink(unix_address.sun_path);
    }
}

int shim_poll_set_create(void)
{
    return epoll_create1(EPOLL_CLOEXEC);
}

int shim_poll_set_add(int set, int socket)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = socket};

    return epoll_ctl(set, EPOLL_CTL_ADD, socket, &event) == 0 ? 0 : errno;
}

void shim_poll_set_remove(int set, int socket)
{
    (void)epoll_ctl(set, EPOLL_CTL_DEL, socket, NULL);
}

int shim_poll_set_next(int set)
{
    struct epoll_event event;

    return epoll_wait(set, &event, 1, 0) == 1 ? event.data.fd : -1;
}

/* ---- what goes out ---- */

struct shim_line {
    struct sockaddr_storage address;
    socklen_t length;
    int protocol;
    pthread_mutex_t mutex;
    pthread_cond_t is_free;
    int connection; /* -1: none; guarded by mutex, and only the busy sender closes it */
    bool is_busy; /* guarded by mutex */
    bool is_ended; /* guarded by mutex */
};

struct shim_line *shim_line_create(int protocol, const uint8_t *address, intptr_t length)
{
    struct shim_line *line = calloc(1, sizeof *line);
    pthread_condattr_t attributes;

    if (!line) {
        abort();
    }
    (void)memcpy(&line->address, address, (size_t)length);
    line->length = (socklen_t)length;
    line->protocol = protocol;
    line->connection = -1;
    (void)pthread_mutex_init(&line->mutex, NULL);
    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&line->is_free, &attributes);
    (void)pthread_condattr_destroy(&attributes);
    return line;
}

void shim_line_end(struct shim_line *line)
{
    (void)pthread_mutex_lock(&line->mutex);
    line->is_ended = true;
    if (line->is_busy) {
        (void)shutdown(line->connection, SHUT_RDWR); /* its sender comes back, and closes it */
    } else {
        shim_socket_close(line->connection);
        line->connection = -1;
    }
    (void)pthread_cond_broadcast(&line->is_free);
    (void)pthread_mutex_unlock(&line->mutex);
}

void shim_line_destroy(struct shim_line *line)
{
    shim_socket_close(line->connection);
    (void)pthread_cond_destroy(&line->is_free);
    (void)pthread_mutex_destroy(&line->mutex);
    free(line);
}

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* Takes the line for writing; an errno value if it has ended or stayed busy. */
static int take(struct shim_line *line, int64_t deadline_ns)
{
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    int error = 0;

    (void)pthread_mutex_lock(&line->mutex);
    while (line->is_busy && !line->is_ended && error == 0) {
        error = pthread_cond_timedwait(&line->is_free, &line->mutex, &until);
    }
    if (line->is_ended) {
        error = EPIPE;
    } else if (!line->is_busy) {
        line->is_busy = true;
        error = 0;
    }
    (void)pthread_mutex_unlock(&line->mutex);
    return error;
}

static void give_back(struct shim_line *line)
{
    (void)pthread_mutex_lock(&line->mutex);
    if (line->is_ended) {
        shim_socket_close(line->connection);
        line->connection = -1;
    }
    line->is_busy = false;
    (void)pthread_cond_signal(&line->is_free);
    (void)pthread_mutex_unlock(&line->mutex);
}

/* Puts `connection` in the place of the one that the busy sender had; false if the line has ended meanwhile. */
static bool replace(struct shim_line *line, int connection)
{
    bool is_ended;

    (void)pthread_mutex_lock(&line->mutex);
    shim_socket_close(line->connection);
    line->connection = connection;
    is_ended = line->is_ended;
    (void)pthread_mutex_unlock(&line->mutex);
    return !is_ended;
}

static int wait_until_writable(int connection, int64_t deadline_ns)
{
    struct pollfd item = {.fd = connection, .events = POLLOUT};
    struct timespec left;
    int64_t left_ns;
    int count;

    do {
        left_ns = deadline_ns - now_ns();
        left_ns = left_ns > 0 ? left_ns : 0;
        left = (struct timespec){left_ns / 1000000000, left_ns % 1000000000};
        count = ppoll(&item, 1, &left, NULL);
    } while (count < 0 && errno == EINTR);
    return count > 0 ? 0 : count == 0 ? ETIMEDOUT : errno;
}

/* Nobody sends in this direction: whatever there is to read is the end. */
static bool is_alive(int connection)
{
    char byte;

    return connection >= 0 && recv(connection, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

/* A Unix socket that does not block cannot wait for room among the connections; one that blocks can, and has a time limit. */
static int connect_unix(const struct shim_line *line, int connection, int64_t limit_ns)
{
    struct timeval limit = {limit_ns / 1000000000, limit_ns % 1000000000 / 1000};

    (void)setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    while (connect(connection, (const struct sockaddr *)&line->address, line->length) != 0) {
        if (errno != EINTR) {
            return errno == EAGAIN ? ETIMEDOUT : errno;
        }
    }
    return shim_socket_keep_quiet(connection);
}

static int connect_tcp(const struct shim_line *line, int connection, int64_t limit_ns)
{
    int on = 1;
    int error = shim_socket_keep_quiet(connection);

    (void)setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (error || connect(connection, (const struct sockaddr *)&line->address, line->length) == 0) {
        return error;
    }
    if (errno != EINPROGRESS && errno != EINTR) {
        return errno;
    }
    error = wait_until_writable(connection, now_ns() + limit_ns);
    return error ? error : option_of(connection, SO_ERROR);
}

static int make_connection(struct shim_line *line, int64_t deadline_ns)
{
    int connection = socket(line->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, line->protocol);
    int64_t limit_ns = deadline_ns - now_ns();

    limit_ns = limit_ns > shortest_connecting_ns ? limit_ns : shortest_connecting_ns;
    limit_ns = limit_ns < longest_connecting_ns ? limit_ns : longest_connecting_ns;
    if (connection < 0) {
        return errno;
    }
    if (!replace(line, connection)) {
        return EPIPE;
    }
    return line->address.ss_family == AF_UNIX ? connect_unix(line, connection, limit_ns) : connect_tcp(line, connection, limit_ns);
}

/* Writes all of it. ETIMEDOUT with nothing written leaves the connection whole; any other failure ends it. */
static int write_all(int connection, const uint8_t *bytes, size_t length, int64_t deadline_ns, size_t *ret_written)
{
    int error;

    *ret_written = 0;
    while (*ret_written < length) {
        ssize_t count = send(connection, bytes + *ret_written, length - *ret_written, MSG_NOSIGNAL);

        if (count >= 0) {
            *ret_written += (size_t)count;
        } else if (errno == EAGAIN) {
            error = wait_until_writable(connection, deadline_ns);
            if (error) {
                return error;
            }
        } else if (errno != EINTR) {
            return errno;
        }
    }
    return 0;
}

int shim_line_send(struct shim_line *line, const uint8_t *bytes, intptr_t length, int64_t limit_ns)
{
    int64_t now = now_ns();
    int64_t deadline_ns = limit_ns > INT64_MAX - now ? INT64_MAX : now + limit_ns;
    size_t written = 0;
    int error = take(line, deadline_ns);

    if (error) {
        return result_of(error);
    }
    /* Nobody else changes the connection while the line is busy. */
    if (!is_alive(line->connection)) {
        error = make_connection(line, deadline_ns);
    }
    if (!error) {
        error = write_all(line->connection, bytes, (size_t)length, deadline_ns, &written);
    }
    if (error && (error != ETIMEDOUT || written > 0 || !is_alive(line->connection))) {
        (void)replace(line, -1);
    }
    give_back(line);
    return result_of(error);
}
