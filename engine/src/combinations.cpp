#include "hytas/detail/combinations.hpp"

#include <limits>
#include <unordered_map>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

constexpr std::size_t most_steps = std::size_t{1} << 22;
constexpr std::size_t most_genes = std::size_t{1} << 26;
constexpr std::uint32_t no_child = std::numeric_limits<std::uint32_t>::max();

std::size_t last_slot(const Requirement& rule) {
    std::size_t last = 0;
    for (const Projection::Term& term : rule.genes.terms) last = std::max(last, term.slot);
    return last;
}

// The genes before `slot` that a requirement reads together with `slot` or a later one.
Projection open_before(std::size_t slot, const std::vector<std::size_t>& radix,
                       const std::vector<Requirement>& rules) {
    std::vector<bool> open(slot, false);
    for (const Requirement& rule : rules)
        if (last_slot(rule) >= slot)
            for (const Projection::Term& term : rule.genes.terms)
                if (term.slot < slot) open[term.slot] = true;
    Projection projection;
    for (std::size_t i = 0; i < slot; ++i) {
        if (!open[i]) continue;
        projection.terms.push_back({i, projection.rows});
        projection.rows *= radix[i];
    }
    return projection;
}

}  // namespace

struct Combinations::Level {
    std::size_t nodes = 0;
    std::vector<std::uint32_t> children;  // [node * radix + value]
    std::vector<std::uint64_t> counts;    // [node]: allowed ends
};

Combinations::Combinations(const std::vector<std::size_t>& radix,
                           const std::vector<Requirement>& rules)
    : radix_(radix) {
    std::vector<Level> levels = expand(rules);
    levels.back().counts.assign(levels.back().nodes, 1);
    for (std::size_t slot = radix_.size(); slot-- > 0;) {
        Level& here = levels[slot];
        here.counts.assign(here.nodes, 0);
        for (std::size_t i = 0; i < here.children.size(); ++i)
            if (here.children[i] != no_child)
                here.counts[i / radix_[slot]] += levels[slot + 1].counts[here.children[i]];
    }
    size_ = levels[0].counts[0];
    if (size_ == 0) throw Error("\"require\" excludes everything");
    if (size_ > most)
        throw Error(
            "allows " + with_commas(static_cast<std::int64_t>(size_)) +
            " combinations of global genes; at most " +
            with_commas(static_cast<std::int64_t>(most)) +
            " may be: let some genes belong to layers (\"per\"), or exclude more (\"require\")");
    if (radix_.size() > most_genes / size_)
        throw Error("has more than 67,108,864 global genes in all of its allowed combinations");
    lay_out(levels);
    list();
}

// Slot by slot, testing each requirement as soon as the last gene that it reads is set.
std::vector<Combinations::Level> Combinations::expand(const std::vector<Requirement>& rules) const {
    std::vector<Level> levels(radix_.size() + 1);
    std::vector<std::uint64_t> keys = {0};  // of the nodes of a level: their row of its open genes
    std::vector<Gene8> prefix(radix_.size(), 0);
    std::size_t steps = 0;
    Projection open;
    for (std::size_t slot = 0; slot < radix_.size(); ++slot) {
        const Projection next_open = open_before(slot + 1, radix_, rules);
        std::vector<const Requirement*> decided;
        for (const Requirement& rule : rules)
            if (last_slot(rule) == slot) decided.push_back(&rule);
        std::unordered_map<std::uint64_t, std::uint32_t> known;
        std::vector<std::uint64_t> next_keys;
        levels[slot].nodes = keys.size();
        for (const std::uint64_t key : keys) {
            for (const Projection::Term& term : open.terms)
                prefix[term.slot] = static_cast<Gene8>(key / term.stride % radix_[term.slot]);
            steps += radix_[slot];
            if (steps > most_steps)
                throw Error(
                    "\"require\" takes more than 4,194,304 steps to find what is allowed; put "
                    "genes that a requirement compares next to each other");
            for (std::size_t value = 0; value < radix_[slot]; ++value) {
                prefix[slot] = static_cast<Gene8>(value);
                const auto broken = [&](const Requirement* rule) {
                    return rule->broken[rule->genes.row(prefix.data())];
                };
                if (std::any_of(decided.begin(), decided.end(), broken)) {
                    levels[slot].children.push_back(no_child);
                    continue;
                }
                const auto [place, added] = known.emplace(
                    next_open.row(prefix.data()), static_cast<std::uint32_t>(next_keys.size()));
                if (added) next_keys.push_back(place->first);
                levels[slot].children.push_back(place->second);
            }
        }
        keys = std::move(next_keys);
        open = next_open;
    }
    levels.back().nodes = keys.size();
    return levels;
}

