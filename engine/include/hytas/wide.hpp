// 128-bit counts. autoformer-base alone has 6e15 architectures and weighted counts are larger, so
// 64 bits are too few.
#pragma once

#include <cstdint>
#include <string>

namespace hytas {

__extension__ using Wide = unsigned __int128;

[[noreturn]] void refuse_count();

// Both throw Error when the result needs more than 128 bits: a wrapped count would be a wrong
// count.
[[nodiscard]] inline Wide checked_add(Wide left, Wide right) {
    if (right > ~Wide{0} - left) refuse_count();
    return left + right;
}
[[nodiscard]] inline Wide checked_multiply(Wide left, Wide right) {
    if ((left | right) >> 64 == 0) return left * right;  // nearly always: no division
    if (left != 0 && right > ~Wide{0} / left) refuse_count();
    return left * right;
}

// Decimal digits; parse_wide throws Error on anything else and on more than 128 bits.
[[nodiscard]] std::string to_text(Wide value);
[[nodiscard]] Wide parse_wide(const std::string& text);

}  // namespace hytas
