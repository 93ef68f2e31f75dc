/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chaos-network PROGRAM SECONDS SEED: PROGRAM is messageport-bridge. In the first part there are three machines with bridges and a cluster
 * of three servers; any process is killed or stopped at any moment, and any machine's link is cut. In the second part there is a durable
 * name; its server and the processes of its receiving side are killed or stopped.
 *
 * A machine is a directory of port names. Machine m owns name m, and its clients send requests to the other two. Every request must end
 * within its time limit and a margin, be handled at most once, and get its own reply. Every message that was taken for the durable name
 * must be handled once or be told as in doubt. Messages out of order are only counted: a new connection may bring them.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "chaos_network.h"

enum { most_violations_printed = 20, text_max = 512 };

static const double recovery_s = 30;
static const double longest_cut_s = 4;

struct chaos *chaos;

static struct worker workers[32];
static int worker_count;
static uint64_t killed;
static uint64_t stopped;
static uint64_t cut;
static bool has_links; /* the machines have links that can be cut */
static double cut_until[machines]; /* 0: the machine's link is whole */
const char *bridge_program;
char base_folder[] = "/tmp/corerunloop-chaos-network-XXXXXX";
static unsigned random_state;
int server_ports[2 * machines + 1];
char all_servers[text_max];

struct durable *durable;

double chaos_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

void chaos_violation(const char *format, ...)
{
    va_list arguments;
    char text[300];

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (atomic_fetch_add(&chaos->violations, 1) < most_violations_printed) {
        (void)dprintf(STDOUT_FILENO, "chaos-network: %s\n", text);
    }
}

void chaos_note(enum event_kind kind, int name, uint32_t client, uint32_t number, uint32_t server)
{
    uint32_t place = atomic_fetch_add(&chaos->event_count, 1);

    if (place < chaos_events_max) {
        chaos->events[place] = (struct event){client, number, server, (uint16_t)name, (uint16_t)kind};
    }
}

void random_begin(unsigned seed)
{
    random_state = seed;
}

unsigned random_below(unsigned limit)
{
    return (unsigned)rand_r(&random_state) % limit;
}

static void start_worker(struct worker *worker)
{
    worker->stopped_until = 0;
    /* The number of a client's life also says which of its machine's clients it is, by which its progress is counted. */
    do {
        worker->life = atomic_fetch_add(&chaos->lives, 1) + 1;
    } while (worker->role == role_client && (int)(worker->life % clients_of_machine) != (int)(worker - workers) % clients_of_machine);
    worker->pid = fork();
    if (worker->pid == 0) {
        worker_run(worker);
    }
}

static void add_worker(enum role role, int machine)
{
    struct worker *worker = &workers[worker_count++];

    worker->role = role;
    worker->machine = machine;
    start_worker(worker);
}

static void end_worker(struct worker *worker)
{
    (void)kill(worker->pid, SIGKILL);
    (void)waitpid(worker->pid, NULL, 0);
}

/* ---- faults ---- */

static void undo_faults(double now)
{
    for (int i = 0; i < worker_count; i++) {
        if (workers[i].stopped_until > 0 && workers[i].stopped_until <= now) {
            (void)kill(workers[i].pid, SIGCONT);
            workers[i].stopped_until = 0;
        }
    }
    for (int i = 0; i < machines; i++) {
        if (cut_until[i] > 0 && cut_until[i] <= now) {
            network_set_link(i, true);
            cut_until[i] = 0;
        }
    }
}

/* For a random time, after which the others may or may not have taken the machine for dead. */
static void cut_link(int machine)
{
    if (cut_until[machine] == 0) {
        network_set_link(machine, false);
        cut_until[machine] = chaos_now() + random_below(1000) * longest_cut_s / 1e3;
        cut++;
    }
}

static bool may_break(const struct worker *worker)
{
    return worker->role != role_sending_bridge && worker->role != role_sender;
}

