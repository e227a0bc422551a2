// Every bound as a sum over layers inside a window: what `repair` moves along.
#pragma once

#include <cstdint>
#include <vector>

#include "counting_table.hpp"
#include "hytas/search_space.hpp"

namespace hytas {

// A bound of a maximum is two counts: layers above the upper end (none may be) and layers that reach the lower end.
class BoundSum {
  public:
    enum class Kind { sum, exceeding, reaching };

    BoundSum(const SearchSpace& space, const Dimension& dimension, Kind kind) : space_(space), dimension_(dimension), kind_(kind) {}

    // Ends of the sum over layers, given the global genes; false when they alone break the bound.
    bool window(const Gene8* genome, std::int64_t& floor, std::int64_t& cap) const {
        const CostTable& cost = space_.costs()[dimension_.cost];
        const std::int64_t global = cost.global[cost.projection.row(genome)];
        floor = kind_ == Kind::sum ? dimension_.lower - global : kind_ == Kind::reaching && global < dimension_.lower ? 1 : 0;
        cap = kind_ == Kind::sum ? dimension_.upper - global : kind_ == Kind::exceeding ? 0 : Budget::unbounded;
        return global <= dimension_.upper;
    }
    // What one layer adds with each option.
    std::int64_t add(const Gene8* genome, std::size_t group, std::size_t layer, std::size_t option) const {
        const LayerCosts& layers = space_.costs()[dimension_.cost].groups[group];
        const std::int64_t value = layers.of(layers.projection.row(genome), layer)[option];
        if (kind_ == Kind::sum) return value;
        return kind_ == Kind::exceeding ? (value > dimension_.upper ? 1 : 0) : (value >= dimension_.lower ? 1 : 0);
    }

  private:
    const SearchSpace& space_;
    Dimension dimension_;
    Kind kind_;
};

std::vector<BoundSum> bound_sums(const SearchSpace& space, const CountingTable& table);

}  // namespace hytas
