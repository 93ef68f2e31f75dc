/* SPDX-License-Identifier: Apache-2.0 */
/* Qt as the host. */
#include "host.h"

#include <QtCore/QAbstractEventDispatcher>
#include <QtCore/QCoreApplication>
#include <QtCore/QTimer>

#include <CRLHostQt.h>

const bool host_can_nest = true;
static QSocketNotifier *attached;
static unsigned long turns;

void host_make(void)
{
    static int count = 1;
    static char name[] = "qt", *arguments[] = {name, nullptr};

    new QCoreApplication(count, arguments);
    QObject::connect(QAbstractEventDispatcher::instance(), &QAbstractEventDispatcher::awake, [] { turns++; });
}

bool host_attach(void (*stopped)(void *info), void *info)
{
    QSocketNotifier *notifier = CRLHostQtAttach(stopped, info);

    attached = notifier ? notifier : attached;
    return notifier != nullptr;
}

void host_detach(void)
{
    delete attached;
}

void host_run(void)
{
    QCoreApplication::exec();
}

void host_quit(void)
{
    QCoreApplication::quit();
}

void host_run_nested(void)
{
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
}

void host_every(unsigned interval_ms, void (*function)(void))
{
    auto *timer = new QTimer;

    QObject::connect(timer, &QTimer::timeout, function);
    timer->start(static_cast<int>(interval_ms));
}

unsigned long host_turns(void)
{
    return turns;
}
