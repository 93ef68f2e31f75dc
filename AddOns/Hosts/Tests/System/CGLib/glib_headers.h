/* SPDX-License-Identifier: Apache-2.0 */
#include <glib-unix.h>
