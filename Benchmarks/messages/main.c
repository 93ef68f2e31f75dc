/* SPDX-License-Identifier: Apache-2.0 */
/* messages --list; messages [--cores 1|2] [--iterations N] [--seconds S] PEER SIZE threads|processes [one-way]. See messages.h. */
#include "messages.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { samples_most = 400000, warm_up_least = 3 };

static const struct peer *const peers[] = {
    &port_peer, &awake_port_peer, &seqpacket_peer, &waited_seqpacket_peer, &reply_page_peer, &six_calls_peer, &stream_peer,
#ifdef HAVE_ZEROMQ
    &zeromq_peer,
#endif
#ifdef HAVE_NNG
    &nng_peer,
#endif
#ifdef HAVE_SYSTEMD
    &direct_bus_peer, &daemon_bus_peer,
#endif
};

struct options {
    int cores; /* 0: as the system places threads */
    long iterations; /* 0: as many as the time allows */
    double seconds;
};

struct job {
    const struct peer *peer;
    struct place place;
};

static int ready_pipe[2];
static size_t size_told; /* of each message that goes one way */
static char folder[64];
static pid_t server_process;

/* ---- the server's side ---- */

void serving(void)
{
    if (write(ready_pipe[1], "r", 1) != 1) {
        give_up("the client is not there");
    }
}

void was_told(size_t size)
{
    static long count;

    if (size != size_told) {
        give_up("a message is not what was sent");
    }
    if (++count % tells_in_a_row == 0 && write(ready_pipe[1], "t", 1) != 1) {
        give_up("the client is not there");
    }
}

static void remove_folder(void)
{
    char command[96];

    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (folder[0] && system(command) != 0) {
        (void)fprintf(stderr, "messages: %s is left behind\n", folder);
    }
}

static void end_server(void)
{
    if (server_process > 0) {
        (void)kill(server_process, SIGTERM);
        (void)waitpid(server_process, NULL, 0);
        server_process = 0;
    }
    remove_folder();
}

_Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "messages: %s\n", what);
    end_server();
    _exit(1);
}

static void *serve(void *info)
{
    struct job *job = info;

    job->peer->serve(&job->place);
    give_up("the server ended");
}

