/* SPDX-License-Identifier: Apache-2.0 */
/* Reads any bytes as a sequence of operations on a loop (Tests/Model). The library must do the same as the model. */
#include "check.h"
#include "core_foundation.h"
#include "model.h"
#include "print.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct trace expected;
    static struct trace actual;
    struct program program = program_from_bytes(bytes, size);

    interpret(&program, &model, &expected);
    interpret(&program, &core_foundation, &actual);
    if (!traces_equal(&expected, &actual)) {
        static char text[65536];

        program_print(stderr, &program, "fuzzed", &expected);
        trace_text(&expected, text, sizeof text);
        (void)fprintf(stderr, "model:   %s\n", text);
        trace_text(&actual, text, sizeof text);
        (void)fprintf(stderr, "library: %s\n", text);
        abort();
    }
    return 0;
}
