/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls of the C library on files that fail in their turn (nth_failure.h). The linker sends what the runner's own code calls here (--wrap
 * in rules.mk). Left out are those whose failure is that of another one, as mkdir's is that of the file's, and close, which always closes.
 */
#define _GNU_SOURCE
#include <bsd/libutil.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "Failure/nth_failure.h"

static bool fails(const struct failing_call *call)
{
    int error = nth_failure_take(call);

    errno = error ? error : errno;
    return error;
}

/* glibc has these under two names: ours where offsets have 64 bits, and one that gold asks for, since shared libraries use it. */
#if defined(__USE_FILE_OFFSET64)
#define OFFSET_NAME(_macro, _name, ...) _macro(_name##64, __VA_ARGS__) _macro(_name, __VA_ARGS__)
#else
#define OFFSET_NAME(_macro, _name, ...) _macro(_name, __VA_ARGS__)
#endif

/* `failure` is what the call gives back then. */
#define CALL(_type, _name, _first, _second, _failure, _parameters, _arguments)       \
    _type __real_##_name _parameters;                                                \
    _type __wrap_##_name _parameters;                                                \
    _type __wrap_##_name _parameters                                                 \
    {                                                                                \
        static const struct failing_call call = {"file." #_name, {_first, _second}}; \
                                                                                     \
        return fails(&call) ? (_failure) : __real_##_name _arguments;                \
    }

#define INT_CALL(_name, ...) CALL(int, _name, __VA_ARGS__)

CALL(ssize_t, read, EIO, 0, -1, (int file, void *bytes, size_t size), (file, bytes, size))
CALL(ssize_t, write, ENOSPC, EDQUOT, -1, (int file, const void *bytes, size_t size), (file, bytes, size))
CALL(int, fsync, EIO, ENOSPC, -1, (int file), (file))
OFFSET_NAME(INT_CALL, ftruncate, EROFS, EIO, -1, (int file, off_t length), (file, length))
CALL(int, fchmod, EPERM, EROFS, -1, (int file, mode_t mode), (file, mode))
CALL(int, rename, ENOSPC, EROFS, -1, (const char *from, const char *to), (from, to))
CALL(int, link, EPERM, EMLINK, -1, (const char *from, const char *to), (from, to))
OFFSET_NAME(INT_CALL, stat, EACCES, 0, -1, (const char *restrict path, struct stat *restrict status), (path, status))
OFFSET_NAME(INT_CALL, fstat, EIO, 0, -1, (int file, struct stat *status), (file, status))
CALL(int, gethostname, ENAMETOOLONG, 0, -1, (char *name, size_t size), (name, size))
CALL(DIR *, opendir, EMFILE, EACCES, NULL, (const char *path), (path))
CALL(char *, realpath, EACCES, ENOMEM, NULL, (const char *restrict path, char *restrict ret_path), (path, ret_path))
CALL(ssize_t, readlink, EACCES, 0, -1, (const char *restrict path, char *restrict bytes, size_t size), (path, bytes, size))
CALL(void *, dlopen, ENOMEM, 0, NULL, (const char *path, int flags), (path, flags))

/* With a mode that counts only when the file is made. */
#define OPEN(_name, _first, _second)                                                 \
    int __real_##_name(const char *path, int flags, ...);                            \
    int __wrap_##_name(const char *path, int flags, ...);                            \
    int __wrap_##_name(const char *path, int flags, ...)                             \
    {                                                                                \
        static const struct failing_call call = {"file." #_name, {_first, _second}}; \
        mode_t mode = 0;                                                             \
        va_list arguments;                                                           \
                                                                                     \
        va_start(arguments, flags);                                                  \
        if (flags & O_CREAT) {                                                       \
            mode = va_arg(arguments, mode_t);                                        \
        }                                                                            \
        va_end(arguments);                                                           \
        return fails(&call) ? -1 : __real_##_name(path, flags, mode);                \
    }

OFFSET_NAME(OPEN, open, EMFILE, EACCES)

#if !defined(flopenat) /* it is libbsd's, and not made of open */
int __real_flopenat(int folder, const char *path, int flags, ...);
int __wrap_flopenat(int folder, const char *path, int flags, ...);
int __wrap_flopenat(int folder, const char *path, int flags, ...)
{
    static const struct failing_call call = {"file.flopenat", {ENOLCK, EROFS}};
    mode_t mode;
    va_list arguments;

    va_start(arguments, flags);
    mode = va_arg(arguments, mode_t); /* all our calls may make the file */
    va_end(arguments);
    return fails(&call) ? -1 : __real_flopenat(folder, path, flags, mode);
}
#endif
