/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the C library's converters (converter.h). */
#include "Encoding/converter.h"

#include <errno.h>
#include <stdatomic.h>

#include "fork_lock.h"

enum existence { not_tried, exists, is_missing };

static _Atomic(void *) idle[encoding_rows][2]; /* NULL: none */
static _Atomic unsigned char existence[encoding_rows];

static const char *const units_name = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? "UTF-16BE" : "UTF-16LE";

static iconv_t no_converter(void)
{
    return (iconv_t)-1;
}

static size_t place_of(const struct encoding_row *row)
{
    return (size_t)(row - encoding_table);
}

static iconv_t open_converter(const struct encoding_row *row, enum converter_way way)
{
    int cancel_state = fork_lock_take();
    iconv_t converter = way == converter_decodes ? iconv_open(units_name, row->library_name) : iconv_open(row->library_name, units_name);
    int error = errno;

    fork_lock_drop(cancel_state);
    if (converter != no_converter()) {
        atomic_store_explicit(&existence[place_of(row)], exists, memory_order_relaxed);
    } else if (error == EINVAL) { /* not only just now, as without memory */
        atomic_store_explicit(&existence[place_of(row)], is_missing, memory_order_relaxed);
    }
    return converter;
}

static void close_converter(iconv_t converter)
{
    int cancel_state = fork_lock_take();

    (void)iconv_close(converter);
    fork_lock_drop(cancel_state);
}

bool converter_exists(const struct encoding_row *row)
{
    if (!row->library_name) {
        return false;
    }
    if (atomic_load_explicit(&existence[place_of(row)], memory_order_relaxed) == not_tried) {
        iconv_t converter = converter_take(row, converter_decodes);

        if (converter != no_converter()) {
            converter_give_back(row, converter_decodes, converter);
        }
    }
    return atomic_load_explicit(&existence[place_of(row)], memory_order_relaxed) == exists;
}

iconv_t converter_take(const struct encoding_row *row, enum converter_way way)
{
    /* Acquire, paired with the release below: what the last user did to the converter is done. */
    void *kept = atomic_exchange_explicit(&idle[place_of(row)][way], NULL, memory_order_acquire);

    return kept ? (iconv_t)kept : open_converter(row, way);
}

void converter_give_back(const struct encoding_row *row, enum converter_way way, iconv_t converter)
{
    void *none = NULL;

    (void)iconv(converter, NULL, NULL, NULL, NULL);
    if (!atomic_compare_exchange_strong_explicit(&idle[place_of(row)][way], &none, (void *)converter, memory_order_release,
                                                 memory_order_relaxed)) {
        close_converter(converter);
    }
}

#if defined(CRL_TESTING)
void converters_give_back(void)
{
    for (size_t i = 0; i < 2 * encoding_rows; i++) {
        void *kept = atomic_exchange_explicit(&idle[i / 2][i % 2], NULL, memory_order_acquire);

        if (kept) {
            close_converter((iconv_t)kept);
        }
    }
}
#endif
