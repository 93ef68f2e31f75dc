/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes and numbers, where there is no libbsd. Any thread and any child, because nothing is kept between calls. */
#ifndef CRL_WITHOUT_BSD_STDLIB_H
#define CRL_WITHOUT_BSD_STDLIB_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <unistd.h>

/* Ends the process if the kernel has none: nobody may go on with bytes that others can guess. */
static inline void without_bsd_arc4random_buf(void *ret_bytes, size_t size)
{
    unsigned char *bytes = ret_bytes;
    int file = -1;

    while (size > 0) {
        size_t wanted = size < 256 ? size : 256;
        ssize_t got = file < 0 ? getrandom(bytes, wanted, 0) : read(file, bytes, wanted);

        if (got > 0) {
            bytes += got;
            size -= (size_t)got;
        } else if (got == 0 || errno != EINTR) {
            if (file >= 0) {
                abort();
            }
            file = open("/dev/urandom", O_RDONLY | O_CLOEXEC); /* getrandom is refused by a filter of system calls */
            if (file < 0) {
                abort();
            }
        }
    }
    if (file >= 0) {
        (void)close(file);
    }
}

/* Below `bound`, each with the same chance. */
static inline uint32_t without_bsd_arc4random_uniform(uint32_t bound)
{
    uint32_t number;

    if (bound < 2) {
        return 0;
    }
    do {
        without_bsd_arc4random_buf(&number, sizeof number);
    } while (number < -bound % bound); /* the rest of 2^32 / bound, which some remainders would have beyond the others */
    return number % bound;
}

static inline long long without_bsd_strtonum(const char *text, long long least, long long most, const char **ret_error)
{
    int saved = errno;
    char *end;
    long long number;

    errno = 0;
    number = strtoll(text, &end, 10);
    *ret_error = end == text || *end != '\0'                                  ? "invalid"
                 : number < least || (errno == ERANGE && number == LLONG_MIN) ? "too small"
                 : number > most || errno == ERANGE                           ? "too large"
                                                                              : NULL;
    errno = saved;
    return *ret_error ? 0 : number;
}

/* The C library may have functions of these names. */
#undef arc4random_buf
#undef arc4random_uniform
#undef strtonum
#define arc4random_buf without_bsd_arc4random_buf
#define arc4random_uniform without_bsd_arc4random_uniform
#define strtonum without_bsd_strtonum

#endif
