/* SPDX-License-Identifier: Apache-2.0 */
/* Qt's core event loop as a peer; see foreign.h. It has no signals from other threads but calls that are queued: one, unless one is on its way. */
#include <QCoreApplication>
#include <QEventLoop>
#include <QSocketNotifier>
#include <QTimer>
#include <algorithm>
#include <atomic>
#include <mutex>

#include "peers/foreign_calls.h"

namespace {

// Qt wants one in each process. Its own loop is measured, not GLib's, which Debian's Qt would use.
void make_application()
{
    static std::once_flag once;

    std::call_once(once, [] {
        static int count = 1;
        static char name[] = "bench";
        static char *arguments[] = {name, nullptr};

        qputenv("QT_NO_GLIB", "1");
        new QCoreApplication(count, arguments);
    });
}

struct Signal {
    QObject context;
    foreign_function function;
    void *info;
    std::atomic<bool> isOnItsWay{false};
};

struct Timer {
    QTimer timer;
    int firstMilliseconds;
    int intervalMilliseconds;
};

int milliseconds(double seconds)
{
    return seconds <= 0 ? 0 : std::max(1, static_cast<int>(seconds * 1e3));
}

} // namespace

void *foreign_loop_begin()
{
    make_application();
    return new QEventLoop;
}

void foreign_look(void *loop)
{
    static_cast<QEventLoop *>(loop)->processEvents();
}

void foreign_run(void *loop)
{
    static_cast<QEventLoop *>(loop)->exec();
}

void foreign_stop(void *loop)
{
    static_cast<QEventLoop *>(loop)->quit();
}

void *foreign_signal_add(void *, foreign_function function, void *info)
{
    auto *signal = new Signal;

    signal->function = function;
    signal->info = info;
    return signal;
}

void foreign_signal_send(void *handle)
{
    auto *signal = static_cast<Signal *>(handle);

    if (!signal->isOnItsWay.exchange(true)) {
        QMetaObject::invokeMethod(
            &signal->context,
            [signal] {
                signal->isOnItsWay = false;
                signal->function(signal->info);
            },
            Qt::QueuedConnection);
    }
}

void foreign_post(void *loop, foreign_function function, void *info)
{
    QMetaObject::invokeMethod(static_cast<QEventLoop *>(loop), [function, info] { function(info); }, Qt::QueuedConnection);
}

void *foreign_timer_make(void *, double seconds, double interval, foreign_function function, void *info)
{
    auto *timer = new Timer;

    timer->firstMilliseconds = milliseconds(seconds);
    timer->intervalMilliseconds = milliseconds(interval);
    timer->timer.setTimerType(Qt::PreciseTimer);
    timer->timer.setSingleShot(timer->intervalMilliseconds == 0);
    QObject::connect(&timer->timer, &QTimer::timeout, [function, info] { function(info); });
    return timer;
}

void foreign_timer_add(void *handle)
{
    auto *timer = static_cast<Timer *>(handle);

    timer->timer.start(timer->intervalMilliseconds ? timer->intervalMilliseconds : timer->firstMilliseconds);
}

void foreign_timer_move(void *timer, double seconds)
{
    static_cast<Timer *>(timer)->timer.start(milliseconds(seconds));
}

void foreign_timer_cancel(void *timer)
{
    delete static_cast<Timer *>(timer);
}

void *foreign_watch_add(void *, int descriptor, foreign_function function, void *info)
{
    auto *notifier = new QSocketNotifier(descriptor, QSocketNotifier::Read);

    QObject::connect(notifier, &QSocketNotifier::activated, [function, info] { function(info); });
    return notifier;
}
