// The feasible architectures of a space and a budget: counted, sampled, enumerated and ranked
// exactly, without rejection.
#pragma once

#include <memory>
#include <vector>

#include "hytas/budget.hpp"
#include "hytas/rng.hpp"
#include "hytas/search_space.hpp"

namespace hytas {

class CountingTable;
class BoundSums;

// The two meanings of "uniform": every architecture equally likely, or every gene uniform among its
// values (conditioned on the budget; favours small depths, as the references' samplers do).
enum class Uniform { architectures, choices };

[[nodiscard]] Uniform uniform_named(const std::string& name);  // throws Error

class Feasible {
  public:
    // Throws Error with the smallest, largest or nearest possible costs when no architecture fits.
    Feasible(std::shared_ptr<const SearchSpace> space, Budget budget,
             std::size_t most_entries = default_entries);
    ~Feasible();
    Feasible(Feasible&&) noexcept;
    Feasible& operator=(Feasible&&) noexcept;

    // Of the table, about 12 bytes each: 200 MB at most.
    static constexpr std::size_t default_entries = std::size_t{1} << 24;

    [[nodiscard]] const SearchSpace& space() const { return *space_; }
    [[nodiscard]] const std::shared_ptr<const SearchSpace>& shared_space() const { return space_; }
    [[nodiscard]] const Budget& budget() const { return budget_; }
    [[nodiscard]] const CountingTable& table() const { return *table_; }
    [[nodiscard]] const BoundSums& bounds() const { return *bounds_; }

    // False when the exact table would have more than `most_entries`, as several bounds with many
    // different costs can. Then the table is a coarser one that holds every feasible architecture
    // and some more, and what is drawn from it is checked: sample stays exactly uniform, but count,
    // rank and unrank throw Error. CONTRIBUTING.md says what this costs.
    [[nodiscard]] bool exact() const { return exact_; }
    [[nodiscard]] Wide count() const;
    [[nodiscard]] Wide at_most() const;  // the size of the table's set: the count, if exact
    // The index-th of the table's set, feasible or not; index < at_most().
    void walk(Wide index, GenomeSpan genome) const;
    // A genome that is valid and inside the budget.
    [[nodiscard]] bool contains(GenomeView genome) const;
    // Allowed by the space's "require" and inside the budget; the genome must be valid otherwise.
    bool fits(const Gene8* genome) const;

    // False where uniform choices would need weights of more than 128 bits; to sample so throws
    // Error then.
    [[nodiscard]] bool can_weigh() const { return !weight_before_.empty(); }

    // One exact draw.
    void sample(Rng& rng, Uniform uniform, GenomeSpan genome) const;

    // The order of enumeration: global genes first, then the bounded costs' sums over layers, then
    // the layers, all ascending (genes by the index of their value). rank throws Error for an
    // architecture outside the budget.
    [[nodiscard]] Wide rank(GenomeView genome) const;
    void unrank(Wide index, GenomeSpan genome) const;

    [[nodiscard]] std::uint64_t fingerprint() const;  // of the space and the budget

  private:
    void build_table(std::size_t most_entries);
    void weigh_roots();
    void multiply_roots();
    [[nodiscard]] bool holds_any() const;
    void draw(Rng& rng, Uniform uniform, GenomeSpan genome) const;
    void require_exact(const char* what) const;

    std::shared_ptr<const SearchSpace> space_;
    Budget budget_;
    bool exact_ = true;
    std::unique_ptr<const CountingTable> table_;
    std::unique_ptr<const BoundSums> bounds_;
    std::vector<Wide> root_before_;  // architectures before each root, size + 1
    // Of each root: weight of one architecture when choices are uniform.
    std::vector<Wide> multiplicity_;
    std::vector<Wide> weight_before_;  // as root_before_, so weighted; empty when it overflows
};

}  // namespace hytas
