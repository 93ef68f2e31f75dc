/* SPDX-License-Identifier: Apache-2.0 */
/* The peer of bench-distributed: a unary call of gRPC with 64 bytes, by a Unix socket between two processes. */
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "echo.grpc.pb.h"

class EchoService final : public Echo::Service {
    grpc::Status Call(grpc::ServerContext *, const Bytes *request, Bytes *reply) override
    {
        reply->set_bytes(request->bytes());
        return grpc::Status::OK;
    }
};

static void serve(const std::string &address)
{
    EchoService service;
    grpc::ServerBuilder builder;

    builder.AddListeningPort(address, grpc::InsecureServerCredentials());
    builder.RegisterService(&service);
    builder.BuildAndStart()->Wait();
}

int main(int argc, char **argv)
{
    const int calls = argc > 1 ? std::atoi(argv[1]) : 3000;
    const std::string address = "unix:/tmp/bench-grpc." + std::to_string(getpid());
    std::vector<double> times;
    pid_t child = fork(); /* before gRPC has begun */

    if (child == 0) {
        serve(address);
        return 0;
    }
    {
        auto channel = grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
        auto stub = Echo::NewStub(channel);
        Bytes request;
        Bytes reply;

        request.set_bytes(std::string(64, 'x'));
        if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
            return 1;
        }
        for (int round = 0; round < 8; round++) {
            auto start = std::chrono::steady_clock::now();

            for (int i = 0; i < calls; i++) {
                grpc::ClientContext context;

                if (!stub->Call(&context, request, &reply).ok()) {
                    return 1;
                }
            }
            if (round > 0) {
                times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / calls);
            }
        }
    }
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    unlink(address.substr(5).c_str());
    std::sort(times.begin(), times.end());
    std::printf("| gRPC, a unary call with 64 bytes | %.2f |  |  |  |\n", times[times.size() / 2]);
    return 0;
}