static void break_something(void)
{
    struct worker *worker = &workers[random_below((unsigned)worker_count)];

    if (has_links && random_below(6) == 0) {
        cut_link((int)random_below(machines));
        return;
    }
    if (!may_break(worker)) {
        return;
    }
    if (random_below(2) == 0) {
        end_worker(worker);
        start_worker(worker);
        killed++;
    } else if (worker->stopped_until == 0) {
        (void)kill(worker->pid, SIGSTOP);
        worker->stopped_until = chaos_now() + random_below(1000) * longest_stop_s / 1e3;
        stopped++;
    }
}

static void break_for(double seconds)
{
    double until = chaos_now() + seconds;

    while (chaos_now() < until) {
        (void)usleep(50000 + random_below(200000));
        undo_faults(chaos_now());
        break_something();
    }
    undo_faults(1e18);
}

/* ---- the two parts ---- */

static bool all_are_served(void)
{
    for (int machine = 0; machine < machines; machine++) {
        for (int client = 0; client < clients_of_machine; client++) {
            for (int name = 0; name < machines; name++) {
                if (name != machine && atomic_load(&chaos->progress[machine * clients_of_machine + client][name]) < 3) {
                    return false;
                }
            }
        }
    }
    return true;
}

static void end_all(void)
{
    for (int i = 0; i < worker_count; i++) {
        end_worker(&workers[i]);
    }
    worker_count = 0;
}

static void await_condition(bool (*condition)(void), const char *what)
{
    double until = chaos_now() + recovery_s;

    while (!condition() && chaos_now() < until) {
        (void)usleep(10000);
    }
    if (!condition()) {
        chaos_violation("%.0f s after the last fault %s", recovery_s, what);
    }
}

static void run_cluster(double seconds)
{
    for (int i = 0; i < machines; i++) {
        add_worker(role_nats, i);
    }
    for (int i = 0; i < machines; i++) {
        add_worker(role_owner, i);
        add_worker(role_bridge, i);
    }
    for (int i = 0; i < machines * clients_of_machine; i++) {
        add_worker(role_client, i / clients_of_machine);
    }
    atomic_store(&chaos->is_calm, true);
    await_condition(all_are_served, "of the beginning some client has no answer at some name");
    memset((void *)(uintptr_t)chaos->progress, 0, sizeof chaos->progress);
    atomic_store(&chaos->is_calm, false);
    break_for(seconds);
    atomic_store(&chaos->is_calm, true);
    await_condition(all_are_served, "some client has no answer at some name");
    end_all();
}

/* By message: it was handled, or the bridges' log tells that it is in doubt. */
static bool *accounted;

static void account_messages(void)
{
    uint32_t taken = atomic_load(&durable->taken);
    uint32_t count = atomic_load(&chaos->event_count);
    FILE *file = fopen(path_of("bridge.log", 0), "r");
    char line[text_max];

    accounted = accounted ? accounted : calloc(1 << 20, 1);
    for (uint32_t i = 0; i < count && i < chaos_events_max; i++) {
        if (chaos->events[i].kind == event_handled && chaos->events[i].name == 0 && chaos->events[i].number <= taken) {
            accounted[chaos->events[i].number] = true;
        }
    }
    while (file && fgets(line, sizeof line, file)) {
        const char *found = strstr(line, ": the message ");
        unsigned number;

        if (found && strstr(line, "in doubt") && sscanf(found, ": the message %u", &number) == 1 && number <= taken) {
            accounted[number] = true;
        }
    }
    if (file) {
        (void)fclose(file);
    }
}

static uint32_t first_missing(void)
{
    uint32_t number = 1;

    account_messages();
    while (number <= atomic_load(&durable->taken) && accounted[number]) {
        number++;
    }
    return number;
}

static bool nothing_is_missing(void)
{
    return first_missing() > atomic_load(&durable->taken);
}

static bool some_were_taken(void)
{
    return atomic_load(&durable->taken) > 20;
}

