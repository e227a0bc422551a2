#pragma once

#include <stdexcept>

namespace onboard {

// Bad input or a failing device: one line for the user, exit status 2.
struct Error : std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace onboard
