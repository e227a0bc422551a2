#pragma once
// Values of a cube, whose type is known when the program runs.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "element_type.hpp"

namespace hytas::onboard {

// Calls use(Value{}) with the C++ type of a cube's values.
template <typename Use>
auto with_type(const ElementType& type, const Use& use) {
    switch (type.envi) {
        case 1: return use(std::uint8_t{});
        case 2: return use(std::int16_t{});
        case 3: return use(std::int32_t{});
        case 4: return use(float{});
        case 5: return use(double{});
        case 12: return use(std::uint16_t{});
        case 13: return use(std::uint32_t{});
        case 14: return use(std::int64_t{});
        default: return use(std::uint64_t{});
    }
}

// In the type of the values: a header may write the number for no data with fewer digits than a
// float has.
template <typename Value>
bool equals(Value value, double number) {
    if constexpr (std::is_floating_point_v<Value>)
        return std::abs(number) <= static_cast<double>(std::numeric_limits<Value>::max()) &&
               value == static_cast<Value>(number);
    else
        return static_cast<double>(value) == number;
}

// Whether the networks' type, float32, can hold a value.
template <typename Value>
bool is_finite(Value value) {
    return std::abs(static_cast<double>(value)) <= std::numeric_limits<float>::max();
}

template <typename Value>
bool holds(double number) {
    if constexpr (std::is_floating_point_v<Value>)
        return std::abs(number) <= static_cast<double>(std::numeric_limits<Value>::max());
    // The largest value of 64 bits is no double, the power of two above it is.
    const double above = std::ldexp(1.0, std::numeric_limits<Value>::digits);
    return number == std::floor(number) &&
           number >= static_cast<double>(std::numeric_limits<Value>::min()) && number < above;
}

template <typename Value>
bool any_data(const char* pixel, const std::vector<std::int64_t>& bands,
              std::optional<double> ignore) {
    for (const std::int64_t band : bands) {
        Value value;
        std::memcpy(&value, pixel + static_cast<std::size_t>(band) * sizeof(Value), sizeof(Value));
        if (!is_finite(value)) continue;
        if (!ignore || !equals(value, *ignore)) return true;
    }
    return false;
}

}  // namespace hytas::onboard
