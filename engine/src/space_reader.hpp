// Turns the JSON of a space file into a SearchSpace, checking everything on the way.
#pragma once

#include <string>
#include <string_view>

#include "expression.hpp"
#include "hytas/search_space.hpp"

namespace hytas {

class SpaceReader {
  public:
    SpaceReader(std::string_view text, const Variables& variables);
    SearchSpace read();
    // One more cost of a space that was read from this text; `what` names its source in messages.
    CostTable read_another_cost(const SearchSpace& space, const std::string& name, const Json& body,
                                const std::string& what);

  private:
    [[noreturn]] void fail(const std::string& why) const;
    [[nodiscard]] const Json* member(const Json& object, const std::string& name, Json::Kind kind,
                                     bool required) const;
    void known_members(const Json& object, const std::string& what,
                       const std::vector<std::string>& names) const;

    void read_genome();
    void read_header();
    void read_variables();
    void read_genes();
    void read_gene(const Json& item);
    [[nodiscard]] Values read_values(const Json& list, const Gene& gene) const;
    void read_lists(const Json& item, Gene& gene) const;
    void place_gene(const Json& item, Gene& gene);
    void read_weights(const Json& item, Gene& gene) const;
    void read_absent(const Json& item, Gene& gene) const;
    bool is_there(const Json& item, const Gene& gene);
    LayerGroup& group_of(const std::string& depth_gene);
    void lay_out();
    static void decode_blocks(LayerGroup& group);
    void make_masks();
    std::vector<Value> known_values(const Values& values);
    void define_names();
    void read_requirements();
    void read_costs();
    CostTable read_cost(const std::string& name, const Json& body);

    Expressions::Root expression(const Json& text, const std::string& what);
    [[nodiscard]] Projection projection_of(Expressions::Root root, int group,
                                           const std::string& what) const;
    [[nodiscard]] bool reads_layer_index(Expressions::Root root) const {
        return expressions_.slots_of(root).contains(space_.global_slots());
    }
    void tabulate_global(CostTable& cost, Expressions::Root root, const std::string& what);
    [[nodiscard]] std::size_t layers_of(const LayerCosts& table, std::size_t group,
                                        std::size_t row) const;
    LayerCosts tabulate_layers(Expressions::Root root, std::size_t group, const std::string& what);
    Rational number(Expressions::Root root, const std::string& what);
    [[nodiscard]] std::int64_t whole_cost(const Rational& value, const std::string& what) const;
    void set_row(const Projection& projection, std::size_t row);
    void set_option(std::size_t group, std::size_t option);
    void set_slot(std::size_t slot, std::size_t value) {
        environment_.set(slot, slot_values_[slot][value]);
    }
    static void check_total(const SearchSpace& space, const CostTable& cost);

    std::string what_ = "space file";
    Json file_;
    Variables given_;
    SearchSpace space_;
    Expressions expressions_;
    // Slots: the global ones, the index of the layer, one a gene of a layer.
    Environment environment_;
    // [slot]: of its gene; none for the index of the layer.
    std::vector<std::vector<Value>> slot_values_;
    std::vector<std::size_t> layer_slots_;  // [gene]: of the genes of layers
};

}  // namespace hytas
