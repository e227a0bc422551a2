#include "packed_sum.hpp"

#include <algorithm>
#include <bit>

#include "counting_table.hpp"

namespace hytas {

void Window::widen(const Window& other) {
    if (floor.empty()) {
        *this = other;
        return;
    }
    for (std::size_t d = 0; d < floor.size(); ++d) {
        floor[d] = std::min(floor[d], other.floor[d]);
        cap[d] = std::max(cap[d], other.cap[d]);
    }
}

bool Window::empty() const {
    for (std::size_t d = 0; d < floor.size(); ++d)
        if (floor[d] > cap[d]) return true;
    return false;
}

SumPacking::SumPacking(const Sums& most) : shift_(most.size()), mask_(most.size()) {
    int used = 0;
    for (std::size_t d = most.size(); d-- > 0;) {
        const int bits =
            std::max(1, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(most[d]))));
        shift_[d] = used;
        mask_[d] = (Wide{1} << bits) - 1;
        used += bits;
        if (used > 127) throw TableTooLarge();
    }
}

Wide SumPacking::pack(const Sums& sums) const {
    Wide packed = 0;
    for (std::size_t d = 0; d < shift_.size(); ++d)
        packed |= static_cast<Wide>(sums[d]) << shift_[d];
    return packed;
}

}  // namespace hytas
