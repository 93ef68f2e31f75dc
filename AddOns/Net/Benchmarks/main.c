/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Throughput of TLS: a stream on a run loop beside `openssl s_client`, receiving from the same server, which runs in a process of its own.
 *
 *   net [ROUNDS [MEBIBYTES]]
 *
 * The two take turns. It prints each one's median in MB/s, and the median of the ratios of the rounds. s_client's time has its start in it,
 * which many bytes make small.
 */
#define _GNU_SOURCE
#include <CoreServices/CoreServices.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { most_rounds = 101 };

static long total_bytes;

static _Noreturn void give_up(const char *what)
{
    (void)fprintf(stderr, "bench-net: %s\n", what);
    exit(1);
}

static double now_s(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* ---- the server ---- */

static void use_new_certificate(SSL_CTX *context)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *name = X509_get_subject_name(certificate);

    X509_set_version(certificate, 2);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"bench", -1, -1, 0);
    X509_set_issuer_name(certificate, name);
    if (!X509_sign(certificate, key, EVP_sha256()) || !SSL_CTX_use_certificate(context, certificate) ||
        !SSL_CTX_use_PrivateKey(context, key)) {
        give_up("no certificate");
    }
    X509_free(certificate);
    EVP_PKEY_free(key);
}

static void send_all(SSL *ssl)
{
    static char bytes[65536];

    for (long sent = 0; sent < total_bytes; sent += (long)sizeof bytes) {
        if (SSL_write(ssl, bytes, sizeof bytes) <= 0) {
            return;
        }
    }
    SSL_shutdown(ssl);
    (void)SSL_read(ssl, bytes, sizeof bytes); /* until the client has gone */
}

static _Noreturn void serve(int listener)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGPIPE, SIG_IGN);
    use_new_certificate(context);
    for (;;) {
        int socket = accept(listener, NULL, NULL);
        SSL *ssl = SSL_new(context);

        SSL_set_fd(ssl, socket);
        if (SSL_accept(ssl) == 1) {
            send_all(ssl);
        }
        SSL_free(ssl);
        close(socket);
    }
}

static pid_t start_server(UInt32 *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    pid_t server;

    if (bind(listener, (struct sockaddr *)&address, sizeof address) < 0 || listen(listener, 8) < 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) < 0) {
        give_up("no server");
    }
    *ret_port = ntohs(address.sin_port);
    server = fork();
    if (server == 0) {
        serve(listener);
    }
    close(listener);
    return server;
}

/* ---- the clients ---- */

static long received;

static void receive(CFReadStreamRef reader, CFStreamEventType type, void *info)
{
    static UInt8 bytes[65536];
    CFIndex count;

    (void)info;
    if (type == kCFStreamEventHasBytesAvailable) {
        count = CFReadStreamRead(reader, bytes, sizeof bytes);
        received += count > 0 ? count : 0;
    } else {
        CFRunLoopStop(CFRunLoopGetCurrent());
    }
}

static double time_stream(UInt32 port)
{
    const void *key = kCFStreamSSLValidatesCertificateChain;
    const void *value = kCFBooleanFalse;
    CFDictionaryRef settings = CFDictionaryCreate(NULL, &key, &value, 1, &kCFTypeDictionaryKeyCallBacks, &kCFTypeDictionaryValueCallBacks);
    CFStreamClientContext context = {0, NULL, NULL, NULL, NULL};
    double start = now_s();
    CFReadStreamRef reader;

    received = 0;
    CFStreamCreatePairWithSocketToHost(NULL, CFSTR("127.0.0.1"), port, &reader, NULL);
    CFReadStreamSetProperty(reader, kCFStreamPropertySSLSettings, settings);
    CFReadStreamSetClient(reader, kCFStreamEventHasBytesAvailable | kCFStreamEventErrorOccurred | kCFStreamEventEndEncountered, receive,
                          &context);
    CFReadStreamScheduleWithRunLoop(reader, CFRunLoopGetCurrent(), kCFRunLoopDefaultMode);
    CFReadStreamOpen(reader);
    CFRunLoopRun();
    if (received != total_bytes) {
        give_up("the stream did not receive everything");
    }
    CFReadStreamClose(reader);
    CFRelease(reader);
    CFRelease(settings);
    return now_s() - start;
}

static double time_s_client(UInt32 port)
{
    char command[200];
    double start = now_s();

    (void)snprintf(command, sizeof command, "exec openssl s_client -quiet -connect 127.0.0.1:%u < /dev/null > /dev/null 2>&1",
                   (unsigned)port);
    (void)!system(command);
    return now_s() - start;
}

/* ---- medians ---- */

static int compare(const void *one, const void *other)
{
    double a = *(const double *)one;
    double b = *(const double *)other;

    return (a > b) - (a < b);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, compare);
    return values[count / 2];
}

int main(int count, char **arguments)
{
    int rounds = count > 1 ? atoi(arguments[1]) : 5;
    double streams[most_rounds];
    double s_clients[most_rounds];
    double ratios[most_rounds];
    UInt32 port;
    pid_t server;

    total_bytes = (count > 2 ? atol(arguments[2]) : 1024) * 1048576L;
    if (rounds < 1 || rounds > most_rounds || total_bytes <= 0) {
        give_up("usage: net [ROUNDS [MEBIBYTES]]");
    }
    server = start_server(&port);
    (void)time_stream(port);
    for (int i = 0; i < rounds; i++) {
        double stream_s = time_stream(port);
        double s_client_s = time_s_client(port);

        streams[i] = (double)total_bytes / 1e6 / stream_s;
        s_clients[i] = (double)total_bytes / 1e6 / s_client_s;
        ratios[i] = streams[i] / s_clients[i];
    }
    (void)printf("tls: %ld MiB, %d rounds: stream %.0f MB/s, openssl s_client %.0f MB/s, ratio %.2f\n", total_bytes / 1048576, rounds,
                 median(streams, rounds), median(s_clients, rounds), median(ratios, rounds));
    kill(server, SIGKILL);
    waitpid(server, NULL, 0);
    return 0;
}
