// The second half of building a counting table: the levels themselves.
#include <algorithm>

#include "table_builder.hpp"

namespace hytas {

void TableBuilder::build(const std::vector<Bound>& bounds) {
    set_dimensions(bounds);
    set_projections();
    plan_roots();
    spread_windows();
    build_levels();
    finish_roots();
}

void TableBuilder::build_levels() {
    auto last = std::make_unique<Level>();
    last->options = 0;
    last->sums = {0};
    last->counts = {1};
    plans_[0].top = last.get();
    table_.levels_.push_back(std::move(last));
    const bool bounded = !table_.dimensions_.empty();
    for (std::size_t i = 1; i < plans_.size(); ++i) {
        LayerPlan& here = plans_[i];
        if (bounded && here.wanted.floor.empty()) continue;
        // windows[k]: what the steps from k on must add, so that the whole layer can hit its
        // window.
        std::vector<Window> windows = {here.wanted};
        for (const Step& step : here.steps) {
            const Window range = step.range();
            Window rest = windows.back();
            for (std::size_t d = 0; d < rest.floor.size(); ++d) {
                rest.floor[d] -= range.cap[d];
                rest.cap[d] -= range.floor[d];
            }
            windows.push_back(rest);
        }
        const Level* next = plans_[here.next].top;
        for (std::size_t k = here.steps.size(); k-- > 0;)
            next =
                add_level(next, here.group, here.steps[k], k + 1 == here.steps.size(), windows[k]);
        here.top = next;
    }
}

const Level* TableBuilder::add_level(const Level* next, std::size_t group, const Step& step,
                                     bool ends_layer, const Window& window) {
    auto level = std::make_unique<Level>();
    level->group = group;
    level->first_gene = step.first_gene;
    level->genes = step.genes;
    level->options = step.adds.size();
    level->ends_layer = ends_layer;
    level->next = next;
    std::vector<Wide> adds;
    for (const Sums& add : step.adds) adds.push_back(table_.packing_.pack(add));
    merge(*level, adds, step, window);
    table_.entries_ += level->children.size();
    table_.levels_.push_back(std::move(level));
    return table_.levels_.back().get();
}

namespace {

// One option's walk through the states of the level below.
struct Cursor {
    Wide sum;
    std::uint32_t option;
    std::uint32_t state;
};

// The cursors of a merge, smallest sum first. A few are looked through, many are kept in a heap.
class Cursors {
  public:
    void add(const Cursor& cursor) { cursors_.push_back(cursor); }
    void start() {
        heaped_ = cursors_.size() > 24;
        if (heaped_) std::make_heap(cursors_.begin(), cursors_.end(), later);
    }
    [[nodiscard]] bool empty() const { return cursors_.empty(); }
    [[nodiscard]] Wide least() const {
        if (heaped_) return cursors_.front().sum;
        Wide sum = cursors_.front().sum;
        for (const Cursor& cursor : cursors_) sum = std::min(sum, cursor.sum);
        return sum;
    }
    // Calls use(cursor) for every cursor at `sum`; it moves the cursor on and returns false at its
    // end.
    template <class Use>
    void take(Wide sum, const Use& use) {
        if (!heaped_) {
            for (std::size_t i = 0; i < cursors_.size();) {
                if (cursors_[i].sum == sum && !use(cursors_[i])) {
                    cursors_[i] = cursors_.back();
                    cursors_.pop_back();
                } else {
                    ++i;
                }
            }
            return;
        }
        while (!cursors_.empty() && cursors_.front().sum == sum) {
            std::pop_heap(cursors_.begin(), cursors_.end(), later);
            if (use(cursors_.back()))
                std::push_heap(cursors_.begin(), cursors_.end(), later);
            else
                cursors_.pop_back();
        }
    }

  private:
    static bool later(const Cursor& left, const Cursor& right) { return left.sum > right.sum; }

