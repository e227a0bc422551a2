// Variation: free functions of (space, parents, generator), without branches a gene. mutate and
// crossover may leave the budget; repair brings their child back, changing the fewest genes.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "hytas/feasible.hpp"
#include "hytas/rng.hpp"
#include "hytas/search_space.hpp"

namespace hytas {

// The probability that a gene is redrawn (uniformly among all its values, as the references do).
class MutationRates {
  public:
    // Presets: "autoformer" (depth 0.4, other global genes 0.4, genes of layers 0.2: its released
    // code), "s3" (0.2, 0.2, 0.4: its supplementary) and "hytas" (0.2 each: HyTAS itself only
    // samples). `rates` overrides single genes.
    [[nodiscard]] static MutationRates preset(const SearchSpace& space, const std::string& name,
                                              const std::map<std::string, double>& rates);

    // Of each byte of a genome, in 2^-32.
    [[nodiscard]] const std::vector<std::uint64_t>& thresholds() const { return thresholds_; }
    // Which of the bytes `among` (bit i: byte 64 * block + i) are redrawn.
    std::uint64_t choose(std::size_t block, std::uint64_t among, Rng& rng) const;

  private:
    std::vector<std::uint64_t> thresholds_;
    std::vector<std::uint64_t> planes_;  // [block * 33 + k]: bit 32 - k of its thresholds
};

[[nodiscard]] std::vector<std::string> mutation_presets();

// `child` has the length of a genome and is overwritten; it must not be a parent.
void mutate(const SearchSpace& space, const MutationRates& rates, const Gene8* parent, Rng& rng,
            Gene8* child);

// Every gene from either parent; where only one parent has a layer, its genes. Parents may differ
// in depth.
void crossover(const SearchSpace& space, const Gene8* left, const Gene8* right, Rng& rng,
               Gene8* child);

// Every gene uniform among its values, whatever the budget.
void random_genome(const SearchSpace& space, Rng& rng, Gene8* genome);

// Redraws exactly one gene to another value.
void step(const SearchSpace& space, const Gene8* parent, Rng& rng, Gene8* child);

}  // namespace hytas
