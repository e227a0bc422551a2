// Every bound as a sum over layers inside a window: how membership is tested, and what `repair`
// moves along.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "counting_table.hpp"
#include "hytas/search_space.hpp"

namespace hytas {

// A bound of a sum is itself. A bound of a maximum is two counts: layers above the upper end (none
// may be) and layers that reach the lower end (at least one must, unless the global part does).
struct BoundSum {
    enum class Kind { sum, exceeding, reaching };

    const CostTable* cost = nullptr;
    Kind kind = Kind::sum;
    std::int64_t lower = 0;
    std::int64_t upper = 0;
    std::vector<const LayerCosts*> groups;

    // Ends of the sum over layers, given the combination of global genes; false when they alone
    // break the bound.
    bool window(std::size_t combination, std::int64_t& floor, std::int64_t& cap) const {
        const std::int64_t global = cost->global[combination];
        floor = kind == Kind::sum                          ? lower - global
                : kind == Kind::reaching && global < lower ? 1
                                                           : 0;
        cap = kind == Kind::sum ? upper - global : kind == Kind::exceeding ? 0 : Budget::unbounded;
        return global <= upper;
    }
};

class BoundSums {
  public:
    BoundSums(const SearchSpace& space, const std::vector<Dimension>& dimensions);

    [[nodiscard]] const std::vector<BoundSum>& all() const { return sums_; }
    // Allowed by the space, and inside every bound.
    bool fit(const Gene8* genome) const;
    std::int64_t over_layers(const BoundSum& sum, const Gene8* genome) const;

  private:
    // Ends of a sum over all layers, padding included, for one combination of global genes.
    struct Ends {
        std::int64_t floor;
        std::int64_t cap;
    };

    [[nodiscard]] Ends ends_of(const BoundSum& sum, std::size_t combination) const;
    void tabulate();

    const SearchSpace& space_;
    std::vector<BoundSum> sums_;
    std::deque<LayerCosts> counts_;  // of maxima; a deque, because sums_ points into it
    // Empty for a space with very many combinations: then they are computed again for every genome.
    std::vector<Ends> ends_;                 // [combination * sums + sum]
    std::vector<const std::int64_t*> rows_;  // [(combination * sums + sum) * groups + group]
};

}  // namespace hytas
