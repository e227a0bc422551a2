// The first half of building a counting table: which levels, with which windows.
#include <algorithm>
#include <limits>

#include "table_builder.hpp"

namespace hytas {

Window Step::range() const {
    Window range;
    for (std::size_t option = 0; option < adds.size(); ++option)
        if (!excluded[option]) range.widen({adds[option], adds[option]});
    return range;
}

void TableBuilder::set_dimensions(const std::vector<Bound>& bounds) {
    Sums most;
    for (const Bound& bound : bounds) {
        const std::size_t index = space_.cost_index(bound.cost);
        const CostTable& cost = space_.costs()[index];
        Dimension dimension{index, bound.lower, bound.upper, cost.combine == Combine::maximum, 1};
        std::int64_t largest = 0;
        for (std::size_t g = 0; g < cost.groups.size(); ++g) {
            const auto& values = cost.groups[g].values;
            const auto layers = static_cast<std::int64_t>(space_.groups()[g].most_layers);
            largest +=
                layers * (dimension.maximum ? 1 : *std::max_element(values.begin(), values.end()));
        }
        const std::int64_t units = units_.empty() ? 0 : units_[table_.dimensions_.size()];
        if (units > 0 && !dimension.maximum)
            dimension.grain = std::max<std::int64_t>(1, largest / units);
        table_.dimensions_.push_back(dimension);
        most.push_back(largest / dimension.grain);
    }
    table_.packing_ = SumPacking(most);
}

// Rows tell apart the combinations whose layers from a group on differ in a bounded cost, or in
// their number.
void TableBuilder::set_projections() {
    const auto& groups = space_.groups();
    std::vector<bool> used(space_.global_slots(), false);
    projections_.resize(groups.size());
    for (std::size_t g = groups.size(); g-- > 0;) {
        for (const Dimension& dimension : table_.dimensions_) {
            const LayerCosts& layers = space_.costs()[dimension.cost].groups[g];
            for (const Projection::Term& term : layers.projection.terms) used[term.slot] = true;
            if (layers.layers > 1) used[groups[g].depth_slot] = true;
        }
        Projection& projection = projections_[g];
        for (std::size_t slot = 0; slot < used.size(); ++slot) {
            if (!used[slot]) continue;
            projection.terms.push_back({slot, projection.rows});
            projection.rows *= space_.values_of_slot(slot).size();
        }
        used[groups[g].depth_slot] = true;  // for the groups before
    }
}

// The window that the layers must hit, given the global genes. False: no layers can make it.
bool TableBuilder::root_window(std::size_t combination, Window& window) const {
    window.floor.clear();
    window.cap.clear();
    std::int64_t layers = 0;
    for (const LayerGroup& group : space_.groups())
        layers += static_cast<std::int64_t>(group.depth(space_.combinations().genes(combination)));
    for (const Dimension& dimension : table_.dimensions_) {
        const std::int64_t global = space_.costs()[dimension.cost].global[combination];
        if (global > dimension.upper) return false;
        if (dimension.maximum) {
            window.floor.push_back(global >= dimension.lower ? 0 : 1);
            window.cap.push_back(std::numeric_limits<std::int64_t>::max());
        } else {
            // Rounding down takes less than one unit from each layer.
            const std::int64_t lost = dimension.grain == 1 ? 0 : layers;
            window.floor.push_back(
                std::max<std::int64_t>(0, (dimension.lower - global) / dimension.grain - lost));
            window.cap.push_back((dimension.upper - global) / dimension.grain);
        }
    }
    return true;
}

Step TableBuilder::joint_step(const Gene8* genome, std::size_t group, std::size_t layer) const {
    const LayerGroup& layers = space_.groups()[group];
    Step step;
    step.genes = layers.genes.size();
    step.adds.assign(layers.options, Sums(table_.dimensions_.size()));
    step.excluded.assign(layers.options, false);
    for (std::size_t d = 0; d < table_.dimensions_.size(); ++d) {
        const Dimension& dimension = table_.dimensions_[d];
        const LayerCosts& costs = space_.costs()[dimension.cost].groups[group];
        const std::int64_t* values = costs.of(costs.projection.row(genome), layer);
        for (std::size_t option = 0; option < layers.options; ++option) {
            if (dimension.maximum && values[option] > dimension.upper) step.excluded[option] = true;
            step.adds[option][d] =
                dimension.maximum
                    ? (dimension.lower > 0 && values[option] >= dimension.lower ? 1 : 0)
                    : values[option] / dimension.grain;
        }
    }
    return step;
}

// Costs that add up gene by gene are decided gene by gene: 4 + 6 options a layer instead of 4 * 6.
bool TableBuilder::separate(const Step& joint, const LayerGroup& group,
                            std::vector<Step>& steps) const {
    if (std::find(joint.excluded.begin(), joint.excluded.end(), true) != joint.excluded.end())
        return false;
    const std::size_t dimensions = table_.dimensions_.size();
    const Sums& base = joint.adds[0];
    std::size_t stride = joint.adds.size();
    for (std::size_t i = 0; i < group.radix.size(); ++i) {
        stride /= group.radix[i];
        Step step;
        step.first_gene = i;
        for (std::size_t value = 0; value < group.radix[i]; ++value)
            step.adds.push_back(joint.adds[value * stride]);
        step.excluded.assign(group.radix[i], false);
        // Each gene adds at least 0, the first also what all share, so that sums only grow.
        Sums lowest = step.range().floor;
        for (Sums& add : step.adds)
            for (std::size_t d = 0; d < dimensions; ++d) add[d] -= lowest[d];
        if (i == 0) {
            for (Sums& add : step.adds)
                for (std::size_t d = 0; d < dimensions; ++d) add[d] += lowest[d];
        } else {
            for (Sums& add : steps[0].adds)
                for (std::size_t d = 0; d < dimensions; ++d) add[d] += lowest[d] - base[d];
        }
        steps.push_back(std::move(step));
    }
    for (std::size_t option = 0; option < joint.adds.size(); ++option) {
        std::size_t rest = option;
        Sums total(dimensions, 0);
        for (std::size_t i = group.radix.size(); i-- > 0; rest /= group.radix[i])
            for (std::size_t d = 0; d < dimensions; ++d)
                total[d] += steps[i].adds[rest % group.radix[i]][d];
        if (total != joint.adds[option]) return false;
    }
    // What the genes share must not make the first one negative.
    for (const Sums& add : steps[0].adds)
        if (std::any_of(add.begin(), add.end(), [](std::int64_t value) { return value < 0; }))
            return false;
    return true;
}

std::vector<Step> TableBuilder::steps_of(const Gene8* genome, std::size_t group,
                                         std::size_t layer) const {
    const Step joint = joint_step(genome, group, layer);
    std::vector<Step> steps;
    if (separate(joint, space_.groups()[group], steps)) return steps;
    return {joint};
}

// Plan 0 is "nothing left". Plans are made after the ones they lead to, so their order is an order
// of construction.
std::size_t TableBuilder::plan(const Gene8* genome, std::size_t group, std::size_t left) {
    while (left == 0) {
        if (++group >= space_.groups().size()) return 0;
        left = space_.groups()[group].depth(genome);
    }
    const PlanKey key{group, projections_[group].row(genome), left};
    const auto found = plan_of_.find(key);
    if (found != plan_of_.end()) return found->second;
    LayerPlan made;
    made.group = group;
    made.next = plan(genome, group, left - 1);
    const std::size_t depth = space_.groups()[group].depth(genome);
    made.steps = steps_of(genome, group, depth - left);
    const LayerPlan& next = plans_[made.next];
    Sums zero(table_.dimensions_.size(), 0);
    made.layer = {zero, zero};
    made.possible = next.possible;
    for (const Step& step : made.steps) {
        const Window range = step.range();
        const bool none =
            std::find(step.excluded.begin(), step.excluded.end(), false) == step.excluded.end();
        made.possible = made.possible && !none;
        for (std::size_t d = 0; d < zero.size() && !none; ++d) {
            made.layer.floor[d] += range.floor[d];
            made.layer.cap[d] += range.cap[d];
        }
    }
    made.suffix = made.layer;
    for (std::size_t d = 0; d < zero.size(); ++d) {
        made.suffix.floor[d] += next.suffix.floor[d];
        made.suffix.cap[d] += next.suffix.cap[d];
    }
    plans_.push_back(std::move(made));
    plan_of_[key] = plans_.size() - 1;
    return plans_.size() - 1;
}

void TableBuilder::plan_roots() {
    Sums zero(table_.dimensions_.size(), 0);
    LayerPlan nothing;
    nothing.layer = nothing.suffix = {zero, zero};
    plans_.push_back(std::move(nothing));
    Window window;
    for (std::size_t combination = 0; combination < space_.combinations().size(); ++combination) {
        if (!root_window(combination, window)) continue;
        const Gene8* genes = space_.combinations().genes(combination);
        const std::size_t first =
            plan(genes, 0, space_.groups().empty() ? 0 : space_.groups()[0].depth(genes));
        LayerPlan& top = plans_[first];
        for (std::size_t d = 0; d < zero.size(); ++d) {
            window.floor[d] = std::max(window.floor[d], top.suffix.floor[d]);
            window.cap[d] = std::min(window.cap[d], top.suffix.cap[d]);
        }
        if (!top.possible || window.empty()) continue;
        Root root;
        root.combination = combination;
        table_.roots_.push_back(root);
        root_plans_.push_back(first);
        root_windows_.insert(root_windows_.end(), window.floor.begin(), window.floor.end());
        root_windows_.insert(root_windows_.end(), window.cap.begin(), window.cap.end());
        if (!zero.empty()) top.wanted.widen(window);
    }
}

void TableBuilder::spread_windows() {
    for (std::size_t i = plans_.size(); i-- > 1;) {
        const LayerPlan& here = plans_[i];
        LayerPlan& next = plans_[here.next];
        if (here.wanted.floor.empty()) continue;
        Window window = here.wanted;
        for (std::size_t d = 0; d < window.floor.size(); ++d) {
            window.floor[d] = std::max(window.floor[d] - here.layer.cap[d], next.suffix.floor[d]);
            window.cap[d] = std::min(window.cap[d] - here.layer.floor[d], next.suffix.cap[d]);
        }
        next.wanted.widen(window);
    }
}

}  // namespace hytas
