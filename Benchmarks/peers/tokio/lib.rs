// SPDX-License-Identifier: Apache-2.0
//! Tokio as a peer; see foreign.h. A loop is a runtime of one thread. A signal is a task that waits to be notified, a timer is a task that
//! sleeps, and a post is a task. A look gives the tasks one turn.
use std::ffi::c_void;
use std::os::unix::io::RawFd;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::io::Interest;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;
use tokio::task::{yield_now, JoinHandle};
use tokio::time::{sleep_until, Instant};

type Function = extern "C" fn(*mut c_void);

/// What is called, as C gave it. Tokio wants tasks that may go to other threads.
#[derive(Clone, Copy)]
struct Callback {
    function: Function,
    info: *mut c_void,
}

unsafe impl Send for Callback {}

impl Callback {
    fn call(self) {
        (self.function)(self.info)
    }
}

struct Loop {
    runtime: Runtime,
    stop: Arc<Notify>,
}

struct Timer {
    handle: Handle,
    callback: Callback,
    after: Duration,
    interval: Duration,
    task: Option<JoinHandle<()>>,
}

impl Timer {
    fn start(&mut self, after: Duration) {
        let (callback, interval) = (self.callback, self.interval);
        let mut date = Instant::now() + after;

        self.task = Some(self.handle.spawn(async move {
            loop {
                sleep_until(date).await;
                callback.call();
                if interval.is_zero() {
                    return;
                }
                date += interval;
            }
        }));
    }

    fn stop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

fn duration(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.max(0.0))
}

unsafe fn borrowed<'a, T>(pointer: *mut c_void) -> &'a mut T {
    &mut *pointer.cast()
}

fn given<T>(value: T) -> *mut c_void {
    Box::into_raw(Box::new(value)).cast()
}

#[no_mangle]
pub extern "C" fn foreign_loop_begin() -> *mut c_void {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");

    given(Loop { runtime, stop: Arc::new(Notify::new()) })
}

#[no_mangle]
pub unsafe extern "C" fn foreign_look(handle: *mut c_void) {
    borrowed::<Loop>(handle).runtime.block_on(yield_now());
}

#[no_mangle]
pub unsafe extern "C" fn foreign_run(handle: *mut c_void) {
    let that: &Loop = borrowed(handle);

    that.runtime.block_on(that.stop.notified());
}

#[no_mangle]
pub unsafe extern "C" fn foreign_stop(handle: *mut c_void) {
    borrowed::<Loop>(handle).stop.notify_one();
}

#[no_mangle]
pub unsafe extern "C" fn foreign_signal_add(handle: *mut c_void, function: Function, info: *mut c_void) -> *mut c_void {
    let callback = Callback { function, info };
    let signal = Arc::new(Notify::new());
    let waited = signal.clone();

    borrowed::<Loop>(handle).runtime.spawn(async move {
        loop {
            waited.notified().await;
            callback.call();
        }
    });
    given(signal)
}

#[no_mangle]
pub unsafe extern "C" fn foreign_signal_send(handle: *mut c_void) {
    borrowed::<Arc<Notify>>(handle).notify_one();
}

#[no_mangle]
pub unsafe extern "C" fn foreign_post(handle: *mut c_void, function: Function, info: *mut c_void) {
    let callback = Callback { function, info };

    borrowed::<Loop>(handle).runtime.spawn(async move { callback.call() });
}

#[no_mangle]
pub unsafe extern "C" fn foreign_timer_make(
    handle: *mut c_void,
    seconds: f64,
    interval: f64,
    function: Function,
    info: *mut c_void,
) -> *mut c_void {
    given(Timer {
        handle: borrowed::<Loop>(handle).runtime.handle().clone(),
        callback: Callback { function, info },
        after: duration(seconds),
        interval: duration(interval),
        task: None,
    })
}

#[no_mangle]
pub unsafe extern "C" fn foreign_timer_add(handle: *mut c_void) {
    let timer: &mut Timer = borrowed(handle);

    timer.start(timer.after);
}

#[no_mangle]
pub unsafe extern "C" fn foreign_timer_move(handle: *mut c_void, seconds: f64) {
    let timer: &mut Timer = borrowed(handle);

    timer.stop();
    timer.start(duration(seconds));
}

#[no_mangle]
pub unsafe extern "C" fn foreign_timer_cancel(handle: *mut c_void) {
    borrowed::<Timer>(handle).stop();
    drop(Box::from_raw(handle.cast::<Timer>()));
}

/// The callback reads what is there, and once: the cases never send twice before they have been served.
#[no_mangle]
pub unsafe extern "C" fn foreign_watch_add(handle: *mut c_void, descriptor: RawFd, function: Function, info: *mut c_void) -> *mut c_void {
    let callback = Callback { function, info };
    let runtime = &borrowed::<Loop>(handle).runtime;
    let _inside = runtime.enter();
    let watched = AsyncFd::with_interest(descriptor, Interest::READABLE).expect("a descriptor that can be watched");

    runtime.spawn(async move {
        while let Ok(mut ready) = watched.readable().await {
            ready.clear_ready();
            callback.call();
        }
    });
    std::ptr::null_mut()
}
