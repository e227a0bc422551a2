#include "bound_sums.hpp"

namespace hytas {

namespace {

// Above this the ends of all combinations of global genes would take longer to compute than most
// searches need them.
constexpr std::size_t most_tabulated = std::size_t{1} << 14;

// The sum over `layers` layers of one group. One loop a number of genes: this is the innermost loop
// of every search.
template <std::size_t genes>
std::int64_t sum_layers(const LayerGroup& group, const std::int64_t* values, std::size_t stride,
                        const Gene8* at, std::size_t layers) {
    std::int64_t total = 0;
    const std::size_t second = genes > 1 ? group.radix[1] : 1;
    const std::size_t third = genes > 2 ? group.radix[2] : 1;
#pragma GCC unroll 4
    for (std::size_t layer = 0; layer < layers; ++layer, at += genes, values += stride) {
        std::size_t option = at[0];
        if constexpr (genes > 1) option = option * second + at[1];
        if constexpr (genes > 2) option = option * third + at[2];
        total += values[option];
    }
    return total;
}

// From `values`, the costs of the first layer's options.
std::int64_t sum_group(const LayerGroup& group, const LayerCosts& costs, const std::int64_t* values,
                       const Gene8* genome, std::size_t layers) {
    const std::size_t stride = costs.layers == 1 ? 0 : costs.options;
    const Gene8* at = genome + group.offset;
    switch (group.radix.size()) {
        case 1: return sum_layers<1>(group, values, stride, at, layers);
        case 2: return sum_layers<2>(group, values, stride, at, layers);
        case 3: return sum_layers<3>(group, values, stride, at, layers);
        default: break;
    }
    std::int64_t total = 0;
    for (std::size_t layer = 0; layer < layers; ++layer, at += group.radix.size(), values += stride)
        total += values[group.option(at)];
    return total;
}

LayerCosts counted(const LayerCosts& costs, BoundSum::Kind kind, const Dimension& dimension) {
    LayerCosts counts = costs;
    for (std::int64_t& value : counts.values)
        value = kind == BoundSum::Kind::exceeding ? (value > dimension.upper ? 1 : 0)
                                                  : (value >= dimension.lower ? 1 : 0);
    return counts;
}

}  // namespace

BoundSums::BoundSums(const SearchSpace& space, const std::vector<Dimension>& dimensions)
    : space_(space) {
    for (const Dimension& dimension : dimensions) {
        const CostTable& cost = space.costs()[dimension.cost];
        std::vector<BoundSum::Kind> kinds = {BoundSum::Kind::sum};
        if (dimension.maximum) kinds = {BoundSum::Kind::exceeding};
        if (dimension.maximum && dimension.lower > 0) kinds.push_back(BoundSum::Kind::reaching);
        for (const BoundSum::Kind kind : kinds) {
            BoundSum sum{&cost, kind, dimension.lower, dimension.upper, {}};
            for (const LayerCosts& costs : cost.groups) {
                if (kind != BoundSum::Kind::sum) counts_.push_back(counted(costs, kind, dimension));
                sum.groups.push_back(kind == BoundSum::Kind::sum ? &costs : &counts_.back());
            }
            sums_.push_back(std::move(sum));
        }
    }
    tabulate();
}

std::int64_t BoundSums::over_layers(const BoundSum& sum, const Gene8* genome) const {
    std::int64_t total = 0;
    for (std::size_t g = 0; g < sum.groups.size(); ++g) {
        const LayerGroup& group = space_.groups()[g];
        const LayerCosts& costs = *sum.groups[g];
        total += sum_group(group, costs, costs.of(costs.projection.row(genome), 0), genome,
                           group.depth(genome));
    }
    return total;
}

// Padding is option 0, so summing all layers of the largest depth adds a known amount; then no loop
// depends on the depth.
BoundSums::Ends BoundSums::ends_of(const BoundSum& sum, std::size_t combination) const {
    Ends ends{};
    if (!sum.window(combination, ends.floor, ends.cap)) return {1, 0};
    const Gene8* genes = space_.combinations().genes(combination);
    std::int64_t padding = 0;
    for (std::size_t g = 0; g < sum.groups.size(); ++g) {
        const LayerGroup& group = space_.groups()[g];
        const LayerCosts& costs = *sum.groups[g];
        const std::size_t row = costs.projection.row(genes);
        for (std::size_t layer = group.depth(genes); layer < group.most_layers; ++layer)
            padding += costs.of(row, layer)[0];
    }
    return {ends.floor + padding, ends.cap + padding};
}

void BoundSums::tabulate() {
    const Combinations& combinations = space_.combinations();
    if (combinations.size() > most_tabulated) return;
    for (std::size_t combination = 0; combination < combinations.size(); ++combination) {
        for (const BoundSum& sum : sums_) {
            ends_.push_back(ends_of(sum, combination));
            for (const LayerCosts* costs : sum.groups)
                rows_.push_back(
                    costs->of(costs->projection.row(combinations.genes(combination)), 0));
        }
    }
}

bool BoundSums::fit(const Gene8* genome) const {
    const std::size_t combination = space_.combinations().of(genome);
    if (combination == Combinations::none) return false;
    if (ends_.empty()) {
        for (const BoundSum& sum : sums_) {
            const Ends ends = ends_of(sum, combination);
            std::int64_t total = 0;
            for (std::size_t g = 0; g < sum.groups.size(); ++g)
                total += sum_group(space_.groups()[g], *sum.groups[g],
                                   sum.groups[g]->of(sum.groups[g]->projection.row(genome), 0),
                                   genome, space_.groups()[g].most_layers);
            if (total < ends.floor || total > ends.cap) return false;
        }
        return true;
    }
    const std::size_t groups = space_.groups().size();
    const Ends* ends = ends_.data() + combination * sums_.size();
    const std::int64_t* const* rows = rows_.data() + combination * sums_.size() * groups;
    for (const BoundSum& sum : sums_) {
        std::int64_t total = 0;
        for (std::size_t g = 0; g < groups; ++g, ++rows)
            total += sum_group(space_.groups()[g], *sum.groups[g], *rows, genome,
                               space_.groups()[g].most_layers);
        if (total < ends->floor || total > ends->cap) return false;
        ++ends;
    }
    return true;
}

}  // namespace hytas
