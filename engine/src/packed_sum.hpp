// Several sums in one 128-bit integer: adding packed steps adds every sum, and comparing orders
// them lexicographically.
#pragma once

#include <cstdint>
#include <vector>

#include "hytas/wide.hpp"

namespace hytas {

using Sums = std::vector<std::int64_t>;  // one a dimension

// Lower and upper ends, both included, of every dimension.
struct Window {
    Sums floor;
    Sums cap;

    // The smallest window that holds both.
    void widen(const Window& other);
    [[nodiscard]] bool empty() const;
};

class SumPacking {
  public:
    SumPacking() = default;
    // most[d]: the largest value that dimension d can reach. Throws TableTooLarge when 128 bits do
    // not hold them.
    explicit SumPacking(const Sums& most);

    [[nodiscard]] Wide pack(const Sums& sums) const;
    [[nodiscard]] std::int64_t get(Wide packed, std::size_t dimension) const {
        return static_cast<std::int64_t>((packed >> shift_[dimension]) & mask_[dimension]);
    }
    // The least of all packed sums whose first dimension is `value`.
    [[nodiscard]] Wide leading(std::int64_t value) const {
        return static_cast<Wide>(value) << shift_[0];
    }
    [[nodiscard]] bool inside(Wide packed, const Window& window) const {
        for (std::size_t d = 0; d < shift_.size(); ++d) {
            const std::int64_t value = get(packed, d);
            if (value < window.floor[d] || value > window.cap[d]) return false;
        }
        return true;
    }
    [[nodiscard]] std::size_t dimensions() const { return shift_.size(); }

  private:
    std::vector<int> shift_;
    std::vector<Wide> mask_;
};

}  // namespace hytas
