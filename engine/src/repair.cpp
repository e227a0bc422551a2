#include "hytas/repair.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "bound_sums.hpp"
#include "counting_table.hpp"

namespace hytas {

namespace {

constexpr std::uint16_t unreachable = std::numeric_limits<std::uint16_t>::max();

// Below each state of one level: the fewest changes to the end, and the number of ways to make exactly so few.
struct Distances {
    const Level* level = nullptr;
    std::size_t layer = 0;              // byte of its layer in the genome
    std::vector<std::uint16_t> fewest;  // unreachable: not visited
    std::vector<Wide> ways;
    std::vector<std::uint16_t> changes;  // of each option, against the child's own genes
};

// One gene of one layer set to another value.
struct Change {
    std::size_t byte;
    std::size_t layer;  // byte of the layer's first gene
    Gene8 value;
};

std::uint16_t changes_of(const LayerGroup& group, const Level& level, std::size_t option, const Gene8* layer) {
    if (level.genes == 1) return option == layer[level.first_gene] ? 0 : 1;
    std::uint16_t changes = 0;
    for (std::size_t i = level.genes; i-- > 0; option /= group.radix[i])
        changes = static_cast<std::uint16_t>(changes + (option % group.radix[i] == layer[i] ? 0 : 1));
    return changes;
}

void set_option(const LayerGroup& group, const Level& level, std::size_t option, Gene8* layer) {
    if (level.genes == 1) {
        layer[level.first_gene] = static_cast<Gene8>(option);
        return;
    }
    for (std::size_t i = level.genes; i-- > 0; option /= group.radix[i]) layer[i] = static_cast<Gene8>(option % group.radix[i]);
}

}  // namespace

struct Repair::Scratch {
    std::vector<std::int64_t> floor;
    std::vector<std::int64_t> cap;
    std::vector<std::int64_t> total;   // of the child, one a bound
    std::vector<std::int64_t> deltas;  // [change * bounds + bound]
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;
    std::vector<Change> changes;
    std::vector<Distances> distances;  // the first `used` of them count
    std::size_t used = 0;
    std::vector<std::size_t> nearest;
    Genome genome;
};

Repair::Repair(const Feasible& feasible) : feasible_(&feasible), scratch_(std::make_unique<Scratch>()) {
    const std::size_t bounds = feasible.bounds().all().size();
    scratch_->floor.resize(bounds);
    scratch_->cap.resize(bounds);
    scratch_->total.resize(bounds);
    scratch_->genome.resize(feasible.space().genome_length());
}

Repair::~Repair() = default;
Repair::Repair(Repair&&) noexcept = default;
Repair& Repair::operator=(Repair&&) noexcept = default;

std::size_t Repair::operator()(Rng& rng, Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const std::size_t combination = space.combination_of(child);
    if (space.allowed(combination) && feasible_->fits(child)) return 0;
    std::size_t changed = 0;
    if (feasible_->table().root_of(combination) == nullptr) {
        changed = change_global(rng, child);
        if (feasible_->fits(child)) return changed;
    }
    const bool listed = list_changes(child);
    if (listed && change_one(rng, child)) return changed + 1;
    if (listed && change_two(rng, child)) return changed + 2;
    return changed + change_fewest(rng, child);
}

std::size_t Repair::change_global(Rng& rng, Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const auto& roots = feasible_->table().roots();
    Genome& other = scratch_->genome;
    std::size_t fewest = space.global_slots() + 1;
    Wide weight = 0;
    scratch_->nearest.clear();
    for (std::size_t i = 0; i < roots.size(); ++i) {
        space.write_combination(roots[i].combination, other);
        std::size_t distance = 0;
        for (std::size_t slot = 0; slot < space.global_slots(); ++slot) distance += other[slot] == child[slot] ? 0 : 1;
        if (distance > fewest) continue;
        if (distance < fewest) {
            fewest = distance;
            weight = 0;
            scratch_->nearest.clear();
        }
        scratch_->nearest.push_back(i);
        weight += roots[i].count;
    }
    Wide draw = rng.below_wide(weight);
    std::size_t pick = 0;
    while (draw >= roots[scratch_->nearest[pick]].count) draw -= roots[scratch_->nearest[pick++]].count;
    std::copy(child, child + space.genome_length(), other.begin());
    space.write_combination(roots[scratch_->nearest[pick]].combination, {child, space.genome_length()});
    for (const LayerGroup& group : space.groups()) {
        const std::size_t had = group.depth(other.data()) * group.radix.size();
        const std::size_t has = group.depth(child) * group.radix.size();
        for (std::size_t i = had; i < has; ++i) child[group.offset + i] = static_cast<Gene8>(rng.below(group.radix[i % group.radix.size()]));
        for (std::size_t i = has; i < had; ++i) child[group.offset + i] = 0;
    }
    return fewest;
}

// Every change of one gene of a layer, with what it adds to each bound. False when a bound has no window at all.
bool Repair::list_changes(Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const std::vector<BoundSum>& sums = feasible_->bounds().all();
    Scratch& scratch = *scratch_;
    for (std::size_t d = 0; d < sums.size(); ++d) {
        if (!sums[d].window(child, scratch.floor[d], scratch.cap[d])) return false;
        scratch.total[d] = feasible_->bounds().over_layers(sums[d], child);
    }
    scratch.changes.clear();
    scratch.deltas.clear();
    for (std::size_t g = 0; g < space.groups().size(); ++g) {
        const LayerGroup& group = space.groups()[g];
        const std::size_t depth = group.depth(child);
        for (std::size_t layer = 0; layer < depth; ++layer) {
            const std::size_t first = group.offset + layer * group.radix.size();
            const std::size_t own = group.option(child + first);
            std::size_t stride = group.options;
            for (std::size_t i = 0; i < group.radix.size(); ++i) {
                stride /= group.radix[i];
                const std::size_t base = own - child[first + i] * stride;
                for (std::size_t value = 0; value < group.radix[i]; ++value) {
                    if (value == child[first + i]) continue;
                    scratch.changes.push_back({first + i, first, static_cast<Gene8>(value)});
                    for (const BoundSum& sum : sums) {
                        const std::int64_t* values = sum.groups[g]->of(sum.groups[g]->projection.row(child), layer);
                        scratch.deltas.push_back(values[base + value * stride] - values[own]);
                    }
                }
            }
        }
    }
    return true;
}

// Most children need one change: trying them all is far cheaper than walking the table.
bool Repair::change_one(Rng& rng, Gene8* child) {
    Scratch& scratch = *scratch_;
    const std::size_t bounds = scratch.total.size();
    scratch.pairs.clear();
    for (std::size_t i = 0; i < scratch.changes.size(); ++i) {
        bool fits = true;
        for (std::size_t d = 0; d < bounds && fits; ++d) {
            const std::int64_t sum = scratch.total[d] + scratch.deltas[i * bounds + d];
            fits = sum >= scratch.floor[d] && sum <= scratch.cap[d];
        }
        if (fits) scratch.pairs.emplace_back(static_cast<std::uint32_t>(i), 0);
    }
    if (scratch.pairs.empty()) return false;
    const Change& change = scratch.changes[scratch.pairs[rng.below(scratch.pairs.size())].first];
    child[change.byte] = change.value;
    return true;
}

// Two changes add up when they are in different layers; inside one layer the table of options knows.
bool Repair::change_two(Rng& rng, Gene8* child) {
    Scratch& scratch = *scratch_;
    const std::size_t bounds = scratch.total.size();
    scratch.pairs.clear();
    for (std::size_t i = 0; i < scratch.changes.size(); ++i) {
        for (std::size_t j = i + 1; j < scratch.changes.size(); ++j) {
            if (scratch.changes[i].byte == scratch.changes[j].byte) continue;
            bool fits = true;
            if (scratch.changes[i].layer == scratch.changes[j].layer) {
                fits = fits_with(scratch.changes[i].byte, scratch.changes[i].value, scratch.changes[j].byte, scratch.changes[j].value, child);
            } else {
                for (std::size_t d = 0; d < bounds && fits; ++d) {
                    const std::int64_t sum = scratch.total[d] + scratch.deltas[i * bounds + d] + scratch.deltas[j * bounds + d];
                    fits = sum >= scratch.floor[d] && sum <= scratch.cap[d];
                }
            }
            if (fits) scratch.pairs.emplace_back(static_cast<std::uint32_t>(i), static_cast<std::uint32_t>(j));
        }
    }
    if (scratch.pairs.empty()) return false;
    const auto [i, j] = scratch.pairs[rng.below(scratch.pairs.size())];
    child[scratch.changes[i].byte] = scratch.changes[i].value;
    child[scratch.changes[j].byte] = scratch.changes[j].value;
    return true;
}

bool Repair::fits_with(std::size_t first, Gene8 one, std::size_t second, Gene8 other, Gene8* child) const {
    const Gene8 was = std::exchange(child[first], one);
    const Gene8 had = std::exchange(child[second], other);
    const bool fits = feasible_->fits(child);
    child[first] = was;
    child[second] = had;
    return fits;
}

// Marks the states that the child's global genes can reach, then counts from the last level up.
void Repair::reach_states(const Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const Root& root = *feasible_->table().root_of(space.combination_of(child));
    auto& distances = scratch_->distances;
    std::size_t used = 0;
    std::size_t group = 0;
    std::size_t layer = space.groups().empty() ? 0 : space.groups()[0].offset;
    for (const Level* level = root.level;; level = level->next) {
        if (used == distances.size()) distances.emplace_back();
        Distances& here = distances[used++];
        here.level = level;
        here.fewest.assign(level->sums.size(), unreachable);
        here.ways.assign(level->sums.size(), 0);
        if (level->next == nullptr) break;
        if (level->group != group) {
            group = level->group;
            layer = space.groups()[group].offset;
        }
        here.layer = layer;
        here.changes.clear();
        for (std::size_t option = 0; option < level->options; ++option)
            here.changes.push_back(changes_of(space.groups()[group], *level, option, child + layer));
        if (level->ends_layer) layer += space.groups()[group].radix.size();
    }
    scratch_->used = used;
    for (std::size_t i = 0; i < root.size(); ++i) distances[0].fewest[root.state(i)] = 0;
    for (std::size_t k = 0; k + 1 < used; ++k)
        for (std::size_t state = 0; state < distances[k].fewest.size(); ++state) {
            if (distances[k].fewest[state] == unreachable) continue;
            for (std::size_t option = 0; option < distances[k].level->options; ++option) {
                const std::uint32_t below = distances[k].level->children[state * distances[k].level->options + option];
                if (below != no_state) distances[k + 1].fewest[below] = 0;
            }
        }
    distances[used - 1].ways[0] = 1;
    for (std::size_t k = used - 1; k-- > 0;) {
        Distances& here = distances[k];
        const Distances& next = distances[k + 1];
        for (std::size_t state = 0; state < here.fewest.size(); ++state) {
            if (here.fewest[state] == unreachable) continue;
            std::uint16_t fewest = unreachable;
            Wide ways = 0;
            for (std::size_t option = 0; option < here.level->options; ++option) {
                const std::uint32_t below = here.level->children[state * here.level->options + option];
                if (below == no_state) continue;
                const auto changes = static_cast<std::uint16_t>(here.changes[option] + next.fewest[below]);
                if (changes > fewest) continue;
                ways = changes < fewest ? next.ways[below] : ways + next.ways[below];
                fewest = changes;
            }
            here.fewest[state] = fewest;
            here.ways[state] = ways;
        }
    }
}

std::size_t Repair::change_fewest(Rng& rng, Gene8* child) {
    const SearchSpace& space = feasible_->space();
    reach_states(child);
    const auto& distances = scratch_->distances;
    const Root& root = *feasible_->table().root_of(space.combination_of(child));
    std::uint16_t fewest = unreachable;
    Wide ways = 0;
    for (std::size_t i = 0; i < root.size(); ++i) {
        const std::uint32_t state = root.state(i);
        if (distances[0].fewest[state] > fewest) continue;
        ways = distances[0].fewest[state] < fewest ? distances[0].ways[state] : ways + distances[0].ways[state];
        fewest = distances[0].fewest[state];
    }
    Wide draw = rng.below_wide(ways);
    std::size_t pick = 0;
    for (;; ++pick) {
        const std::uint32_t state = root.state(pick);
        if (distances[0].fewest[state] != fewest) continue;
        if (draw < distances[0].ways[state]) break;
        draw -= distances[0].ways[state];
    }
    std::uint32_t state = root.state(pick);
    for (std::size_t k = 0; k + 1 < scratch_->used; ++k) {
        const Distances& here = distances[k];
        const Distances& next = distances[k + 1];
        for (std::size_t option = 0;; ++option) {
            const std::uint32_t below = here.level->children[state * here.level->options + option];
            if (below == no_state || here.changes[option] + next.fewest[below] != here.fewest[state]) continue;
            if (draw >= next.ways[below]) {
                draw -= next.ways[below];
                continue;
            }
            set_option(space.groups()[here.level->group], *here.level, option, child + here.layer);
            state = below;
            break;
        }
    }
    return fewest;
}

}  // namespace hytas
