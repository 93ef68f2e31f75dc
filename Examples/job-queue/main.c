/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job queue over three machines, whose workers come and go.
 *
 *   job-queue                     starts a nats-server on loopback, three machines and their workers, and hands out 60 jobs
 *   job-queue worker URL MACHINE  one worker: it has the port "jobs" and a bridge that exports it, shared with the others
 *   job-queue client URL          hands out the jobs: its bridge imports "jobs", and each job goes to one of the workers
 *
 * A machine is a directory of names here (CORERUNLOOP_PORTS), so that one computer can be three. On real machines the two other commands
 * are all there is. A job counts the primes below a number. It may be done twice, so the client simply sends it again when a worker has
 * gone.
 */
#include <CRLNats.h>
#include <CRLRunLoop.h>
#include <CoreFoundation/CoreFoundation.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { jobs = 60, threads = 4, machines = 3, text_max = 256 };

static const long largest = 400000;

static void told(CRLNatsBridgeRef bridge, CRLNatsEvent event, const char *name, const char *text, void *info)
{
    (void)bridge;
    (void)name;
    if (event < 0) {
        (void)fprintf(stderr, "%s: %s\n", (const char *)info, text);
    }
}

static CRLNatsBridgeRef make_bridge(const char *url, const char *machine)
{
    CRLNatsConfiguration configuration = {.servers = url, .machine = machine, .callback = told, .info = (void *)(uintptr_t)machine};
    CRLNatsBridgeRef bridge = CRLNatsBridgeCreate(&configuration);

    if (!bridge) {
        exit(1);
    }
    return bridge;
}

static void stop(CFRunLoopSourceRef source, const struct signalfd_siginfo *signal, void *info)
{
    (void)source;
    (void)signal;
    CFRunLoopStop(info);
}

/* SIGTERM ends the run of this thread's loop. It has to be asked for before another thread is there. */
static void stop_on_sigterm(void)
{
    CRLSourceContext context = {0, CFRunLoopGetCurrent(), NULL, NULL, NULL};
    CFRunLoopSourceRef source = CRLSignalSourceCreate(NULL, SIGTERM, 0, stop, &context);

    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    CFRelease(source);
}

/* ---- the worker ---- */

static long count_primes(long below)
{
    long count = 0;

    for (long number = 2; number < below; number++) {
        long factor = 2;

        while (factor * factor <= number && number % factor != 0) {
            factor++;
        }
        count += factor * factor > number;
    }
    return count;
}

static CFDataRef work(CFMessagePortRef port, SInt32 number, CFDataRef data, void *info)
{
    char text[text_max];
    long below = 0;

    (void)port;
    (void)number;
    if (CFDataGetLength(data) == sizeof below) {
        memcpy(&below, CFDataGetBytePtr(data), sizeof below);
    }
    (void)snprintf(text, sizeof text, "%ld primes below %ld, by %s", count_primes(below), below, (const char *)info);
    return CFDataCreate(NULL, (const UInt8 *)text, (CFIndex)strlen(text) + 1);
}

static int be_worker(const char *url, const char *machine)
{
    CFMessagePortContext context = {.info = (void *)(uintptr_t)machine};
    CFMessagePortRef port = CFMessagePortCreateLocal(NULL, CFSTR("jobs"), work, &context, NULL);
    CFRunLoopSourceRef source = port ? CFMessagePortCreateRunLoopSource(NULL, port, 0) : NULL;
    CRLNatsBridgeRef bridge;

    if (!source) {
        (void)fprintf(stderr, "%s: another program has the name\n", machine);
        return 1;
    }
    stop_on_sigterm();
    CFRunLoopAddSource(CFRunLoopGetCurrent(), source, kCFRunLoopDefaultMode);
    bridge = make_bridge(url, machine);
    (void)CRLNatsBridgeExport(bridge, "jobs", true);
    CFRunLoopRun();
    CRLNatsBridgeInvalidate(bridge); /* the others hear at once that this worker goes */
    CFMessagePortInvalidate(port);
    return 0;
}

/* ---- the client ---- */

static struct {
    pthread_mutex_t lock;
    int next; /* job; guarded by the lock */
    int again; /* jobs that were sent again; guarded by the lock */
    CFRunLoopRef loop;
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER};

static int take_job(void)
{
    int job;

    (void)pthread_mutex_lock(&queue.lock);
    job = queue.next++;
    (void)pthread_mutex_unlock(&queue.lock);
    return job;
}

/* Sends the job until a worker has done it. */
static void do_job(CFMessagePortRef *remote, int job)
{
    long below = largest - 1000L * job;
    CFDataRef data = CFDataCreate(NULL, (const UInt8 *)&below, sizeof below);
    CFDataRef reply = NULL;

    for (;;) {
        while (!*remote && !(*remote = CFMessagePortCreateRemote(NULL, CFSTR("jobs")))) {
            (void)usleep(20000); /* there is no worker now */
        }
        if (CFMessagePortSendRequest(*remote, job, data, 10, 30, kCFRunLoopDefaultMode, &reply) == kCFMessagePortSuccess) {
            break;
        }
        if (!CFMessagePortIsValid(*remote)) {
            CFRelease(*remote);
            *remote = NULL;
        }
        (void)pthread_mutex_lock(&queue.lock);
        queue.again++;
        (void)pthread_mutex_unlock(&queue.lock);
    }
    (void)printf("job %2d: %s\n", job, (const char *)CFDataGetBytePtr(reply));
    CFRelease(reply);
    CFRelease(data);
}

