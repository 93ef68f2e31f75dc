/* SPDX-License-Identifier: Apache-2.0 */
/* A window of Qt with a label, for Swift. All functions are called on the first thread. */
#ifndef QT_WINDOW_H
#define QT_WINDOW_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the application and shows the window. */
void qt_window_show(void);

void qt_window_set_text(const char *text);

/* Puts the main run loop into Qt's event loop, and runs that until it is quit. Returns false if the run loop is running already. */
bool qt_window_run(void);

#ifdef __cplusplus
}
#endif

#endif
