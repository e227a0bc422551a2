#include "stop.hpp"

#include <csignal>

namespace onboard {
namespace {

volatile std::sig_atomic_t arrived = 0;

void note(int signal) { arrived = signal; }

}  // namespace

void watch_for_stop() {
    struct sigaction action{};
    action.sa_handler = note;
    action.sa_flags = SA_RESETHAND;
    for (const int signal : {SIGTERM, SIGINT}) sigaction(signal, &action, nullptr);
}

int stop_signal() { return arrived; }

}  // namespace onboard
