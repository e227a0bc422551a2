// The combinations of global genes that a space allows: numbered in ascending order, the last gene
// varying fastest.
//
// Two prefixes that agree on the genes that a later requirement still reads allow the same ends, so
// they share one node of a decision diagram (Knuth, TAOCP 4A, 7.1.4). Its size follows the
// requirements, not the product of the genes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hytas/detail/cost.hpp"

namespace hytas {

// A condition on the global genes.
struct Requirement {
    std::string text;
    Projection genes;                    // those it reads
    std::vector<bool> broken;            // by each row of `genes`
    std::vector<std::string> variables;  // that it names
};

class Combinations {
  public:
    static constexpr std::size_t none = ~std::size_t{0};
    // The tables of a space grow with its allowed combinations.
    static constexpr std::size_t most = std::size_t{1} << 20;

    Combinations() = default;
    // radix: number of values of each slot; their product must be below 2^63. Throws Error when no
    // combination or more than `most` are allowed, or when finding out would take too long.
    Combinations(const std::vector<std::size_t>& radix, const std::vector<Requirement>& rules);

    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] std::size_t slots() const { return radix_.size(); }
    // The number of a genome's combination, `none` when it is excluded. Its genes must be in range.
    std::size_t of(const Gene8* genome) const {
        std::size_t node = root_;
        std::size_t before = 0;
        for (std::size_t slot = 0; slot < radix_.size(); ++slot) {
            const Arc& arc = arcs_[node + genome[slot]];
            before += arc.before;
            node = arc.next;
        }
        return node == excluded ? none : before;
    }
    [[nodiscard]] const Gene8* genes(std::size_t combination) const {
        return genes_.data() + combination * radix_.size();
    }
    void write(std::size_t combination, Gene8* genome) const {
        std::copy_n(genes(combination), radix_.size(), genome);
    }

    // Those that differ from the genome in exactly `distance` genes, ascending. False when that
    // takes more than `steps` steps, which are counted down.
    bool at_distance(const Gene8* genome, std::size_t distance, std::size_t& steps,
                     std::vector<std::size_t>& found) const;

  private:
    // From a node by one value: to the first arc of the next node, past so many allowed
    // combinations of smaller values.
    struct Arc {
        std::uint32_t before = 0;
        std::uint32_t next = excluded;
    };
    // The node of all that break a requirement; every arc of it stays there.
    static constexpr std::uint32_t excluded = 0;
    static constexpr std::uint32_t complete = 1;

    struct Level;
    [[nodiscard]] std::vector<Level> expand(const std::vector<Requirement>& rules) const;
    void lay_out(const std::vector<Level>& levels);
    void list();

    std::vector<std::size_t> radix_;
    std::vector<Arc> arcs_;
    std::size_t root_ = 0;
    std::size_t size_ = 0;
    std::vector<Gene8> genes_;  // [combination * slots + slot]
};

}  // namespace hytas