static void *hand_out(void *info)
{
    CFMessagePortRef remote = NULL;

    (void)info;
    for (int job; (job = take_job()) < jobs;) {
        do_job(&remote, job);
    }
    if (remote) {
        CFRelease(remote);
    }
    return NULL;
}

static void *hand_out_all(void *info)
{
    pthread_t helpers[threads];

    for (int i = 0; i < threads; i++) {
        (void)pthread_create(&helpers[i], NULL, hand_out, NULL);
    }
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(helpers[i], NULL);
    }
    CFRunLoopStop(queue.loop);
    CFRunLoopWakeUp(queue.loop);
    return info;
}

/* The bridge has this thread's loop, so the jobs are handed out by others. */
static int be_client(const char *url)
{
    CRLNatsBridgeRef bridge = make_bridge(url, "client");
    pthread_t thread;

    queue.loop = (CFRunLoopRef)(uintptr_t)CFRetain(CFRunLoopGetCurrent()); /* it must outlast the thread that stops it */
    (void)CRLNatsBridgeImport(bridge, "jobs", NULL, NULL);
    (void)pthread_create(&thread, NULL, hand_out_all, NULL);
    CFRunLoopRun();
    (void)pthread_join(thread, NULL);
    CRLNatsBridgeInvalidate(bridge);
    CFRelease(queue.loop);
    (void)printf("%d jobs are done; %d were sent again\n", jobs, queue.again);
    return 0;
}

/* ---- all of it on one computer ---- */

static char folder[] = "/tmp/job-queue-XXXXXX";

static pid_t start(const char *machine, char *const words[])
{
    pid_t pid = fork();

    if (pid == 0) {
        char path[text_max];

        (void)snprintf(path, sizeof path, "%s/%s", folder, machine);
        (void)mkdir(path, 0700);
        (void)setenv("CORERUNLOOP_PORTS", path, 1);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (strcmp(words[0], "nats-server") == 0) {
            (void)freopen("/dev/null", "w", stderr);
        }
        (void)execvp(words[0], words);
        _exit(127);
    }
    return pid;
}

static pid_t start_worker(char *program, char *url, int number)
{
    char machine[text_max];

    (void)snprintf(machine, sizeof machine, "worker%d", number);
    return start(machine, (char *[]){program, "worker", url, machine, NULL});
}

/* Workers come and go until the client or the server ends: every half second one is killed or told to end, and another one comes. */
static int change_workers(char *program, char *url, pid_t server, pid_t client)
{
    pid_t workers[machines];
    int status = 1;

    for (int i = 0; i < machines; i++) {
        workers[i] = start_worker(program, url, i);
    }
    for (int turn = 0; waitpid(client, &status, WNOHANG) == 0; turn++) {
        int leaver = turn % machines;

        if (waitpid(server, NULL, WNOHANG) != 0) {
            (void)fputs("the server has ended\n", stderr);
            (void)kill(client, SIGKILL);
        }
        (void)usleep(500000);
        (void)kill(workers[leaver], turn % 2 == 0 ? SIGTERM : SIGKILL);
        (void)waitpid(workers[leaver], NULL, 0);
        workers[leaver] = start_worker(program, url, leaver);
    }
    for (int i = 0; i < machines; i++) {
        (void)kill(workers[i], SIGKILL);
        (void)waitpid(workers[i], NULL, 0);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Returns a port of loopback that nobody has, or 0. */
static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    bool is_found = listener >= 0 && bind(listener, (struct sockaddr *)&address, size) == 0 &&
                    getsockname(listener, (struct sockaddr *)&address, &size) == 0;

    if (listener >= 0) {
        (void)close(listener);
    }
    return is_found ? ntohs(address.sin_port) : 0;
}

static int run_all(char *program)
{
    char port[16];
    char url[64];
    pid_t server;
    int status;

    if (system("command -v nats-server > /dev/null") != 0) {
        (void)puts("there is no nats-server here");
        return 77;
    }
    if (!mkdtemp(folder)) {
        return 1;
    }
    (void)snprintf(port, sizeof port, "%d", free_port());
    (void)snprintf(url, sizeof url, "nats://127.0.0.1:%s", port);
    server = start("server", (char *[]){"nats-server", "-a", "127.0.0.1", "-p", port, NULL});
    status = change_workers(program, url, server, start("client", (char *[]){program, "client", url, NULL}));
    (void)kill(server, SIGKILL);
    (void)waitpid(server, NULL, 0);
    (void)execlp("sh", "sh", "-c", "rm -rf \"$1\"; exit \"$2\"", "sh", folder, status == 0 ? "0" : "1", (char *)NULL);
    return 1;
}

int main(int count, char **words)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    if (count == 4 && strcmp(words[1], "worker") == 0) {
        return be_worker(words[2], words[3]);
    }
    if (count == 3 && strcmp(words[1], "client") == 0) {
        return be_client(words[2]);
    }
    return run_all(words[0]);
}
