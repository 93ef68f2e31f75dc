/* SPDX-License-Identifier: Apache-2.0 */
/* Asio without Boost as a peer; see foreign.h. It has no signals: a function is posted, unless one is on its way. */
#include <asio.hpp>
#include <atomic>
#include <chrono>

#include "peers/foreign_calls.h"

using seconds_of_clock = std::chrono::duration<double>;

namespace {

struct Loop {
    asio::io_context context{1}; // one thread runs it
    asio::executor_work_guard<asio::io_context::executor_type> guard = asio::make_work_guard(context);
};

struct Signal {
    Loop &loop;
    foreign_function function;
    void *info;
    std::atomic<bool> isOnItsWay = false;
};

struct Timer {
    asio::steady_timer timer;
    asio::steady_timer::duration interval;
    foreign_function function;
    void *info;

    void wait()
    {
        timer.async_wait([this](asio::error_code error) {
            if (error) {
                return;
            }
            if (interval.count() > 0) {
                timer.expires_at(timer.expiry() + interval);
                wait();
            }
            function(info);
        });
    }
};

struct Watch {
    asio::posix::stream_descriptor descriptor;
    foreign_function function;
    void *info;

    void wait()
    {
        descriptor.async_wait(asio::posix::stream_descriptor::wait_read, [this](asio::error_code error) {
            if (!error) {
                function(info);
                wait();
            }
        });
    }
};

asio::steady_timer::duration duration(double seconds)
{
    return std::chrono::duration_cast<asio::steady_timer::duration>(seconds_of_clock(seconds));
}

} // namespace

void *foreign_loop_begin()
{
    return new Loop;
}

void foreign_look(void *loop)
{
    static_cast<Loop *>(loop)->context.poll();
}

void foreign_run(void *loop)
{
    static_cast<Loop *>(loop)->context.run();
    static_cast<Loop *>(loop)->context.restart(); // it was stopped
}

void foreign_stop(void *loop)
{
    static_cast<Loop *>(loop)->context.stop();
}

void *foreign_signal_add(void *loop, foreign_function function, void *info)
{
    return new Signal{*static_cast<Loop *>(loop), function, info};
}

void foreign_signal_send(void *handle)
{
    auto *signal = static_cast<Signal *>(handle);

    if (!signal->isOnItsWay.exchange(true)) {
        asio::post(signal->loop.context, [signal] {
            signal->isOnItsWay = false;
            signal->function(signal->info);
        });
    }
}

void foreign_post(void *loop, foreign_function function, void *info)
{
    asio::post(static_cast<Loop *>(loop)->context, [function, info] { function(info); });
}

void *foreign_timer_make(void *loop, double seconds, double interval, foreign_function function, void *info)
{
    return new Timer{asio::steady_timer(static_cast<Loop *>(loop)->context, duration(seconds)), duration(interval), function, info};
}

void foreign_timer_add(void *timer)
{
    static_cast<Timer *>(timer)->wait();
}

void foreign_timer_move(void *timer, double seconds)
{
    static_cast<Timer *>(timer)->timer.expires_after(duration(seconds));
    static_cast<Timer *>(timer)->wait();
}

void foreign_timer_cancel(void *timer)
{
    delete static_cast<Timer *>(timer);
}

void *foreign_watch_add(void *loop, int descriptor, foreign_function function, void *info)
{
    auto *watch = new Watch{asio::posix::stream_descriptor(static_cast<Loop *>(loop)->context, descriptor), function, info};

    watch->wait();
    return watch;
}
