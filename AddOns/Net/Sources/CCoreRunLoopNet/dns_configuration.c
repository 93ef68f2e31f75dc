/* SPDX-License-Identifier: Apache-2.0 */
/* See dns_configuration.h. */
#define _GNU_SOURCE /* secure_getenv */
#include "dns_configuration.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/invariant.h"

enum { longest_line = 4096, most_bytes_read = 4 << 20, most_bytes_of_hosts = 64 << 20 };
enum { most_dots = 15, most_timeout_s = 30, most_attempts = 5 };

static const char blanks[] = " \t\r\n";

typedef void line_reader(struct dns_configuration *configuration, char *line);

static void append_domain(struct dns_configuration *c, size_t *used, const char *domain)
{
    size_t size = strlen(domain) + 1;

    if (c->domain_count < most_dns_domains && size <= sizeof c->domains - *used && strcmp(domain, ".") != 0) {
        memcpy(c->domains + *used, domain, size);
        *used += size;
        c->domain_count++;
    }
}

/* The last line with domains counts. */
static void set_domains(struct dns_configuration *c, char *words, bool is_one)
{
    size_t used = 0;
    char *rest = NULL;

    c->domain_count = 0;
    for (char *word = strtok_r(words, blanks, &rest); word; word = is_one ? NULL : strtok_r(NULL, blanks, &rest)) {
        append_domain(c, &used, word);
    }
}

static void add_server(struct dns_configuration *c, char *words)
{
    struct in6_addr address;
    char *rest = NULL;
    const char *word = strtok_r(words, blanks, &rest);

    if (!word || c->server_count == most_dns_servers) {
        return;
    }
    if (inet_pton(AF_INET, word, &address) == 1) {
        (void)snprintf(c->servers[c->server_count++], sizeof c->servers[0], "%s", word);
    } else if (inet_pton(AF_INET6, word, &address) == 1) {
        (void)snprintf(c->servers[c->server_count++], sizeof c->servers[0], "[%s]:53", word);
    }
}

/* Returns true if the word is the option with a number, which is made to lie within its bounds. */
static bool take_number(const char *word, const char *option, int least, int most, int *ret_number)
{
    size_t length = strlen(option);
    long number;

    if (strncmp(word, option, length) != 0) {
        return false;
    }
    number = strtol(word + length, NULL, 10);
    *ret_number = number < least ? least : number > most ? most : (int)number;
    return true;
}

static void set_options(struct dns_configuration *c, char *words)
{
    char *rest = NULL;
    int timeout_s;

    for (char *word = strtok_r(words, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest)) {
        if (take_number(word, "ndots:", 0, most_dots, &c->ndots) || take_number(word, "attempts:", 1, most_attempts, &c->attempts)) {
            continue;
        }
        if (take_number(word, "timeout:", 1, most_timeout_s, &timeout_s)) {
            c->timeout_ms = timeout_s * 1000;
        }
        c->rotates |= strcmp(word, "rotate") == 0;
        c->has_edns |= strcmp(word, "edns0") == 0;
        c->uses_tcp |= strcmp(word, "use-vc") == 0;
    }
}

/* Returns what is behind the key and a blank; NULL: the line has another key. */
static char *value_of(char *line, const char *key)
{
    size_t length = strlen(key);

    return strncmp(line, key, length) == 0 && (line[length] == ' ' || line[length] == '\t') ? line + length : NULL;
}

static void read_resolver_line(struct dns_configuration *c, char *line)
{
    char *value;

    if ((value = value_of(line, "nameserver"))) {
        add_server(c, value);
    } else if ((value = value_of(line, "search")) || (value = value_of(line, "domain"))) {
        set_domains(c, value, line[0] == 'd');
    } else if ((value = value_of(line, "options"))) {
        set_options(c, value);
    }
}

static void read_switch_line(struct dns_configuration *c, char *line)
{
    char *rest = NULL;
    char *word;

    line[strcspn(line, "#")] = '\0';
    word = strtok_r(line, blanks, &rest);
    if (!word || strncmp(word, "hosts:", 6) != 0) {
        return;
    }
    memset(c->lookups, 0, sizeof c->lookups);
    for (word = word[6] ? word + 6 : strtok_r(NULL, blanks, &rest); word; word = strtok_r(NULL, blanks, &rest)) {
        char lookup = strcmp(word, "files") == 0 ? 'f' : strcmp(word, "dns") == 0 || strcmp(word, "resolve") == 0 ? 'b' : '\0';

        if (lookup && !strchr(c->lookups, lookup)) {
            c->lookups[strlen(c->lookups)] = lookup; /* the array was empty, and there are two letters */
        }
    }
}

