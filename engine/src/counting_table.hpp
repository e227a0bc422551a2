// Exact counting by dynamic programming: how many ways the rest of an architecture has to reach
// each sum of costs.
//
// A level decides one gene of one layer (or all genes of a layer, when their costs do not add up
// gene by gene). Its states are the sums that the rest can reach; states[s] has one child a value
// of the gene, in the next level. Levels are shared by all combinations of global genes that lead
// to the same layer costs, so the table stays small.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "hytas/budget.hpp"
#include "hytas/search_space.hpp"
#include "packed_sum.hpp"

namespace hytas {

// Thrown when the exact table would exceed its limit: Feasible then falls back to a coarser one.
struct TableTooLarge : std::exception {};

constexpr std::uint32_t no_state = 0xffffffffU;

struct Level {
    std::size_t group = 0;
    std::size_t first_gene = 0;  // of the layer
    std::size_t genes = 1;
    std::size_t options = 1;
    bool ends_layer = true;
    const Level* next = nullptr;  // nullptr: the last one, with the one state "nothing left"
    std::vector<Wide> sums;       // packed, ascending, one a state
    std::vector<Wide> counts;     // architectures below each state
    // [state * options + option], no_state where the budget is left.
    std::vector<std::uint32_t> children;
    // [state * options + option]: counts of the options up to this one ...
    std::vector<std::uint64_t> narrow;
    std::vector<Wide> wide;    // ... here instead when some count needs more than 64 bits
    std::vector<Wide> before;  // [state]: counts of the states before, size + 1 entries
};

// The feasible architectures of one combination of global genes.
struct Root {
    std::size_t combination = 0;
    const Level* level = nullptr;
    Wide count = 0;
    std::size_t begin = 0;  // states [begin, end) of the level, when `states` is null
    std::size_t end = 0;
    // Else states[begin] to states[end - 1], and before[begin] ... for them.
    const std::uint32_t* states = nullptr;
    const Wide* before = nullptr;

    [[nodiscard]] std::size_t size() const { return end - begin; }
    [[nodiscard]] std::uint32_t state(std::size_t i) const {
        return states == nullptr ? static_cast<std::uint32_t>(begin + i) : states[begin + i];
    }
    [[nodiscard]] Wide count_before(std::size_t i) const {
        return before == nullptr ? level->before[begin + i] - level->before[begin]
                                 : before[begin + i];
    }
};

// What one bounded cost adds to the state.
struct Dimension {
    std::size_t cost = 0;
    std::int64_t lower = 0;
    std::int64_t upper = 0;
    // A maximum needs no sum: too large options are excluded; a lower bound counts the layers that
    // reach it.
    bool maximum = false;
    // Sums are counted in units of so much, each layer's rounded down: 1 is exact, more makes the
    // table smaller and its set of architectures larger than the feasible one, never smaller.
    std::int64_t grain = 1;
};

class CountingTable {
  public:
    // units: the largest number of units a bound's sum may have, one a bound; 0, and {} for all:
    // exact. Throws TableTooLarge.
    CountingTable(const SearchSpace& space, const std::vector<Bound>& bounds,
                  std::size_t most_entries, std::vector<std::int64_t> units = {});

    [[nodiscard]] Wide total() const { return total_; }
    [[nodiscard]] bool narrow() const { return narrow_; }
    [[nodiscard]] std::size_t entries() const { return entries_; }
    [[nodiscard]] const std::vector<Root>& roots() const { return roots_; }
    // Nullptr when it has no feasible architecture.
    [[nodiscard]] const Root* root_of(std::size_t combination) const;
    [[nodiscard]] const std::vector<Dimension>& dimensions() const { return dimensions_; }
    [[nodiscard]] const SumPacking& packing() const { return packing_; }
    // The sums over layers that a genome has, as the roots order them.
    Wide sums_of(const SearchSpace& space, const Gene8* genome) const;

  private:
    friend class TableBuilder;

    std::vector<Dimension> dimensions_;
    SumPacking packing_;
    std::vector<std::unique_ptr<Level>> levels_;
    std::vector<Root> roots_;             // by ascending combination
    std::vector<std::uint32_t> root_at_;  // [combination]; no_state: none
    std::vector<std::uint32_t> picked_;   // states of roots whose states are not neighbours
    std::vector<Wide> picked_before_;     // and the counts of the states before, root by root
    Wide total_ = 0;
    bool narrow_ = true;
    std::size_t entries_ = 0;
};

}  // namespace hytas
