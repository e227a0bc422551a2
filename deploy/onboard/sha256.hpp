#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace hytas::onboard {

// SHA-256 of the parts in a row, as 64 hexadecimal digits.
std::string sha256(std::initializer_list<std::string_view> parts);

}  // namespace hytas::onboard