/* Returns the bytes of the file, which the caller frees. NULL with the size 0: there is none; NULL with another: there is no memory. */
static char *copy_file(const char *path, size_t *ret_size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool is_missing = file < 0 && errno != EMFILE && errno != ENFILE && errno != ENOMEM;
    struct stat status;
    char *bytes = NULL;
    ssize_t count = 1;
    size_t most;

    *ret_size = is_missing ? 0 : 1;
    if (file < 0) {
        return NULL;
    }
    if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) { /* reading does not wait */
        most = status.st_size < most_bytes_read ? (size_t)status.st_size : most_bytes_read;
        bytes = malloc(most + 1);
        for (*ret_size = bytes ? 0 : 1; bytes && *ret_size < most && count > 0; *ret_size += count > 0 ? (size_t)count : 0) {
            count = read(file, bytes + *ret_size, most - *ret_size);
        }
    } else {
        *ret_size = 0;
    }
    (void)close(file);
    return bytes;
}

/* Of a line that is too long, whole words count. */
static bool read_lines(const char *path, struct dns_configuration *c, line_reader *reader)
{
    char line[longest_line];
    size_t size;
    char *bytes = copy_file(path, &size);
    const char *rest = bytes;

    while (bytes && size > 0) {
        const char *newline = memchr(rest, '\n', size);
        size_t length = newline ? (size_t)(newline - rest) : size;
        size_t copied = length < sizeof line ? length : sizeof line - 1;

        memcpy(line, rest, copied);
        while (copied < length && copied > 0 && !strchr(blanks, line[copied - 1])) {
            copied--;
        }
        line[copied] = '\0';
        reader(c, line);
        rest += length + (newline ? 1 : 0);
        size -= length + (newline ? 1 : 0);
    }
    free(bytes);
    return size == 0;
}

/* Without a line with domains, that of the machine's name is searched. */
static void set_own_domain(struct dns_configuration *c)
{
    char name[256];
    size_t used = 0;
    const char *dot;

    if (gethostname(name, sizeof name) == 0 && memchr(name, '\0', sizeof name) && (dot = strchr(name, '.')) && dot[1]) {
        append_domain(c, &used, dot + 1);
    }
}

bool dns_configuration_read(const char *resolv_conf, const char *nsswitch_conf, struct dns_configuration *ret_configuration)
{
    struct dns_configuration *c = ret_configuration;
    const char *domains = secure_getenv("LOCALDOMAIN");
    const char *options = secure_getenv("RES_OPTIONS");
    char line[longest_line];

    *c = (struct dns_configuration){.domain_count = -1, .ndots = 1, .timeout_ms = 5000, .attempts = 2};
    if (!read_lines(resolv_conf, c, read_resolver_line) || !read_lines(nsswitch_conf, c, read_switch_line)) {
        return false;
    }
    if (domains) {
        (void)snprintf(line, sizeof line, "%s", domains);
        set_domains(c, line, false);
    }
    if (options) {
        (void)snprintf(line, sizeof line, "%s", options);
        set_options(c, line);
    }
    if (c->domain_count < 0) {
        c->domain_count = 0;
        set_own_domain(c);
    }
    if (c->server_count == 0) {
        (void)snprintf(c->servers[c->server_count++], sizeof c->servers[0], "127.0.0.1");
    }
    if (!c->lookups[0]) {
        memcpy(c->lookups, "fb", sizeof "fb");
    }
    invariant(c->timeout_ms > 0 && c->attempts > 0 && c->domain_count <= most_dns_domains);
    return true;
}

bool dns_hosts_file_is_fit(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size <= most_bytes_of_hosts;
}

int dns_configuration_patience_ms(const struct dns_configuration *configuration)
{
    int count = configuration->server_count;
    int round_ms = configuration->timeout_ms;

    for (int i = 1; i < count; i++) { /* the C library waits for each server twice as long as for the one before, in whole seconds */
        int wait_ms = (configuration->timeout_ms << i) / count;

        round_ms += wait_ms > 1000 ? wait_ms - wait_ms % 1000 : wait_ms;
    }
    return round_ms * configuration->attempts / (count * ((1 << configuration->attempts) - 1));
}
