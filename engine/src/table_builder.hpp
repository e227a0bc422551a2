// Plans which levels a counting table needs and with which windows, then builds them from the last
// layer to the first.
#pragma once

#include <unordered_map>
#include <vector>

#include "counting_table.hpp"

namespace hytas {

// The options of one step: what each adds to every dimension, and whether the budget excludes it
// outright.
struct Step {
    std::size_t first_gene = 0;
    std::size_t genes = 1;
    std::vector<Sums> adds;
    std::vector<bool> excluded;

    [[nodiscard]] Window range() const;  // of the options that are not excluded
};

// The layers from one on, as far as costs can tell them apart.
struct LayerPlan {
    std::size_t group = 0;
    std::size_t next = 0;     // plan of the layer after
    std::vector<Step> steps;  // in the order of decision
    bool possible = true;     // false: every option is excluded
    Window layer;             // what this layer can add
    Window suffix;            // what it and all after it can add
    Window wanted;            // sums that some combination can use; empty floor: none
    const Level* top = nullptr;
};

class TableBuilder {
  public:
    TableBuilder(const SearchSpace& space, CountingTable& table, std::size_t most_entries,
                 std::vector<std::int64_t> units)
        : space_(space), table_(table), most_entries_(most_entries), units_(std::move(units)) {}

    void build(const std::vector<Bound>& bounds);

  private:
    struct PlanKey {
        std::size_t group;
        std::size_t row;
        std::size_t left;  // layers

        bool operator==(const PlanKey&) const = default;
    };
    struct PlanHash {
        std::size_t operator()(const PlanKey& key) const {
            return (key.row * 512 + key.left * 2 + 1) * 0x9e3779b97f4a7c15ULL + key.group;
        }
    };

    void set_dimensions(const std::vector<Bound>& bounds);
    void set_projections();
    bool root_window(std::size_t combination, Window& window) const;
    std::size_t plan(const Gene8* genome, std::size_t group, std::size_t left);
    std::vector<Step> steps_of(const Gene8* genome, std::size_t group, std::size_t layer) const;
    Step joint_step(const Gene8* genome, std::size_t group, std::size_t layer) const;
    bool separate(const Step& joint, const LayerGroup& group, std::vector<Step>& steps) const;
    void plan_roots();
    void spread_windows();
    void build_levels();
    const Level* add_level(const Level* next, std::size_t group, const Step& step, bool ends_layer,
                           const Window& window);
    void merge(Level& level, const std::vector<Wide>& adds, const Step& step,
               const Window& window) const;
    void accumulate(Level& level) const;
    void finish_roots();
    void pick_states(Root& root, const Window& window);

    const SearchSpace& space_;
    CountingTable& table_;
    std::size_t most_entries_;
    std::vector<std::int64_t> units_;      // one a bound; empty: exact
    std::vector<Projection> projections_;  // of each group and the ones after it
    std::unordered_map<PlanKey, std::size_t, PlanHash> plan_of_;
    std::vector<LayerPlan> plans_;
    std::vector<std::size_t> root_plans_;  // parallel to the table's roots
    // [root * 2 * dimensions]: the floors and the caps of each.
    std::vector<std::int64_t> root_windows_;
};

}  // namespace hytas
