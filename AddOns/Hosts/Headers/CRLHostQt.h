/* SPDX-License-Identifier: Apache-2.0 */

/** @file
 * A run loop inside Qt's event loop, for C++. `pkg-config --cflags --libs corerunloop Qt6Core`. CRLHost.h says what this means for both
 * loops.
 *
 *     QApplication application(argc, argv);
 *     CRLHostQtAttach();
 *     return application.exec();
 */

#if !defined(CRL_HOST_QT_H)
#define CRL_HOST_QT_H 1

#include <QtCore/QPointer>
#include <QtCore/QSocketNotifier>

#include "CRLHost.h"

/**
 * Puts the calling thread's run loop into the event loop that this thread runs, or will run.
 *
 * `stopped` and `info` are as of CRLHostCreate. A function that calls `QCoreApplication::quit` ends `exec` with the run loop.
 * Ownership: the caller, or `parent`, has the result. Its `deleteLater`, or its end, takes the run loop out of the event loop.
 * Threads: the loop's own, in which a QCoreApplication, or a QThread's event dispatcher, is there already.
 * Errors: NULL as of CRLHostCreate.
 */
inline QSocketNotifier *CRLHostQtAttach(void (*stopped)(void *info) = nullptr, void *info = nullptr, QObject *parent = nullptr)
{
    CRLHost *host = CRLHostCreate(stopped, info);

    if (!host) {
        return nullptr;
    }
    auto *notifier = new QSocketNotifier(CRLRunLoopGetDescriptor(host->loop), QSocketNotifier::Read, parent);
    QPointer<QSocketNotifier> alive(notifier);
    QObject::connect(notifier, &QSocketNotifier::activated, [host, alive] {
        alive->setEnabled(false); /* a modal dialog in a callback must not go round for a descriptor that nobody serves meanwhile */
        CRLHostServe(host);
        if (alive) {
            alive->setEnabled(true);
        }
    });
    QObject::connect(notifier, &QObject::destroyed, [host] { CRLHostEnd(host); });
    return notifier;
}

#endif /* ! CRL_HOST_QT_H */
