#include "hytas/feasible.hpp"

#include <algorithm>

#include "bound_sums.hpp"
#include "counting_table.hpp"
#include "hytas/error.hpp"
#include "refusal.hpp"
#include "table_walk.hpp"
#include "text.hpp"

namespace hytas {

namespace {
constexpr std::int64_t most_draws = 1000000;
}

Uniform uniform_named(const std::string& name) {
    if (name == "architectures") return Uniform::architectures;
    if (name == "choices") return Uniform::choices;
    throw Error("uniform " + quoted(name) +
                ": must be architectures (each one equally likely) or choices (each gene uniform)");
}

Feasible::Feasible(std::shared_ptr<const SearchSpace> space, Budget budget,
                   std::size_t most_entries)
    : space_(std::move(space)), budget_(std::move(budget)) {
    for (const Bound& bound : budget_.bounds()) {
        const std::string& unit = space_->costs()[space_->cost_index(bound.cost)].unit;
        if (bound.cost.starts_with("latency@") && bound.plain == (unit == "ns"))
            throw Error("budget " + bound.text() + ": the table is in " +
                        (bound.plain ? "a unit of time; name one (ns, us, ms, s)"
                                     : unit.substr(5) + ", not in time; write a plain number"));
    }
    build_table(most_entries);
    if (table_->total() == 0) refuse(*space_, budget_, most_entries);
    bounds_ = std::make_unique<const BoundSums>(*space_, table_->dimensions());
    weigh_roots();
    if (!exact_ && !holds_any())
        throw Error("budget " + budget_.text() + ": no architecture of " + space_->name() +
                    " found that meets all bounds together, among " +
                    (at_most() <= static_cast<Wide>(most_draws)
                         ? "all " + to_text(at_most()) + " that may"
                         : with_commas(most_draws) + " draws"));
}

void Feasible::build_table(std::size_t most_entries) {
    const std::size_t bounds = budget_.bounds().size();
    const auto build = [&](std::vector<std::int64_t> units) {
        try {
            auto table = std::make_unique<const CountingTable>(*space_, budget_.bounds(),
                                                               most_entries, std::move(units));
            // Every table holds all that is feasible, so the smallest holds least that is not.
            if (table_ == nullptr || table->total() < table_->total()) table_ = std::move(table);
            return true;
        } catch (const TableTooLarge&) {
            return false;
        }
    };
    exact_ = build({});
    if (exact_) return;
    // Ever coarser units, first of all bounds, then of one beside exact ones; one unit is no bound
    // at all.
    const auto coarsen = [&](const auto& units_of) {
        for (const std::int64_t units : {16384, 2048, 512, 128, 32, 8, 1})
            if (build(units_of(units))) return;
    };
    coarsen([&](std::int64_t units) { return std::vector<std::int64_t>(bounds, units); });
    for (std::size_t coarse = 0; coarse < bounds && bounds > 1; ++coarse)
        coarsen([&](std::int64_t units) {
            std::vector<std::int64_t> one(bounds, 0);
            one[coarse] = units;
            return one;
        });
    if (table_ == nullptr)
        throw Error("most_entries " + std::to_string(most_entries) +
                    ": is too small for any table of space " + space_->name());
}

void Feasible::weigh_roots() {
    root_before_.push_back(0);
    for (const Root& root : table_->roots())
        root_before_.push_back(root_before_.back() + root.count);
    try {
        multiply_roots();
        weight_before_.push_back(0);
        for (std::size_t i = 0; i < multiplicity_.size(); ++i)
            weight_before_.push_back(
                checked_add(weight_before_.back(),
                            checked_multiply(table_->roots()[i].count, multiplicity_[i])));
    } catch (const Error&) {
        weight_before_.clear();
    }
}

// The weight of one architecture of each root when choices are uniform: genes of layers that it
// does not have were drawn as well. Layers that no root has would count for all alike, so they are
// left out.
void Feasible::multiply_roots() {
    std::vector<std::size_t> deepest(space_->groups().size(), 0);
    for (const Root& root : table_->roots())
        for (std::size_t g = 0; g < deepest.size(); ++g)
            deepest[g] =
                std::max(deepest[g],
                         space_->groups()[g].depth(space_->combinations().genes(root.combination)));
    for (const Root& root : table_->roots()) {
        const Gene8* genes = space_->combinations().genes(root.combination);
        Wide multiplicity = 1;
        for (std::size_t g = 0; g < deepest.size(); ++g)
            for (std::size_t layer = space_->groups()[g].depth(genes); layer < deepest[g]; ++layer)
                multiplicity = checked_multiply(multiplicity, space_->groups()[g].options);
        for (const Gene& gene : space_->genes())
            if (!gene.weights.empty())
                multiplicity = checked_multiply(multiplicity, gene.weights[genes[gene.slot]]);
        multiplicity_.push_back(multiplicity);
    }
}

// Of a coarse table: looks at all of a small set, and at draws of a large one.
bool Feasible::holds_any() const {
    Genome genome(space_->genome_length());
    if (at_most() <= static_cast<Wide>(most_draws)) {
        for (Wide i = 0; i < at_most(); ++i) {
            walk(i, genome);
            if (fits(genome.data())) return true;
        }
        return false;
    }
    Rng rng(0);
    for (std::int64_t i = 0; i < most_draws; ++i) {
        draw(rng, Uniform::architectures, genome);
        if (fits(genome.data())) return true;
    }
    return false;
}

void Feasible::require_exact(const char* what) const {
    if (!exact_)
        throw Error(std::string(what) + ": the exact table of " + space_->name() + " with " +
                    budget_.text() + " is too large; at most " + to_text(at_most()) +
                    " architectures fit, and may still be sampled and searched");
}

Feasible::~Feasible() = default;
Feasible::Feasible(Feasible&&) noexcept = default;
Feasible& Feasible::operator=(Feasible&&) noexcept = default;

Wide Feasible::count() const {
    require_exact("count");
    return table_->total();
}

Wide Feasible::at_most() const { return table_->total(); }

bool Feasible::fits(const Gene8* genome) const { return bounds_->fit(genome); }

bool Feasible::contains(GenomeView genome) const {
    return space_->valid(genome) && fits(genome.data());
}

namespace {

// The last entry that is at most `index`.
std::size_t locate(const std::vector<Wide>& before, Wide index) {
    return static_cast<std::size_t>(std::upper_bound(before.begin(), before.end(), index) -
                                    before.begin()) -
           1;
}

}  // namespace

void Feasible::walk(Wide index, GenomeSpan genome) const {
    const std::size_t at = locate(root_before_, index);
    const Root& root = table_->roots()[at];
    std::fill(genome.begin(), genome.end(), Gene8{0});
    space_->combinations().write(root.combination, genome.data());
    walk_down(*table_, *space_, root, index - root_before_[at], genome.data());
}

void Feasible::unrank(Wide index, GenomeSpan genome) const {
    if (index >= count())
        throw Error("rank " + to_text(index) + ": must be below the count, " + to_text(count()));
    walk(index, genome);
}

void Feasible::draw(Rng& rng, Uniform uniform, GenomeSpan genome) const {
    if (uniform == Uniform::architectures) {
        walk(rng.below_wide(at_most()), genome);
        return;
    }
    if (weight_before_.empty())
        throw Error("uniform 'choices': its weights need more than 128 bits in space " +
                    space_->name());
    const Wide draw = rng.below_wide(weight_before_.back());
    const std::size_t at = locate(weight_before_, draw);
    const Root& root = table_->roots()[at];
    std::fill(genome.begin(), genome.end(), Gene8{0});
    space_->combinations().write(root.combination, genome.data());
    walk_down(*table_, *space_, root, (draw - weight_before_[at]) / multiplicity_[at],
              genome.data());
}

void Feasible::sample(Rng& rng, Uniform uniform, GenomeSpan genome) const {
    // Rejection keeps the distribution exact: every feasible architecture is in the coarse set,
    // with the same weight.
    for (std::int64_t i = 0; i < most_draws; ++i) {
        draw(rng, uniform, genome);
        if (exact_ || fits(genome.data())) return;
    }
    throw Error("sample: " + with_commas(most_draws) + " draws from the coarse table of " +
                space_->name() + " held no architecture inside " + budget_.text());
}

Wide Feasible::rank(GenomeView genome) const {
    require_exact("rank");
    space_->check(genome);
    const Root* root =
        fits(genome.data()) ? table_->root_of(space_->combinations().of(genome.data())) : nullptr;
    bool found = false;
    const Wide index = root == nullptr ? 0 : walk_up(*table_, *space_, *root, genome.data(), found);
    if (!found)
        throw Error("architecture " + space_->key(genome) + ": is not inside the budget " +
                    budget_.text());
    return root_before_[static_cast<std::size_t>(root - table_->roots().data())] + index;
}

std::uint64_t Feasible::fingerprint() const {
    return hytas::fingerprint(std::to_string(space_->fingerprint()) + "|" + budget_.text());
}

}  // namespace hytas
