/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of a bridge; see configuration.h. */
#include "configuration.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Support/invariant.h"

enum { servers_max = 16 };

/* Splits the servers' URLs in place. Returns how many there are. */
static int split_servers(char *text, const char *ret_servers[servers_max])
{
    int count = 0;
    char *rest = NULL;

    for (char *server = strtok_r(text, ", ", &rest); server && count < servers_max; server = strtok_r(NULL, ", ", &rest)) {
        ret_servers[count++] = server;
    }
    return count;
}

/* A pipe would hold whoever reads it, and one of credentials is read again with each connection. NULL is no file, and has no fault. */
static bool is_file_to_read(const char *path)
{
    struct stat status;

    return !path || (access(path, R_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode));
}

/* Returns why the settings cannot be followed, or NULL. */
static const char *settings_fault(const CRLNatsConfiguration *configuration)
{
    if (!configuration->certificate != !configuration->key) {
        return "a certificate needs its key, and a key its certificate";
    }
    if (!is_file_to_read(configuration->credentials)) {
        return "the file of credentials cannot be read"; /* cnats would report it only at each attempt to connect */
    }
    if (!is_file_to_read(configuration->authorities) || !is_file_to_read(configuration->certificate) ||
        !is_file_to_read(configuration->key)) {
        return "a file of certificates or of a key cannot be read";
    }
    return configuration->password && !configuration->user ? "a password needs its user" : NULL;
}

static bool connect_bridge(struct CRLNatsBridge *bridge, const CRLNatsConfiguration *configuration, nats_connection_callback callback)
{
    const char *fault = settings_fault(configuration);
    const char *servers[servers_max];
    char *copy = strdup(configuration->servers ? configuration->servers : "");
    struct nats_connection_settings settings = {.servers = servers,
                                                .user = configuration->user,
                                                .password = configuration->password,
                                                .credentials = configuration->credentials,
                                                .authorities = configuration->authorities,
                                                .certificate = configuration->certificate,
                                                .key = configuration->key,
                                                .name = bridge->machine};
    char text[128] = "there is no memory";

    if (copy) {
        settings.server_count = split_servers(copy, servers);
        settings.uses_tls = strstr(configuration->servers ? configuration->servers : "", "tls://") != NULL;
    }
    if (copy && settings.server_count == 0) {
        fault = "no server is named";
    } else if (copy && !fault) {
        bridge->connection = nats_connection_create(&settings, callback, bridge, text, sizeof text);
    }
    free(copy);
    invariant(!bridge->connection || !fault);
    if (!bridge->connection) {
        (void)fprintf(stderr, "CoreRunLoop: bridge: the servers '%s' cannot be used: %s\n",
                      configuration->servers ? configuration->servers : "", fault ? fault : text);
    }
    return bridge->connection != NULL;
}

static bool choose_machine(struct CRLNatsBridge *bridge, const char *machine)
{
    char host[machine_name_max + 1] = "";
    const char *fault;

    if (!machine) {
        (void)gethostname(host, sizeof host - 1);
        machine = host;
    }
    fault = name_fault(machine, machine_name_max);
    if (fault) {
        (void)fprintf(stderr, "CoreRunLoop: bridge: the machine's name '%s' %s\n", machine, fault);
        return false;
    }
    (void)snprintf(bridge->machine, sizeof bridge->machine, "%s", machine);
    return true;
}

bool configuration_apply(struct CRLNatsBridge *bridge, const CRLNatsConfiguration *configuration, nats_connection_callback callback)
{
    return choose_machine(bridge, configuration->machine) && connect_bridge(bridge, configuration, callback);
}