static void run_durable(double seconds)
{
    atomic_store(&chaos->event_count, 0);
    (void)unlink(path_of("bridge.log", 0));
    add_worker(role_durable_nats, 0);
    add_worker(role_sending_bridge, 0);
    add_worker(role_sender, 0);
    add_worker(role_receiver, 1);
    add_worker(role_receiving_bridge, 1);
    await_condition(some_were_taken, "of the beginning no durable message was taken");
    break_for(seconds);
    atomic_store(&durable->ends, true);
    await_condition(nothing_is_missing, "a durable message was neither handled nor told as in doubt");
    if (!nothing_is_missing()) {
        chaos_violation("durable message %u of %u is missing", first_missing(), atomic_load(&durable->taken));
    }
    end_all();
}

/* ---- the run ---- */

static void choose_ports(void)
{
    int descriptors[2 * machines + 1];

    for (int i = 0; i <= 2 * machines; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;

        descriptors[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)bind(descriptors[i], (struct sockaddr *)&address, sizeof address);
        (void)getsockname(descriptors[i], (struct sockaddr *)&address, &length);
        server_ports[i] = ntohs(address.sin_port);
    }
    for (int i = 0; i <= 2 * machines; i++) {
        (void)close(descriptors[i]);
    }
    for (int i = 0; i < machines; i++) {
        (void)snprintf(all_servers + strlen(all_servers), sizeof all_servers - strlen(all_servers), "%snats://%s:%d", i > 0 ? "," : "",
                       address_of(i), server_ports[i]);
    }
}

static void print_verdict(const char *what, struct verdict verdict)
{
    (void)printf("chaos-network: %s: %" PRIu64 " handled, %" PRIu64 " answered, %" PRIu64 " out of order over a new connection\n", what,
                 verdict.handled, verdict.answered, verdict.reordered);
}

int main(int count, char **words)
{
    double seconds = count == 4 ? atof(words[2]) : 0;
    struct verdict verdict;

    if (seconds <= 0) {
        (void)fprintf(stderr, "usage: chaos-network PROGRAM SECONDS SEED\n");
        return 2;
    }
    if (system("command -v nats-server > /dev/null") != 0) {
        (void)puts("chaos-network: skipped, there is no nats-server here (make deps)");
        return 0;
    }
    bridge_program = words[1];
    chaos = mmap(NULL, sizeof *chaos, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    durable = mmap(NULL, sizeof *durable, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (chaos == MAP_FAILED || durable == MAP_FAILED || !mkdtemp(base_folder)) {
        perror("chaos-network");
        return 2;
    }
    chaos->seed = (uint64_t)atoll(words[3]);
    chaos->breaks_order = true;
    random_state = (unsigned)chaos->seed;
    has_links = networks_make();
    choose_ports();
    for (int i = 0; i < machines; i++) {
        (void)mkdir(path_of("machine%d", i), 0700);
    }
    run_cluster(seconds * 2 / 3);
    verdict = judge_history();
    print_verdict("requests and one-way messages", verdict);
    (void)printf("chaos-network: results: %" PRIu64 " good, %" PRIu64 " no room, %" PRIu64 " no reply in time, %" PRIu64 " gone, %" PRIu64
                 " failed, %" PRIu64 " gone meanwhile; longest wait beyond its limit %.3f s\n",
                 chaos->results[0], chaos->results[1], chaos->results[2], chaos->results[3], chaos->results[4], chaos->results[5],
                 atomic_load(&chaos->longest_s));
    run_durable(seconds / 3);
    print_verdict("durable messages", judge_history());
    (void)printf("chaos-network: %u durable messages taken; %" PRIu64 " processes killed, %" PRIu64 " stopped, %" PRIu64
                 " links cut; %u violations\n",
                 atomic_load(&durable->taken), killed, stopped, cut, atomic_load(&chaos->violations));
    if (atomic_load(&chaos->violations) == 0) {
        char command[128];

        (void)snprintf(command, sizeof command, "rm -rf %s", base_folder);
        (void)!system(command);
    }
    return atomic_load(&chaos->violations) > 0;
}
