// Brings a child back into the budget by redrawing the fewest genes, exactly.
#pragma once

#include <memory>

#include "hytas/feasible.hpp"
#include "hytas/rng.hpp"

namespace hytas {

struct ReachedLevel;
struct Root;
template <class Count>
struct Distances;

// Keeps its working memory between calls, so that a repair allocates nothing. One a thread.
class Repair {
  public:
    explicit Repair(const Feasible& feasible);  // which must outlive it
    ~Repair();
    Repair(Repair&&) noexcept;
    Repair& operator=(Repair&&) noexcept;

    // The child must have valid genes and padding. If it fits, nothing changes.
    //
    // The global genes are kept when some feasible architecture has them; otherwise the fewest of
    // them change, to a combination drawn in proportion to its number of feasible architectures.
    // Then the smallest number of genes of layers is found that must change, and one of all
    // feasible architectures at exactly that distance is drawn, each equally likely. Returns how
    // many genes changed.
    std::size_t operator()(Rng& rng, Gene8* child);

  private:
    struct Scratch;

    std::size_t find_nearest(const Gene8* child);
    std::size_t change_global(Rng& rng, Gene8* child);
    bool list_changes(Gene8* child);
    bool change_one(Rng& rng, Gene8* child);
    [[nodiscard]] bool pair_fits(std::size_t i, std::size_t j) const;
    [[nodiscard]] std::size_t count_pairs(std::size_t i) const;
    bool change_two(Rng& rng, Gene8* child);
    std::size_t change_fewest(Rng& rng, Gene8* child);
    const std::vector<ReachedLevel>& reached_from(const Root& root);
    template <class Count>
    void measure_distances(const std::vector<ReachedLevel>& levels, const Gene8* child,
                           std::vector<Distances<Count>>& distances) const;
    template <class Count>
    std::size_t draw_nearest(Rng& rng, const std::vector<ReachedLevel>& levels,
                             std::vector<Distances<Count>>& distances, Gene8* child) const;

    const Feasible* feasible_;
    std::unique_ptr<Scratch> scratch_;
};

}  // namespace hytas