// Nodes without an allowed end become the excluded one.
void Combinations::lay_out(const std::vector<Level>& levels) {
    arcs_.assign(*std::max_element(radix_.begin(), radix_.end()), Arc{});
    root_ = arcs_.size();
    std::size_t next_first = root_;
    for (std::size_t slot = 0; slot < radix_.size(); ++slot) {
        const Level& here = levels[slot];
        const Level& next = levels[slot + 1];
        for (std::size_t node = 0; node < here.nodes; ++node)
            next_first += here.counts[node] > 0 ? radix_[slot] : 0;
        std::vector<std::uint32_t> place(next.nodes, complete);
        std::size_t first = next_first;
        for (std::size_t node = 0; node < next.nodes && slot + 1 < radix_.size(); ++node) {
            place[node] = static_cast<std::uint32_t>(first);
            first += next.counts[node] > 0 ? radix_[slot + 1] : 0;
        }
        for (std::size_t node = 0; node < here.nodes; ++node) {
            if (here.counts[node] == 0) continue;
            std::uint32_t before = 0;
            for (std::size_t value = 0; value < radix_[slot]; ++value) {
                const std::uint32_t child = here.children[node * radix_[slot] + value];
                const std::uint64_t count = child == no_child ? 0 : next.counts[child];
                arcs_.push_back(count == 0 ? Arc{} : Arc{before, place[child]});
                before += static_cast<std::uint32_t>(count);
            }
        }
    }
}

void Combinations::list() {
    genes_.reserve(size_ * radix_.size());
    std::vector<std::size_t> nodes(radix_.size() + 1, root_);
    std::vector<Gene8> prefix(radix_.size(), 0);
    std::size_t slot = 0;
    std::size_t value = 0;
    for (;;) {
        while (value < radix_[slot] && arcs_[nodes[slot] + value].next == excluded) ++value;
        if (value == radix_[slot]) {
            if (slot == 0) return;
            value = prefix[--slot] + std::size_t{1};
            continue;
        }
        prefix[slot] = static_cast<Gene8>(value);
        nodes[slot + 1] = arcs_[nodes[slot] + value].next;
        if (slot + 1 < radix_.size()) {
            ++slot;
            value = 0;
        } else {
            genes_.insert(genes_.end(), prefix.begin(), prefix.end());
            ++value;
        }
    }
}

bool Combinations::at_distance(const Gene8* genome, std::size_t distance, std::size_t& steps,
                               std::vector<std::size_t>& found) const {
    struct Place {
        std::size_t node;
        std::size_t before;
        std::size_t left;   // changes still to be made
        std::size_t value;  // the next one to try
    };
    std::vector<Place> path = {{root_, 0, distance, 0}};
    while (!path.empty()) {
        if (steps == 0) return false;
        --steps;
        Place& here = path.back();
        const std::size_t slot = path.size() - 1;
        const std::size_t own = genome[slot];
        // Without a change left only the genome's own value remains; with as many as slots, only
        // others.
        if (here.left == 0 && here.value < own) here.value = own;
        if (here.left == radix_.size() - slot && here.value == own) ++here.value;
        if (here.value >= radix_[slot] || (here.left == 0 && here.value > own)) {
            path.pop_back();
            continue;
        }
        const std::size_t value = here.value++;
        const Arc& arc = arcs_[here.node + value];
        if (arc.next == excluded) continue;
        const Place next = {arc.next, here.before + arc.before, here.left - (value == own ? 0 : 1),
                            0};
        if (slot + 1 < radix_.size())
            path.push_back(next);
        else
            found.push_back(next.before);
    }
    return true;
}

}  // namespace hytas
