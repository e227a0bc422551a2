#include "hytas/detail/repair.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "bound_sums.hpp"
#include "counting_table.hpp"

namespace hytas {

namespace {
// More than any number of changes, and still small enough to be added to.
constexpr std::uint32_t unreachable = std::numeric_limits<std::uint32_t>::max() / 2;
}  // namespace

// The states of one level that some state of a root leads to, numbered anew, so that a walk touches
// nothing else.
struct ReachedLevel {
    const Level* level = nullptr;
    std::size_t layer = 0;                // byte of its layer in the genome
    std::size_t size = 0;                 // states
    std::vector<std::uint32_t> children;  // [state * options + option] in the next level, its size
                                          // where the budget is left
};

// Below each state of one level, and below one more state that stands for all outside the budget:
// the fewest changes to the end, and the number of ways to make exactly so few.
template <class Count>
struct Distances {
    std::vector<std::uint32_t> fewest;
    std::vector<Count> ways;
    std::vector<std::uint32_t> changes;  // of each option, against the child's own genes
};

namespace {

// All roots' reached levels together, before the older ones are forgotten: 32 MB.
constexpr std::size_t most_reached = std::size_t{1} << 23;

// One gene of one layer set to another value.
struct Change {
    std::size_t byte;
    std::size_t layer;     // byte of the layer's first gene
    std::ptrdiff_t shift;  // of the layer's option
    Gene8 value;
};

std::uint32_t changes_of(const LayerGroup& group, const Level& level, std::size_t option,
                         const Gene8* layer) {
    if (level.genes == 1) return option == layer[level.first_gene] ? 0 : 1;
    std::uint32_t changes = 0;
    for (std::size_t i = level.genes; i-- > 0; option /= group.radix[i])
        changes += option % group.radix[i] == layer[i] ? 0 : 1;
    return changes;
}

void set_option(const LayerGroup& group, const Level& level, std::size_t option, Gene8* layer) {
    if (level.genes == 1) {
        layer[level.first_gene] = static_cast<Gene8>(option);
        return;
    }
    for (std::size_t i = level.genes; i-- > 0; option /= group.radix[i])
        layer[i] = static_cast<Gene8>(option % group.radix[i]);
}

}  // namespace

struct Repair::Scratch {
    std::vector<std::int64_t> floor;
    std::vector<std::int64_t> cap;
    std::vector<std::int64_t> total;   // of the child, one a bound
    std::vector<std::int64_t> deltas;  // [change * bounds + bound]
    // Changes that fit alone, or of each change, how many fit with it.
    std::vector<std::size_t> fitting;
    std::vector<Change> changes;
    // [change * bounds + bound]: cost of the layer's own option, among all options.
    std::vector<const std::int64_t*> owns;
    // Of the roots that were needed so far.
    std::map<const Root*, std::vector<ReachedLevel>> reached;
    std::size_t entries = 0;  // in all of them
    std::vector<Distances<std::uint64_t>> distances;
    std::vector<Distances<Wide>> wide_distances;  // of roots with 2^64 architectures or more
    std::vector<std::size_t> around;              // combinations at one distance from the child
    std::vector<std::size_t> nearest;             // roots
    Genome genome;
};

Repair::Repair(const Feasible& feasible)
    : feasible_(&feasible), scratch_(std::make_unique<Scratch>()) {
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
    const std::size_t combination = space.combinations().of(child);
    if (feasible_->fits(child)) return 0;
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

// The roots whose global genes differ least from the child's, ascending, and in how many genes.
std::size_t Repair::find_nearest(const Gene8* child) {
    const Combinations& combinations = feasible_->space().combinations();
    const auto& roots = feasible_->table().roots();
    std::vector<std::size_t>& nearest = scratch_->nearest;
    // Nearly always one or two changes lead to a root. Where that is not so, looking at every root
    // takes fewer steps.
    std::size_t steps = roots.size();
    for (std::size_t distance = 1; distance <= combinations.slots(); ++distance) {
        nearest.clear();
        scratch_->around.clear();
        if (!combinations.at_distance(child, distance, steps, scratch_->around)) break;
        for (const std::size_t combination : scratch_->around)
            if (const Root* root = feasible_->table().root_of(combination))
                nearest.push_back(static_cast<std::size_t>(root - roots.data()));
        if (!nearest.empty()) return distance;
    }
    std::size_t fewest = combinations.slots() + 1;
    for (std::size_t i = 0; i < roots.size(); ++i) {
        const Gene8* other = combinations.genes(roots[i].combination);
        std::size_t distance = 0;
        for (std::size_t slot = 0; slot < combinations.slots(); ++slot)
            distance += other[slot] == child[slot] ? 0 : 1;
        if (distance > fewest) continue;
        if (distance < fewest) nearest.clear();
        fewest = distance;
        nearest.push_back(i);
    }
    return fewest;
}

std::size_t Repair::change_global(Rng& rng, Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const auto& roots = feasible_->table().roots();
    const std::size_t fewest = find_nearest(child);
    Wide weight = 0;
    for (const std::size_t i : scratch_->nearest) weight += roots[i].count;
    Wide draw = rng.below_wide(weight);
    std::size_t pick = 0;
    while (draw >= roots[scratch_->nearest[pick]].count)
        draw -= roots[scratch_->nearest[pick++]].count;
    Genome& other = scratch_->genome;
    std::copy(child, child + space.genome_length(), other.begin());
    space.combinations().write(roots[scratch_->nearest[pick]].combination, child);
    for (const LayerGroup& group : space.groups()) {
        const std::size_t had = group.depth(other.data()) * group.radix.size();
        const std::size_t has = group.depth(child) * group.radix.size();
        for (std::size_t i = had; i < has; ++i)
            child[group.offset + i] =
                static_cast<Gene8>(rng.below(group.radix[i % group.radix.size()]));
        for (std::size_t i = has; i < had; ++i) child[group.offset + i] = 0;
    }
    return fewest;
}

// Every change of one gene of a layer, with what it adds to each bound. False when a bound has no
// window at all.
bool Repair::list_changes(Gene8* child) {
    const SearchSpace& space = feasible_->space();
    const std::vector<BoundSum>& sums = feasible_->bounds().all();
    Scratch& scratch = *scratch_;
    const std::size_t combination = space.combinations().of(child);
    for (std::size_t d = 0; d < sums.size(); ++d) {
        if (!sums[d].window(combination, scratch.floor[d], scratch.cap[d])) return false;
        scratch.total[d] = feasible_->bounds().over_layers(sums[d], child);
    }
    scratch.changes.clear();
    scratch.deltas.clear();
    scratch.owns.clear();
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
                    const auto shift = static_cast<std::ptrdiff_t>(base + value * stride) -
                                       static_cast<std::ptrdiff_t>(own);
                    scratch.changes.push_back({first + i, first, shift, static_cast<Gene8>(value)});
                    for (const BoundSum& sum : sums) {
                        const std::int64_t* at =
                            sum.groups[g]->of(sum.groups[g]->projection.row(child), layer) + own;
                        scratch.owns.push_back(at);
                        scratch.deltas.push_back(at[shift] - at[0]);
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
    scratch.fitting.clear();
    for (std::size_t i = 0; i < scratch.changes.size(); ++i) {
        bool fits = true;
        for (std::size_t d = 0; d < bounds && fits; ++d) {
            const std::int64_t sum = scratch.total[d] + scratch.deltas[i * bounds + d];
            fits = sum >= scratch.floor[d] && sum <= scratch.cap[d];
        }
        if (fits) scratch.fitting.push_back(i);
    }
    if (scratch.fitting.empty()) return false;
    const Change& change = scratch.changes[scratch.fitting[rng.below(scratch.fitting.size())]];
    child[change.byte] = change.value;
    return true;
}

// Two changes add up when they are in different layers; inside one layer the table of options
// knows.
bool Repair::pair_fits(std::size_t i, std::size_t j) const {
    const Scratch& scratch = *scratch_;
    const std::size_t bounds = scratch.total.size();
    const Change& first = scratch.changes[i];
    const Change& second = scratch.changes[j];
    if (first.byte == second.byte) return false;
    for (std::size_t d = 0; d < bounds; ++d) {
        const std::int64_t* own = scratch.owns[i * bounds + d];
        const std::int64_t together =
            first.layer == second.layer
                ? own[first.shift + second.shift] - own[0]
                : scratch.deltas[i * bounds + d] + scratch.deltas[j * bounds + d];
        const std::int64_t sum = scratch.total[d] + together;
        if (sum < scratch.floor[d] || sum > scratch.cap[d]) return false;
    }
    return true;
}

// How many later changes fit together with change i.
std::size_t Repair::count_pairs(std::size_t i) const {
    const Scratch& scratch = *scratch_;
    const std::size_t changes = scratch.changes.size();
    std::size_t count = 0;
    std::size_t j = i + 1;
    for (; j < changes &&
           (scratch.total.size() > 1 || scratch.changes[j].layer == scratch.changes[i].layer);
         ++j)
        count += pair_fits(i, j) ? 1 : 0;
    if (j == changes) return count;
    // Of one bound, other layers: one comparison each, several at once.
    const auto floor =
        static_cast<std::uint64_t>(scratch.floor[0] - scratch.total[0] - scratch.deltas[i]);
    const auto width =
        static_cast<std::uint64_t>(scratch.cap[0]) - static_cast<std::uint64_t>(scratch.floor[0]);
    const std::int64_t* const deltas = scratch.deltas.data();
    for (; j < changes; ++j)
        count += static_cast<std::uint64_t>(deltas[j]) - floor <= width ? 1 : 0;
    return count;
}

bool Repair::change_two(Rng& rng, Gene8* child) {
    Scratch& scratch = *scratch_;
    const std::vector<Change>& changes = scratch.changes;
    scratch.fitting.resize(changes.size());
    std::size_t all = 0;
    for (std::size_t i = 0; i < changes.size(); ++i) all += scratch.fitting[i] = count_pairs(i);
    if (all == 0) return false;
    std::size_t draw = rng.below(all);
    std::size_t i = 0;
    for (; draw >= scratch.fitting[i]; ++i) draw -= scratch.fitting[i];
    std::size_t j = i + 1;
    for (; !pair_fits(i, j) || draw-- > 0; ++j) continue;
    child[changes[i].byte] = changes[i].value;
    child[changes[j].byte] = changes[j].value;
    return true;
}

// What the root's states lead to, level by level. It depends on no child, so it is kept.
const std::vector<ReachedLevel>& Repair::reached_from(const Root& root) {
    Scratch& scratch = *scratch_;
    const auto known = scratch.reached.find(&root);
    if (known != scratch.reached.end()) return known->second;
    if (scratch.entries > most_reached) {
        scratch.reached.clear();
        scratch.entries = 0;
    }
    const SearchSpace& space = feasible_->space();
    std::vector<ReachedLevel>& levels = scratch.reached[&root];
    std::vector<std::uint32_t> states;
    for (std::size_t i = 0; i < root.size(); ++i) states.push_back(root.state(i));
    std::size_t group = 0;
    std::size_t layer = space.groups().empty() ? 0 : space.groups()[0].offset;
    for (const Level* level = root.level;; level = level->next) {
        ReachedLevel here{level, 0, states.size(), {}};
        if (level->next != nullptr) {
            if (level->group != group) {
                group = level->group;
                layer = space.groups()[group].offset;
            }
            here.layer = layer;
            std::vector<std::uint32_t> numbers(level->next->sums.size(), no_state);
            std::vector<std::uint32_t> below;
            for (const std::uint32_t state : states)
                for (std::size_t option = 0; option < level->options; ++option) {
                    const std::uint32_t child = level->children[state * level->options + option];
                    if (child != no_state && numbers[child] == no_state) {
                        numbers[child] = static_cast<std::uint32_t>(below.size());
                        below.push_back(child);
                    }
                    here.children.push_back(child == no_state ? no_state : numbers[child]);
                }
            std::replace(here.children.begin(), here.children.end(), no_state,
                         static_cast<std::uint32_t>(below.size()));
            states = std::move(below);
            if (level->ends_layer) layer += space.groups()[group].radix.size();
        }
        scratch.entries += here.children.size();
        levels.push_back(std::move(here));
        if (level->next == nullptr) return levels;
    }
}

// From the last level up: how far each state is from the child, and in how many ways. Which option
// is nearest is as good as random, so nothing branches on it.
template <class Count>
void Repair::measure_distances(const std::vector<ReachedLevel>& levels, const Gene8* child,
                               std::vector<Distances<Count>>& distances) const {
    const SearchSpace& space = feasible_->space();
    if (distances.size() < levels.size()) distances.resize(levels.size());
    distances[levels.size() - 1].fewest.assign({0, unreachable});
    distances[levels.size() - 1].ways.assign({1, 0});
    for (std::size_t k = levels.size() - 1; k-- > 0;) {
        const ReachedLevel& reached = levels[k];
        const Level& level = *reached.level;
        Distances<Count>& here = distances[k];
        const Distances<Count>& next = distances[k + 1];
        here.changes.resize(level.options);
        for (std::size_t option = 0; option < level.options; ++option)
            here.changes[option] =
                changes_of(space.groups()[level.group], level, option, child + reached.layer);
        here.fewest.resize(reached.size + 1);
        here.ways.resize(reached.size + 1);
        const std::uint32_t* children = reached.children.data();
        for (std::size_t state = 0; state < reached.size; ++state, children += level.options) {
            std::uint32_t fewest = unreachable;
            for (std::size_t option = 0; option < level.options; ++option)
                fewest = std::min(fewest, here.changes[option] + next.fewest[children[option]]);
            Count ways = 0;
            for (std::size_t option = 0; option < level.options; ++option)
                ways += here.changes[option] + next.fewest[children[option]] == fewest
                            ? next.ways[children[option]]
                            : Count{0};
            here.fewest[state] = fewest;
            here.ways[state] = ways;
        }
        here.fewest[reached.size] = unreachable;
        here.ways[reached.size] = 0;
    }
}

std::size_t Repair::change_fewest(Rng& rng, Gene8* child) {
    const Root& root = *feasible_->table().root_of(feasible_->space().combinations().of(child));
    const std::vector<ReachedLevel>& levels = reached_from(root);
    // Ways are architectures of the root, each counted once.
    if (root.count >> 64 == 0) return draw_nearest(rng, levels, scratch_->distances, child);
    return draw_nearest(rng, levels, scratch_->wide_distances, child);
}

template <class Count>
std::size_t Repair::draw_nearest(Rng& rng, const std::vector<ReachedLevel>& levels,
                                 std::vector<Distances<Count>>& distances, Gene8* child) const {
    const SearchSpace& space = feasible_->space();
    measure_distances(levels, child, distances);
    std::uint32_t fewest = unreachable;
    Count ways = 0;
    for (std::size_t state = 0; state < levels[0].size; ++state) {
        if (distances[0].fewest[state] > fewest) continue;
        ways = distances[0].fewest[state] < fewest ? distances[0].ways[state]
                                                   : ways + distances[0].ways[state];
        fewest = distances[0].fewest[state];
    }
    auto draw = static_cast<Count>(rng.below_wide(ways));
    std::size_t state = 0;
    for (;; ++state) {
        if (distances[0].fewest[state] != fewest) continue;
        if (draw < distances[0].ways[state]) break;
        draw -= distances[0].ways[state];
    }
    for (std::size_t k = 0; k + 1 < levels.size(); ++k) {
        const Level& level = *levels[k].level;
        const Distances<Count>& next = distances[k + 1];
        for (std::size_t option = 0;; ++option) {
            const std::uint32_t below = levels[k].children[state * level.options + option];
            if (distances[k].changes[option] + next.fewest[below] != distances[k].fewest[state])
                continue;
            if (draw >= next.ways[below]) {
                draw -= next.ways[below];
                continue;
            }
            set_option(space.groups()[level.group], level, option, child + levels[k].layer);
            state = below;
            break;
        }
    }
    return fewest;
}

}  // namespace hytas
