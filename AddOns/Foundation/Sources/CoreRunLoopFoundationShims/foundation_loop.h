/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between library_loop.c, which knows this library's loop, and the other files, which know Foundation's. They cannot be one: the
 * toolchain's Core Foundation and this library's headers declare the same names. Modes go from one to the other as text in UTF-8, loops as
 * plain pointers.
 */
#ifndef CRL_FOUNDATION_LOOP_H
#define CRL_FOUNDATION_LOOP_H

#include <stdbool.h>
#include <stdint.h>

/* ---- Foundation's loop, in foundation_loop.c, foundation_turn.c and foundation_run.c ---- */

/* The text of the default mode, which is the same in both loops. */
extern const char foundation_default_mode[];

/* The functions of `struct companion`. */
bool foundation_loop_exists(bool is_main);
void foundation_loop_join(bool is_main);
bool foundation_loop_serve(const char *mode, int descriptor, bool ends_after_source, bool ends_when_empty);
bool foundation_loop_is_empty(const char *mode);

/* ---- this library's loop, in library_loop.c ---- */

/* The functions above are this library's companion from now on, or are not any more. */
void library_loop_set_companion(bool is_joined);

/* The calling thread has a loop of Foundation, or the main thread has. */
void library_loop_gain_companion(bool is_main);

/* Returns the calling thread's loop, retained, or NULL. */
void *library_loop_copy(void);
bool library_loop_exists(void);
void library_loop_release(void *loop);

/* Calls `use` with each common mode of the calling thread's loop, or of the main thread's; with the default mode, if there is no loop. */
void library_loop_each_common_mode(bool is_main, void (*use)(const char *text, void *info), void *info);

/* Stops the innermost run of the loop. Returns false if no run is under way. */
bool library_loop_stop(void *loop);

/* Returns true if neither loop of the calling thread has anything in the mode that a run could wait for. */
bool both_are_empty(const char *mode);

/* Runs the calling thread's loop, which lets Foundation's do the waiting. Returns as CFRunLoopRunInMode. */
int32_t library_loop_run(const char *mode, double seconds, bool returns_after_source);

#endif
