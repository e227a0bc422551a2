#include "hytas/wide.hpp"

#include <algorithm>

#include "hytas/error.hpp"

namespace hytas {

namespace {
constexpr Wide largest = ~Wide{0};
}

void refuse_count() {
    throw Error("count: more than 2^128 architectures; narrow the space or the budget");
}

std::string to_text(Wide value) {
    std::string digits;
    do {
        digits.push_back(static_cast<char>('0' + static_cast<int>(value % 10)));
        value /= 10;
    } while (value != 0);
    std::reverse(digits.begin(), digits.end());
    return digits;
}

Wide parse_wide(const std::string& text) {
    if (text.empty()) throw Error("number '': must be decimal digits");
    Wide value = 0;
    for (const char digit : text) {
        if (digit < '0' || digit > '9')
            throw Error("number '" + text + "': must be decimal digits");
        const Wide next = static_cast<Wide>(digit - '0');
        if (value > (largest - next) / 10)
            throw Error("number '" + text + "': needs more than 128 bits");
        value = value * 10 + next;
    }
    return value;
}

}  // namespace hytas
