#pragma once

#include <stdexcept>

namespace onboard {

// The pass was asked to stop (SIGTERM, SIGINT), and stopped in order.
struct Stopped : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// From here on SIGTERM and SIGINT set `stop_signal`; a second one ends the program at once.
void watch_for_stop();

// The signal that came, 0 if none did.
int stop_signal();

}  // namespace onboard
