#include "bound_sums.hpp"

namespace hytas {

namespace {

// The sum over the layers of one group. One loop a number of genes: this is the innermost loop of every search.
template <std::size_t genes>
std::int64_t sum_layers(const LayerGroup& group, const std::int64_t* values, std::size_t stride, const Gene8* at, std::size_t depth) {
    std::int64_t total = 0;
    const std::size_t second = genes > 1 ? group.radix[1] : 1;
    const std::size_t third = genes > 2 ? group.radix[2] : 1;
    for (std::size_t layer = 0; layer < depth; ++layer, at += genes, values += stride) {
        std::size_t option = at[0];
        if constexpr (genes > 1) option = option * second + at[1];
        if constexpr (genes > 2) option = option * third + at[2];
        total += values[option];
    }
    return total;
}

std::int64_t sum_group(const LayerGroup& group, const LayerCosts& costs, const Gene8* genome) {
    const std::size_t depth = group.depth(genome);
    const std::size_t stride = costs.layers == 1 ? 0 : costs.options;
    const std::int64_t* values = costs.of(costs.projection.row(genome), 0);
    const Gene8* at = genome + group.offset;
    switch (group.radix.size()) {
        case 1: return sum_layers<1>(group, values, stride, at, depth);
        case 2: return sum_layers<2>(group, values, stride, at, depth);
        case 3: return sum_layers<3>(group, values, stride, at, depth);
        default: break;
    }
    std::int64_t total = 0;
    for (std::size_t layer = 0; layer < depth; ++layer, at += group.radix.size(), values += stride) total += values[group.option(at)];
    return total;
}

LayerCosts counted(const LayerCosts& costs, BoundSum::Kind kind, const Dimension& dimension) {
    LayerCosts counts = costs;
    for (std::int64_t& value : counts.values)
        value = kind == BoundSum::Kind::exceeding ? (value > dimension.upper ? 1 : 0) : (value >= dimension.lower ? 1 : 0);
    return counts;
}

}  // namespace

BoundSums::BoundSums(const SearchSpace& space, const std::vector<Dimension>& dimensions) : space_(space) {
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
}

std::int64_t BoundSums::over_layers(const BoundSum& sum, const Gene8* genome) const {
    std::int64_t total = 0;
    for (std::size_t g = 0; g < sum.groups.size(); ++g) total += sum_group(space_.groups()[g], *sum.groups[g], genome);
    return total;
}

bool BoundSums::fit(const Gene8* genome) const {
    for (const BoundSum& sum : sums_) {
        std::int64_t floor = 0;
        std::int64_t cap = 0;
        if (!sum.window(genome, floor, cap)) return false;
        const std::int64_t total = over_layers(sum, genome);
        if (total < floor || total > cap) return false;
    }
    return true;
}

}  // namespace hytas
