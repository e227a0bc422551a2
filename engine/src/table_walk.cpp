#include "table_walk.hpp"

#include <algorithm>

namespace hytas {

namespace {

// Options up to which the right one is looked for one by one, and up to which all are compared
// without a branch on the result; among more it is found by halving.
constexpr std::size_t most_guessed = 4;
constexpr std::size_t most_compared = 16;

void write_option(const LayerGroup& group, const Level& level, std::size_t option, Gene8* layer) {
    if (level.genes == 1) {
        layer[level.first_gene] = static_cast<Gene8>(option);
        return;
    }
    for (std::size_t i = level.genes; i-- > 0; option /= group.radix[i])
        layer[i] = static_cast<Gene8>(option % group.radix[i]);
}

template <class Count>
const std::vector<Count>& cumulative(const Level& level) {
    if constexpr (sizeof(Count) == sizeof(Wide))
        return level.wide;
    else
        return level.narrow;
}

// The first option of a row whose cumulative count is above `index`.
template <class Count>
std::size_t option_at(const Count* row, std::size_t options, Count index) {
    std::size_t option = 0;
    if (options <= most_guessed)
        while (index >= row[option]) ++option;
    else if (options <= most_compared)
        for (std::size_t k = 0; k + 1 < options; ++k) option += index >= row[k] ? 1 : 0;
    else
        option = static_cast<std::size_t>(std::upper_bound(row, row + options, index) - row);
    return option;
}

template <class Count>
void descend(const SearchSpace& space, const Level* level, std::uint32_t state, Count index,
             Gene8* genome) {
    std::size_t group = 0;
    Gene8* layer = genome + space.groups()[0].offset;
    while (level->next != nullptr) {
        if (level->group != group) {
            group = level->group;
            layer = genome + space.groups()[group].offset;
        }
        const LayerGroup& genes = space.groups()[group];
        const Count* row = cumulative<Count>(*level).data() + state * level->options;
        const std::size_t option = option_at(row, level->options, index);
        index -= option > 0 ? row[option - 1] : 0;
        write_option(genes, *level, option, layer);
        state = level->children[state * level->options + option];
        if (level->ends_layer) layer += genes.radix.size();
        level = level->next;
    }
}

std::size_t option_of(const LayerGroup& group, const Level& level, const Gene8* layer) {
    return level.genes == 1 ? layer[level.first_gene] : group.option(layer);
}

}  // namespace

void walk_down(const CountingTable& table, const SearchSpace& space, const Root& root, Wide index,
               Gene8* genome) {
    std::size_t low = 0;
    std::size_t high = root.size();
    while (high - low > 1) {  // the last state whose predecessors are at most `index`
        const std::size_t middle = low + (high - low) / 2;
        (root.count_before(middle) <= index ? low : high) = middle;
    }
    index -= root.count_before(low);
    if (root.level->next == nullptr) return;
    if (table.narrow())
        descend<std::uint64_t>(space, root.level, root.state(low),
                               static_cast<std::uint64_t>(index), genome);
    else
        descend<Wide>(space, root.level, root.state(low), index, genome);
}

Wide walk_up(const CountingTable& table, const SearchSpace& space, const Root& root,
             const Gene8* genome, bool& found) {
    const Wide sums = table.sums_of(space, genome);
    const std::vector<Wide>& known = root.level->sums;
    const auto place = std::lower_bound(known.begin(), known.end(), sums);
    found = false;
    if (place == known.end() || *place != sums) return 0;
    auto state = static_cast<std::uint32_t>(place - known.begin());
    std::size_t position = state - root.begin;
    if (root.states != nullptr) {
        const std::uint32_t* const end = root.states + root.end;
        const auto pick = std::lower_bound(root.states + root.begin, end, state);
        if (pick == end || *pick != state) return 0;
        position = static_cast<std::size_t>(pick - root.states) - root.begin;
    } else if (state < root.begin || state >= root.end) {
        return 0;
    }
    Wide index = root.count_before(position);
    std::size_t group = 0;
    const Gene8* layer = space.groups().empty() ? genome : genome + space.groups()[0].offset;
    for (const Level* level = root.level; level->next != nullptr; level = level->next) {
        if (level->group != group) {
            group = level->group;
            layer = genome + space.groups()[group].offset;
        }
        const std::size_t option = option_of(space.groups()[group], *level, layer);
        const std::size_t at = state * level->options + option;
        if (option > 0) index += table.narrow() ? level->narrow[at - 1] : level->wide[at - 1];
        state = level->children[at];
        if (state == no_state) return 0;
        if (level->ends_layer) layer += space.groups()[group].radix.size();
    }
    found = true;
    return index;
}

}  // namespace hytas