    std::vector<Cursor> cursors_;
    bool heaped_ = false;
};

}  // namespace

// The states of a level are the union of the next one's, shifted by what each option adds: a merge
// of sorted lists, which also finds every child.
void TableBuilder::merge(Level& level, const std::vector<Wide>& adds, const Step& step,
                         const Window& window) const {
    const std::vector<Wide>& below = level.next->sums;
    // With one bound, sums are in the order of that bound: what lies before the window or behind it
    // is not walked.
    const bool ordered = table_.dimensions_.size() == 1;
    const auto floor = static_cast<Wide>(ordered ? std::max<std::int64_t>(0, window.floor[0]) : 0);
    const auto cap = static_cast<Wide>(ordered ? std::max<std::int64_t>(0, window.cap[0]) : 0);
    Cursors cursors;
    for (std::size_t option = 0; option < adds.size(); ++option) {
        if (step.excluded[option]) continue;
        const auto first = floor > adds[option]
                               ? std::lower_bound(below.begin(), below.end(), floor - adds[option])
                               : below.begin();
        if (first != below.end())
            cursors.add({*first + adds[option], static_cast<std::uint32_t>(option),
                         static_cast<std::uint32_t>(first - below.begin())});
    }
    cursors.start();
    std::vector<std::uint32_t> row(level.options);
    while (!cursors.empty()) {
        const Wide sum = cursors.least();
        if (ordered && sum > cap) return;
        std::fill(row.begin(), row.end(), no_state);
        Wide count = 0;
        cursors.take(sum, [&](Cursor& cursor) {
            row[cursor.option] = cursor.state;
            count = checked_add(count, level.next->counts[cursor.state]);
            if (++cursor.state == below.size()) return false;
            cursor.sum = below[cursor.state] + adds[cursor.option];
            return true;
        });
        if (!table_.packing_.inside(sum, window)) continue;
        level.sums.push_back(sum);
        level.counts.push_back(count);
        level.children.insert(level.children.end(), row.begin(), row.end());
        if (table_.entries_ + level.children.size() > most_entries_) throw TableTooLarge();
    }
}

void TableBuilder::pick_states(Root& root, const Window& window) {
    const std::vector<Wide>& sums = root.level->sums;
    const std::size_t dimensions = table_.dimensions_.size();
    root.end = sums.size();
    if (dimensions > 0) {  // states are in the order of the first sum
        const auto first =
            std::lower_bound(sums.begin(), sums.end(), table_.packing_.leading(window.floor[0]));
        root.begin = static_cast<std::size_t>(first - sums.begin());
        root.end = static_cast<std::size_t>(
            std::lower_bound(first, sums.end(), table_.packing_.leading(window.cap[0] + 1)) -
            sums.begin());
    }
    const auto inside = [&](std::size_t state) {
        return dimensions <= 1 || table_.packing_.inside(sums[state], window);
    };
    while (root.begin < root.end && !inside(root.begin)) ++root.begin;
    while (root.begin < root.end && !inside(root.end - 1)) --root.end;
    const std::size_t offset = table_.picked_.size();
    Wide count = 0;
    for (std::size_t state = root.begin; dimensions > 1 && state < root.end; ++state) {
        if (!inside(state)) continue;
        table_.picked_.push_back(static_cast<std::uint32_t>(state));
        table_.picked_before_.push_back(count);
        count = checked_add(count, root.level->counts[state]);
    }
    if (table_.picked_.size() - offset < root.end - root.begin && dimensions > 1) {
        root.begin = offset;
        root.end = table_.picked_.size();
        root.states = table_.picked_.data();  // set again once all are picked: only which roots
                                              // have picked states counts here
        root.count = count;
        return;
    }
    table_.picked_.resize(offset);
    table_.picked_before_.resize(offset);
    root.count = root.level->before[root.end] - root.level->before[root.begin];
}

void TableBuilder::finish_roots() {
    for (const auto& level : table_.levels_) {
        level->before.assign(1, 0);
        for (const Wide count : level->counts)
            level->before.push_back(checked_add(level->before.back(), count));
    }
    const auto dimensions = static_cast<std::ptrdiff_t>(table_.dimensions_.size());
    std::size_t kept = 0;
    Window window;
    for (std::size_t i = 0; i < table_.roots_.size(); ++i) {
        Root& root = table_.roots_[i];
        root.level = plans_[root_plans_[i]].top;
        const auto ends = root_windows_.begin() + static_cast<std::ptrdiff_t>(i) * 2 * dimensions;
        window.floor.assign(ends, ends + dimensions);
        window.cap.assign(ends + dimensions, ends + 2 * dimensions);
        pick_states(root, window);
        if (root.count == 0) continue;
        table_.total_ = checked_add(table_.total_, root.count);
        table_.roots_[kept++] = root;
    }
    table_.roots_.resize(kept);
    table_.root_at_.assign(space_.combinations().size(), no_state);
    for (std::size_t i = 0; i < kept; ++i) {
        Root& root = table_.roots_[i];
        table_.root_at_[root.combination] = static_cast<std::uint32_t>(i);
        if (root.states == nullptr) continue;
        root.states = table_.picked_.data();
        root.before = table_.picked_before_.data();
    }
    table_.narrow_ = (table_.total_ >> 64) == 0;
    for (const auto& level : table_.levels_) accumulate(*level);
}

// Counts of the options up to each one, side by side, so that a draw touches one line of memory a
// gene.
void TableBuilder::accumulate(Level& level) const {
    const std::size_t size = level.children.size();
    if (table_.narrow_)
        level.narrow.resize(size);
    else
        level.wide.resize(size);
    for (std::size_t state = 0; state < level.sums.size(); ++state) {
        Wide sum = 0;
        for (std::size_t at = state * level.options; at < (state + 1) * level.options; ++at) {
            if (level.children[at] != no_state) sum += level.next->counts[level.children[at]];
            if (table_.narrow_)
                level.narrow[at] = static_cast<std::uint64_t>(sum);
            else
                level.wide[at] = sum;
        }
    }
}

CountingTable::CountingTable(const SearchSpace& space, const std::vector<Bound>& bounds,
                             std::size_t most_entries, std::vector<std::int64_t> units) {
    TableBuilder(space, *this, most_entries, std::move(units)).build(bounds);
}

const Root* CountingTable::root_of(std::size_t combination) const {
    const std::uint32_t at = combination < root_at_.size() ? root_at_[combination] : no_state;
    return at == no_state ? nullptr : &roots_[at];
}

Wide CountingTable::sums_of(const SearchSpace& space, const Gene8* genome) const {
    Sums sums(dimensions_.size(), 0);
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
        const Dimension& dimension = dimensions_[d];
        const CostTable& cost = space.costs()[dimension.cost];
        for (std::size_t g = 0; g < cost.groups.size(); ++g) {
            const LayerGroup& group = space.groups()[g];
            const std::size_t row = cost.groups[g].projection.row(genome);
            const Gene8* at = genome + group.offset;
            for (std::size_t layer = 0; layer < group.depth(genome);
                 ++layer, at += group.radix.size()) {
                const std::int64_t value = cost.groups[g].of(row, layer)[group.option(at)];
                sums[d] += dimension.maximum
                               ? (dimension.lower > 0 && value >= dimension.lower ? 1 : 0)
                               : value / dimension.grain;
            }
        }
    }
    return packing_.pack(sums);
}

}  // namespace hytas
