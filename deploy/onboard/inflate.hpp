#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace onboard {

// The content of a deflate stream (RFC 1951) of exactly `length` bytes; throws Error for any other.
std::string inflate(std::string_view stream, std::size_t length);

}  // namespace onboard
