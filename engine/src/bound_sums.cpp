#include "bound_sums.hpp"

namespace hytas {

std::vector<BoundSum> bound_sums(const SearchSpace& space, const CountingTable& table) {
    std::vector<BoundSum> sums;
    for (const Dimension& dimension : table.dimensions()) {
        if (!dimension.maximum) {
            sums.emplace_back(space, dimension, BoundSum::Kind::sum);
            continue;
        }
        sums.emplace_back(space, dimension, BoundSum::Kind::exceeding);
        if (dimension.lower > 0) sums.emplace_back(space, dimension, BoundSum::Kind::reaching);
    }
    return sums;
}

}  // namespace hytas
