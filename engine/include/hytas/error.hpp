// The one exception that the engine throws on bad input.
#pragma once

#include <stdexcept>
#include <string>

namespace hytas {

// The message is one line that names the argument, its value and the rule, so a command line can
// print it as it stands.
class Error : public std::invalid_argument {
  public:
    explicit Error(const std::string& message) : std::invalid_argument(message) {}
};

}  // namespace hytas
