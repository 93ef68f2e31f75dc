// SPDX-License-Identifier: Apache-2.0
//
// The same echoes and hops by SwiftNIO: `make bench-swift NIO=PATH`, where PATH is a checkout of it. Its dependencies lie beside it if
// SWIFTCI_USE_LOCAL_DEPS is in the environment.

#if HAS_NIO
    import Dispatch
    import NIOCore
    import NIOPosix

    private final class Echo: ChannelInboundHandler, Sendable {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer
        func channelRead(context: ChannelHandlerContext, data: NIOAny) { context.writeAndFlush(data, promise: nil) }
    }

    let waysOfNIO = [
        EchoWay(word: "nio", name: "SwiftNIO, a channel handler") { sockets in
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let channels = try sockets.map { socket in
                try ClientBootstrap(group: group).channelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Echo()) }
                }.withConnectedSocket(socket).wait()
            }
            return {
                for channel in channels { try? channel.closeFuture.wait() }
                try? group.syncShutdownGracefully()
            }
        },
        EchoWay(word: "nio-task", name: "SwiftNIO, `NIOAsyncChannel` in a plain task") { sockets in
            let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
            let all = DispatchGroup()
            for socket in sockets {
                let channel = try ClientBootstrap(group: group).withConnectedSocket(socket).flatMapThrowing { channel in
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(wrappingChannelSynchronously: channel)
                }.wait()
                all.enter()
                Task {
                    try? await channel.executeThenClose { inbound, outbound in
                        for try await bytes in inbound { try await outbound.write(bytes) }
                    }
                    all.leave()
                }
            }
            return {
                all.wait()
                try? group.syncShutdownGracefully()
            }
        },
    ]

    private actor OnEventLoop {
        let loop = MultiThreadedEventLoopGroup(numberOfThreads: 1).next()
        nonisolated var unownedExecutor: UnownedSerialExecutor { loop.executor.asUnownedSerialExecutor() }
        var value = 0
        func next() { value += 1 }
    }
    private let onEventLoop = OnEventLoop()
    let crowdsOfNIO: [(name: String, hop: @Sendable () async -> Void)] = [
        ("an actor on SwiftNIO's event loop", { await onEventLoop.next() })
    ]
#else
    let crowdsOfNIO: [(name: String, hop: @Sendable () async -> Void)] = []
    let waysOfNIO: [EchoWay] = []
#endif
