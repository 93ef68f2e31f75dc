// SPDX-License-Identifier: Apache-2.0
//
// GTK's window in a program with an asynchronous main: the main actor lives in GTK's loop, so main sets the label after an await. With
// "once" the program ends when the window has shown the last text for a moment.

import CGtk
import CoreRunLoop
import CoreRunLoopGLib
import CoreRunLoopMain
import Glibc

/// Somewhere else, off the main actor.
@concurrent func fetchGreeting() async throws -> String {
    try await Task.sleep(for: .milliseconds(300))
    return "Hello from a Swift task"
}

@MainActor final class Window {
    private let window: UnsafeMutablePointer<GtkWidget>
    private let label: UnsafeMutablePointer<GtkWidget>

    init() {
        window = gtk_window_new()
        label = gtk_label_new("waiting")
        gtk_window_set_title(gtkWindow, "CoreRunLoop in GTK")
        gtk_window_set_default_size(gtkWindow, 420, 140)
        gtk_window_set_child(gtkWindow, label)
        gtk_window_present(gtkWindow)
    }

    var text: String {
        get { String(cString: gtk_label_get_text(OpaquePointer(label))) }
        set { gtk_label_set_text(OpaquePointer(label), newValue) }
    }

    private var gtkWindow: UnsafeMutablePointer<GtkWindow> {
        UnsafeMutableRawPointer(window).assumingMemoryBound(to: GtkWindow.self)
    }
}

@main struct Program {
    static func main() async throws {
        guard gtk_init_check() != 0 else {
            print("there is no display here")
            exit(77)
        }
        let window = Window()
        let loop = g_main_loop_new(nil, 0)
        RunLoop.mainThreadRuns {
            RunLoop.main.attachToGLib()
            g_main_loop_run(loop)
        }
        window.text = try await fetchGreeting()
        var beats = 0
        for await _ in try RunLoop.main.ticks(every: .milliseconds(100)) {
            beats += 1
            window.text = "Hello from a Swift task, beat \(beats)"
            if beats == 10 { break }
        }
        print(window.text)
        let stays = !CommandLine.arguments.contains("once")
        repeat { try await Task.sleep(for: .seconds(3)) } while stays
    }
}
