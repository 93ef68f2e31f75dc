/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a child process for names; see symbols.h. */
#include "Names/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runloop.h"

enum {
    answer_limit_ms = 20000, /* the debug information of a large program takes seconds */
    children_most = 16, /* that may die, until nothing is asked any more */
    processor_limit_s = 120,
};

static struct {
    int socket;
    pid_t process; /* 0: there is none */
    int died;
} child;

static void limit(__rlimit_resource_t what, rlim_t most)
{
    struct rlimit limits = {most, most};

    (void)setrlimit(what, &limits);
}

/* A sanitizer takes more addresses than there is memory. */
static void limit_child(void)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    limit(RLIMIT_AS, (rlim_t)(sizeof(void *) == 8 ? UINT64_C(8) << 30 : UINT64_C(2) << 30));
#endif
    limit(RLIMIT_CPU, processor_limit_s);
    limit(RLIMIT_FSIZE, 0);
    limit(RLIMIT_CORE, 0);
}

static bool begin_child(void)
{
    int sockets[2];

    if (child.process > 0 || child.died >= children_most || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) != 0) {
        return child.process > 0;
    }
    child.process = fork();
    if (child.process == 0) {
        (void)close(sockets[0]);
        limit_child();
        symbols_answer(sockets[1], sockets[1]);
        _exit(0);
    }
    (void)close(sockets[1]);
    if (child.process < 0) {
        child.process = 0;
        child.died = children_most;
        (void)close(sockets[0]);
        return false;
    }
    child.socket = sockets[0];
    return true;
}

static void end_child(void)
{
    (void)kill(child.process, SIGKILL);
    while (waitpid(child.process, NULL, 0) < 0 && errno == EINTR) {
    }
    (void)close(child.socket);
    child.process = 0;
    child.died++;
}

/* Returns false if the child has not answered. */
static bool ask_child(const struct symbol_question *question, struct symbol_answer *ret_answer)
{
    struct pollfd answer = {.fd = child.socket, .events = POLLIN};
    int ready;

    if (send(child.socket, question, sizeof *question, MSG_NOSIGNAL) != (ssize_t)sizeof *question) {
        return false;
    }
    do {
        ready = poll(&answer, 1, answer_limit_ms);
    } while (ready < 0 && errno == EINTR);
    return ready == 1 && recv(child.socket, ret_answer, sizeof *ret_answer, MSG_DONTWAIT) == (ssize_t)sizeof *ret_answer;
}

static struct code_name name_in_file(struct object_map *object, uint64_t address, int64_t newest_s)
{
    static struct symbol_question question;
    static struct symbol_answer answer;
    const char *slash = strrchr(object->path, '/');
    const char *file = slash ? slash + 1 : object->path;

    memset(&question, 0, sizeof question);
    memset(&answer, 0, sizeof answer);
    question.address = address - object->bias;
    question.newest_s = newest_s;
    (void)snprintf(question.path, sizeof question.path, "%s", object->path);
    if (!object->is_unreadable && begin_child() && !ask_child(&question, &answer)) {
        end_child();
        object->is_unreadable = true;
        memset(&answer, 0, sizeof answer);
    }
    answer.name[sizeof answer.name - 1] = '\0';
    answer.place[sizeof answer.place - 1] = '\0';
    if (answer.name[0] == '\0') {
        (void)snprintf(answer.name, sizeof answer.name, "%.255s+0x%" PRIx64, file, question.address);
    }
    return (struct code_name){copy_text(answer.name, strlen(answer.name)), copy_text(answer.place, strlen(answer.place))};
}

struct object_map *object_at(const struct process *process, uint64_t address)
{
    for (size_t i = 0; i < process->object_count; i++) {
        if (address >= process->objects[i].begin && address < process->objects[i].end) {
            return &process->objects[i];
        }
    }
    return NULL;
}

struct code_name symbol_name(struct process *process, uint64_t address)
{
    struct object_map *object = object_at(process, address);

    return object ? name_in_file(object, address, process->began_s) : (struct code_name){symbol_without_file, ""};
}