static void begin_server(struct job *job)
{
    pthread_t thread;
    char byte;

    if (pipe(ready_pipe) != 0) {
        give_up("no pipe");
    }
    if (job->place.in_process) {
        if (pthread_create(&thread, NULL, serve, job) != 0) {
            give_up("no thread");
        }
    } else {
        server_process = fork();
        if (server_process == 0) {
            folder[0] = '\0';
            (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
            (void)serve(job);
        }
    }
    if (read(ready_pipe[0], &byte, 1) != 1) {
        give_up("the server did not begin");
    }
}

/* ---- the client's side ---- */

static int64_t now_ns(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int by_size(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;

    return a < b ? -1 : a > b;
}

static void exchange(const struct job *job, const void *request)
{
    char byte;

    if (!job->place.is_one_way) {
        if (!job->peer->exchange(request, job->place.size)) {
            give_up("a reply is missing or is not what was sent");
        }
        return;
    }
    for (int i = 0; i < tells_in_a_row; i++) {
        if (!job->peer->tell(request, job->place.size)) {
            give_up("a message cannot be sent");
        }
    }
    if (read(ready_pipe[0], &byte, 1) != 1) {
        give_up("the server is not there");
    }
}

static void warm_up(const struct job *job, const void *request, const struct options *options)
{
    int64_t end_ns = now_ns() + (int64_t)(options->seconds * 1e8);

    for (int i = 0; i < warm_up_least || (options->iterations == 0 && now_ns() < end_ns); i++) {
        exchange(job, request);
    }
}

static long measure(const struct job *job, const void *request, const struct options *options, int64_t *samples)
{
    long wanted = options->iterations > 0 ? options->iterations : samples_most;
    int64_t begin_ns = now_ns();
    int64_t end_ns = options->iterations > 0 ? INT64_MAX : begin_ns + (int64_t)(options->seconds * 1e9);
    long count = 0;

    while (count < wanted && (begin_ns < end_ns || count < warm_up_least)) {
        int64_t after_ns;

        exchange(job, request);
        after_ns = now_ns();
        samples[count++ % samples_most] = after_ns - begin_ns;
        begin_ns = after_ns;
    }
    return count < samples_most ? count : samples_most;
}

static void run(struct job *job, const struct options *options)
{
    void *request = malloc(job->place.size + 1);
    int64_t *samples = malloc(samples_most * sizeof *samples);
    long each = job->place.is_one_way ? tells_in_a_row : 1;
    long count;

    if (!request || !samples) {
        give_up("no memory");
    }
    memset(request, 'm', job->place.size + 1);
    if (!job->peer->open(&job->place)) {
        give_up("the server cannot be reached");
    }
    warm_up(job, request, options);
    count = measure(job, request, options, samples);
    qsort(samples, (size_t)count, sizeof *samples, by_size);
    (void)printf("%lld\t%lld\t%ld\n", (long long)samples[count / 2] / each, (long long)samples[count * 99 / 100] / each, count);
}

/* ---- the choice ---- */

static void use_cores(int wanted)
{
    cpu_set_t now;
    cpu_set_t some;
    int taken = 0;

    CPU_ZERO(&some);
    if (wanted == 0 || sched_getaffinity(0, sizeof now, &now) != 0) {
        return;
    }
    for (int core = 0; core < CPU_SETSIZE && taken < wanted; core++) {
        if (CPU_ISSET(core, &now)) {
            CPU_SET(core, &some);
            taken++;
        }
    }
    (void)sched_setaffinity(0, sizeof some, &some);
}

static const struct peer *find(const char *name)
{
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        if (strcmp(peers[i]->name, name) == 0) {
            return peers[i];
        }
    }
    return NULL;
}

static int list(void)
{
    for (size_t i = 0; i < sizeof peers / sizeof peers[0]; i++) {
        (void)printf("%s\t%s\t%zu\t%d\n", peers[i]->name, peers[i]->what, peers[i]->size_most, peers[i]->tell != NULL);
    }
    return 0;
}

static int usage(void)
{
    (void)fprintf(stderr,
                  "usage: messages --list | messages [--cores N] [--iterations N] [--seconds S] PEER SIZE threads|processes [one-way]\n");
    return 2;
}

int main(int count, char **arguments)
{
    struct options options = {.seconds = 0.2};
    struct job job = {.peer = NULL};
    int next = 1;

    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        return list();
    }
    for (; next + 1 < count && arguments[next][0] == '-'; next += 2) {
        if (strcmp(arguments[next], "--cores") == 0) {
            options.cores = atoi(arguments[next + 1]);
        } else if (strcmp(arguments[next], "--iterations") == 0) {
            options.iterations = strtol(arguments[next + 1], NULL, 10);
        } else if (strcmp(arguments[next], "--seconds") == 0) {
            options.seconds = strtod(arguments[next + 1], NULL);
        } else {
            return usage();
        }
    }
    job.place.is_one_way = count - next == 4 && strcmp(arguments[next + 3], "one-way") == 0;
    job.peer = count - next == (job.place.is_one_way ? 4 : 3) ? find(arguments[next]) : NULL;
    if (!job.peer || (job.place.is_one_way && !job.peer->tell)) {
        return usage();
    }
    size_told = job.place.size = strtoul(arguments[next + 1], NULL, 10);
    job.place.in_process = strcmp(arguments[next + 2], "threads") == 0;
    use_cores(options.cores);
    (void)snprintf(folder, sizeof folder, "/tmp/messages-XXXXXX");
    if (!mkdtemp(folder)) {
        give_up("no folder can be made");
    }
    (void)snprintf(job.place.folder, sizeof job.place.folder, "%s", folder);
    (void)snprintf(job.place.address, sizeof job.place.address, "%s/socket", folder);
    job.place.name = strrchr(job.place.folder, '/') + 1;
    if (job.peer->prepare && !job.peer->prepare(&job.place)) {
        give_up("this size or this place is not possible");
    }
    begin_server(&job);
    run(&job, &options);
    (void)fflush(stdout);
    end_server();
    _exit(0); /* a server that is a thread has no end */
}
