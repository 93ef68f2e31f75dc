// SPDX-License-Identifier: Apache-2.0
//
// Article 001's two custom sources with a picture on the terminal in the place of the collection view: the main thread tells the worker to
// choose nine new shades, the worker tells the main thread to draw them. Enter is the stop button that the article leaves as an exercise;
// the end of the input, or 20 pictures, stop it, too.

import CoreRunLoop

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

enum Command { case draw([Double]) }

let shades = Array(" .:-=+*#%@")
let stop = RunLoop.StopToken()
var pictures = 0

let drawing = InputSource<Command> { commands in
    for case .draw(let alphas) in commands {
        MainActor.assumeIsolated {
            pictures += 1
            let cells = alphas.map { String(repeating: shades[Int($0 * 9.99)], count: 6) }
            for row in 0..<3 { print(cells[row * 3..<row * 3 + 3].joined(separator: " ")) }
            print("picture \(pictures) (Enter stops)\n")
            if pictures == 20 { stop.requestStop() }
        }
    }
}
let choosing = InputSource<Void> { _ in drawing.send(.draw((0..<9).map { _ in Double.random(in: 0...1) })) }

let workerStop = RunLoop.StopToken()
let worker = try Thread.runningLoop(name: "worker", until: workerStop)
worker.add(choosing, forMode: .default)
RunLoop.main.add(drawing, forMode: .default)
var ticking: Timer.Scheduled? = RunLoop.main.schedule(every: .milliseconds(isatty(STDOUT_FILENO) == 1 ? 500 : 5)) { _ in choosing.send(()) }

let input = try? DescriptorSource(descriptor: STDIN_FILENO) { event in
    event.invalidate()
    if isatty(STDIN_FILENO) == 1 { stop.requestStop() }
}
if let input { RunLoop.main.add(input, forMode: .default) }

RunLoop.current.run(in: .default, until: stop)
ticking = nil
choosing.invalidate()
drawing.invalidate()
workerStop.requestStop()
print("stopped after \(pictures) pictures")
