#include "refusal.hpp"

#include <algorithm>
#include <optional>

#include "counting_table.hpp"
#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

// The smallest (or largest) cost of a space, whatever else holds.
std::int64_t extreme(const SearchSpace& space, const CostTable& cost, bool largest) {
    const auto better = [largest](std::int64_t left, std::int64_t right) {
        return largest ? std::max(left, right) : std::min(left, right);
    };
    std::optional<std::int64_t> best;
    for (std::size_t i = 0; i < space.combinations().size(); ++i) {
        const Gene8* genes = space.combinations().genes(i);
        std::int64_t total = cost.global[i];
        for (std::size_t g = 0; g < cost.groups.size(); ++g) {
            const LayerCosts& layers = cost.groups[g];
            const std::size_t row = layers.projection.row(genes);
            for (std::size_t layer = 0; layer < space.groups()[g].depth(genes); ++layer) {
                const std::int64_t* values = layers.of(row, layer);
                const auto [low, high] = std::minmax_element(values, values + layers.options);
                total = cost.join(total, largest ? *high : *low);
            }
        }
        best = best ? better(*best, total) : total;
    }
    return *best;
}

// The extreme of bound `at` among all architectures inside the bounds, found in the states at the
// roots.
std::optional<std::int64_t> extreme_in(const SearchSpace& space, const std::vector<Bound>& bounds,
                                       std::size_t at, bool largest, std::size_t most_entries) {
    const CountingTable table(space, bounds, most_entries);
    const CostTable& cost = space.costs()[space.cost_index(bounds[at].cost)];
    std::optional<std::int64_t> best;
    for (const Root& root : table.roots()) {
        const std::int64_t global = cost.global[root.combination];
        for (std::size_t i = 0; i < root.size(); ++i) {
            const std::int64_t total =
                global + table.packing().get(root.level->sums[root.state(i)], at);
            best = !best ? total : largest ? std::max(*best, total) : std::min(*best, total);
        }
    }
    return best;
}

// The feasible cost nearest to one end of a bound, outside it, with the other bounds kept: windows
// that double in width keep the tables small.
std::optional<std::int64_t> beyond(const SearchSpace& space, std::vector<Bound> bounds,
                                   std::size_t at, bool above, std::size_t most_entries) {
    const CostTable& cost = space.costs()[space.cost_index(bounds[at].cost)];
    const Bound given = bounds[at];
    const std::int64_t end = above ? extreme(space, cost, true) : extreme(space, cost, false);
    for (std::int64_t width = 1024;; width *= 4) {
        Bound& bound = bounds[at];
        bound.lower = above ? given.upper + 1 : std::max<std::int64_t>(end, given.lower - width);
        bound.upper = above ? std::min(end, given.upper + width) : given.lower - 1;
        if (bound.lower > bound.upper) return std::nullopt;
        const auto found = extreme_in(space, bounds, at, !above, most_entries);
        if (found) return found;
        if (above ? bound.upper >= end : bound.lower <= end) return std::nullopt;
    }
}

// The same for a maximum, which has no sums to read it from: the edge of the largest empty window,
// by halving.
std::optional<std::int64_t> maximum_beyond(const SearchSpace& space, std::vector<Bound> bounds,
                                           std::size_t at, bool above, std::size_t most_entries) {
    const CostTable& cost = space.costs()[space.cost_index(bounds[at].cost)];
    const Bound given = bounds[at];
    const auto holds = [&](std::int64_t lower, std::int64_t upper) {
        bounds[at].lower = lower;
        bounds[at].upper = upper;
        return CountingTable(space, bounds, most_entries).total() > 0;
    };
    // No architecture from the window up to here.
    std::int64_t near = above ? given.upper : given.lower;
    std::int64_t far = extreme(space, cost, above);  // some up to here, if any
    if (above ? far <= near || !holds(near + 1, far) : far >= near || !holds(far, near - 1))
        return std::nullopt;
    while (above ? far - near > 1 : near - far > 1) {
        const std::int64_t middle = near + (far - near) / 2;
        (above ? holds(given.upper + 1, middle) : holds(middle, given.lower - 1)) ? far = middle
                                                                                  : near = middle;
    }
    return far;
}

std::string nearest_costs(const SearchSpace& space, const std::vector<Bound>& bounds,
                          std::size_t at, std::size_t most_entries) {
    const Bound& bound = bounds[at];
    const bool maximum = space.costs()[space.cost_index(bound.cost)].combine == Combine::maximum;
    const auto nearest = maximum ? maximum_beyond : beyond;
    const auto spoken = [&bound](std::int64_t value) {
        return spoken_amount(bound.cost, value, bound.plain);
    };
    try {
        const auto low = nearest(space, bounds, at, false, most_entries);
        const auto high = nearest(space, bounds, at, true, most_entries);
        if (low && high)
            return "the nearest have " + spoken(*low) + " below and " + spoken(*high) + " above";
        if (low) return "the nearest has " + spoken(*low);
        if (high) return "the nearest has " + spoken(*high);
    } catch (const TableTooLarge&) {
        return "";  // no nearest cost can be named then, but the refusal itself stands
    }
    return "";
}

bool alone_is_empty(const SearchSpace& space, const Bound& bound, std::size_t most_entries) {
    try {
        return CountingTable(space, {bound}, most_entries).total() == 0;
    } catch (const TableTooLarge&) {
        return false;  // not known
    }
}

// Where no bound can be moved so that the others hold: those that cannot be met even alone, or that
// all can.
std::string why_not_together(const SearchSpace& space, const std::vector<Bound>& bounds,
                             std::size_t most_entries) {
    std::vector<std::string> hints;
    for (const Bound& bound : bounds) {
        const std::string near = alone_is_empty(space, bound, most_entries)
                                     ? nearest_costs(space, {bound}, 0, most_entries)
                                     : "";
        if (!near.empty()) hints.push_back("of " + bound.text() + " alone " + near);
    }
    return hints.empty() ? "each bound can be met, but not all together" : join(hints, "; ");
}

}  // namespace

void refuse(const SearchSpace& space, const Budget& budget, std::size_t most_entries) {
    const std::string start =
        "budget " + budget.text() + ": no architecture of " + space.name() + " fits; ";
    std::vector<std::string> hints;
    for (std::size_t at = 0; at < budget.bounds().size(); ++at) {
        const Bound& bound = budget.bounds()[at];
        const CostTable& cost = space.costs()[space.cost_index(bound.cost)];
        const std::int64_t least = extreme(space, cost, false);
        const std::int64_t most = extreme(space, cost, true);
        if (bound.upper < least)
            throw Error(start + "the smallest has " +
                        spoken_amount(bound.cost, least, bound.plain));
        if (bound.lower > most)
            throw Error(start + "the largest has " + spoken_amount(bound.cost, most, bound.plain));
        const std::string near = nearest_costs(space, budget.bounds(), at, most_entries);
        if (!near.empty()) hints.push_back(near);
    }
    if (hints.empty()) throw Error(start + why_not_together(space, budget.bounds(), most_entries));
    throw Error(start + (budget.bounds().size() > 1 ? "with the other bounds kept, " : "") +
                join(hints, "; or "));
}

}  // namespace hytas
