// The part of the reader that tabulates the cost expressions of a space.
#include <algorithm>
#include <optional>

#include "addends.hpp"
#include "hytas/error.hpp"
#include "space_reader.hpp"
#include "text.hpp"

namespace hytas {

namespace {
constexpr std::int64_t most_cost = std::int64_t{1} << 61;  // two of them still add up in 64 bits
constexpr std::size_t most_entries = std::size_t{1} << 24;
constexpr std::size_t most_known = std::size_t{1} << 21;  // 48 MB
}  // namespace

void SpaceReader::read_costs() {
    const Json* costs = member(file_, "costs", Json::Kind::object, true);
    if (costs->members().empty()) fail("\"costs\" must not be empty");
    for (const auto& [name, body] : costs->members()) {
        const auto letter = [](char one) {
            return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '_';
        };
        if (name.empty() || !std::all_of(name.begin(), name.end(), letter))
            fail("cost " + quoted(name) + ": a name is of a-z, 0-9 and '_'");
        space_.costs_.push_back(read_cost(name, body));
    }
}

CostTable SpaceReader::read_cost(const std::string& name, const Json& body) {
    const std::string what = "cost " + quoted(name);
    if (!body.is(Json::Kind::object)) fail(what + " must be an object");
    known_members(body, "a cost", {"about", "unit", "combine", "global", "layers"});
    CostTable cost;
    cost.name = name;
    const Json* unit = member(body, "unit", Json::Kind::string, false);
    cost.unit = unit == nullptr ? name : unit->text();
    if (const Json* about = member(body, "about", Json::Kind::string, false))
        cost.about = about->text();
    if (const Json* combine = member(body, "combine", Json::Kind::string, false)) {
        if (combine->text() != "sum" && combine->text() != "max")
            fail(what + ": \"combine\" must be \"sum\" or \"max\"");
        cost.combine = combine->text() == "max" ? Combine::maximum : Combine::sum;
    }
    const Json zero = Json::string("0");
    const Json* global = body.find("global");
    tabulate_global(cost, expression(global == nullptr ? zero : *global, what), what);
    const Json* layers = member(body, "layers", Json::Kind::object, false);
    if (layers != nullptr)
        for (const auto& entry : layers->members()) {
            const auto counts = [&](const LayerGroup& group) {
                return space_.genes_[group.depth_gene].name == entry.first;
            };
            if (std::none_of(space_.groups_.begin(), space_.groups_.end(), counts))
                fail(what + ": \"layers\": no gene belongs to layers of " + quoted(entry.first));
        }
    for (std::size_t g = 0; g < space_.groups_.size(); ++g) {
        const Json* text = layers == nullptr
                               ? nullptr
                               : layers->find(space_.genes_[space_.groups_[g].depth_gene].name);
        cost.groups.push_back(
            tabulate_layers(expression(text == nullptr ? zero : *text, what), g, what));
    }
    check_total(space_, cost);
    return cost;
}

Expressions::Root SpaceReader::expression(const Json& text, const std::string& what) {
    if (!text.is(Json::Kind::string) && !text.is(Json::Kind::number))
        fail(what + " must be an expression in quotes");
    return expressions_.parse(text.text(), what);
}

// group -1: a global expression, which must not read a gene of a layer.
Projection SpaceReader::projection_of(Expressions::Root root, int group,
                                      const std::string& what) const {
    Projection projection;
    const auto slots = expressions_.slots_of(root);
    for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
        if (*slot < space_.slot_gene_.size()) {
            projection.terms.push_back({*slot, projection.rows});
            projection.rows *= space_.values_of_slot(*slot).size();
            continue;
        }
        for (std::size_t i = 0; i < space_.genes_.size(); ++i) {
            const Gene& gene = space_.genes_[i];
            if (gene.group < 0 || layer_slots_[i] != *slot || gene.group == group) continue;
            fail(what + " reads " + quoted(gene.name) + ", a gene of other layers");
        }
    }
    if (group < 0 && reads_layer_index(root)) fail(what + " reads 'layer' outside \"layers\"");
    return projection;
}

void SpaceReader::set_row(const Projection& projection, std::size_t row) {
    for (const Projection::Term& term : projection.terms)
        set_slot(term.slot, row / term.stride % space_.radix_of_slot(term.slot));
}

void SpaceReader::set_option(std::size_t group, std::size_t option) {
    const LayerGroup& layers = space_.groups_[group];
    for (std::size_t i = layers.genes.size(); i-- > 0; option /= layers.radix[i])
        set_slot(layer_slots_[layers.genes[i]], option % layers.radix[i]);
}

Rational SpaceReader::number(Expressions::Root root, const std::string& what) {
    Value value;
    try {
        value = expressions_.evaluate(root, environment_);
    } catch (const Error& error) {
        fail(what + ": " + error.what());
    }
    if (value.label >= 0)
        fail(what + " is a label for some architecture; it must be a whole number of 0 or more");
    return value.number;
}

std::int64_t SpaceReader::whole_cost(const Rational& value, const std::string& what) const {
    if (!value.whole() || value.numerator() < 0 || value.numerator() > most_cost)
        fail(what + " is " + value.text() +
             " for some architecture; it must be a whole number of 0 or more");
    return value.numerator();
}

// A cost may read every global gene where each addend reads a few: what an addend is for those few
// is computed once.
void SpaceReader::tabulate_global(CostTable& cost, Expressions::Root root,
                                  const std::string& what) {
    static_cast<void>(projection_of(root, -1, what));  // throws where a gene of layers is read
    const std::vector<Expressions::Root> addends = expressions_.addends(root);
    std::vector<Projection> genes_of;
    // [row]; empty where there are too many rows.
    std::vector<std::vector<std::optional<Rational>>> known(addends.size());
    std::size_t room = most_known;
    for (const Expressions::Root addend : addends) {
        genes_of.push_back(projection_of(addend, -1, what));
        if (genes_of.back().rows > room) continue;
        known[genes_of.size() - 1].resize(genes_of.back().rows);
        room -= genes_of.back().rows;
    }
    const auto compute = [&](std::size_t i, const Gene8* genes) {
        for (const Projection::Term& term : genes_of[i].terms)
            set_slot(term.slot, genes[term.slot]);
        return number(addends[i], what);
    };
    const auto value = [&](std::size_t i, const Gene8* genes) {
        if (known[i].empty()) return compute(i, genes);
        std::optional<Rational>& row = known[i][genes_of[i].row(genes)];
        if (!row) row = compute(i, genes);
        return *row;
    };
    cost.global.reserve(space_.combinations().size());
    sum_addends<Rational>(space_.combinations(), genes_of, value, [&](const Rational& sum) {
        cost.global.push_back(whole_cost(sum, what));
    });
}

// Layers whose costs a row of the table needs: as many as its depth, if the row tells it.
std::size_t SpaceReader::layers_of(const LayerCosts& table, std::size_t group,
                                   std::size_t row) const {
    const LayerGroup& layers = space_.groups_[group];
    for (const Projection::Term& term : table.projection.terms)
        if (table.layers > 1 && term.slot == layers.depth_slot)
            return layers.depths[row / term.stride % layers.depths.size()];
    return table.layers;
}

LayerCosts SpaceReader::tabulate_layers(Expressions::Root root, std::size_t group,
                                        const std::string& what) {
    LayerCosts table;
    table.projection = projection_of(root, static_cast<int>(group), what);
    table.layers =
        reads_layer_index(root) ? std::max<std::size_t>(space_.groups_[group].most_layers, 1) : 1;
    table.options = space_.groups_[group].options;
    if (table.projection.rows > most_entries)
        fail(what + " reads genes with more than 16,777,216 combinations");
    table.places.assign(table.projection.rows, 0);
    for (std::size_t i = 0; i < space_.combinations().size(); ++i)
        table.places[table.projection.row(space_.combinations().genes(i))] = 1;
    std::uint32_t allowed = 0;
    for (std::uint32_t& place : table.places)
        if (place != 0) place = ++allowed;
    if (allowed >= most_entries / table.options / table.layers)
        fail(what + " has more than 16,777,216 different layers");
    table.values.assign((allowed + std::size_t{1}) * table.layers * table.options, 0);
    std::int64_t* at = table.values.data() + table.layers * table.options;
    for (std::size_t row = 0; row < table.projection.rows; ++row) {
        if (table.places[row] == 0) continue;
        set_row(table.projection, row);
        const std::size_t used = layers_of(table, group, row);
        for (std::size_t layer = 0; layer < table.layers; ++layer) {
            if (layer >= used) {  // no architecture has it
                at += table.options;
                continue;
            }
            environment_.set(space_.global_slots(),
                             {Rational(static_cast<std::int64_t>(layer)), -1});
            for (std::size_t option = 0; option < table.options; ++option) {
                set_option(group, option);
                *at++ = whole_cost(number(root, what), what);
            }
        }
    }
    return table;
}

// Sums of the largest parts must stay in 64 bits, so that no later addition needs a check.
void SpaceReader::check_total(const SearchSpace& space, const CostTable& cost) {
    Wide most = static_cast<Wide>(*std::max_element(cost.global.begin(), cost.global.end()));
    for (std::size_t g = 0; g < cost.groups.size(); ++g) {
        const auto& values = cost.groups[g].values;
        most += static_cast<Wide>(*std::max_element(values.begin(), values.end())) *
                space.groups()[g].most_layers;
    }
    if (most > static_cast<Wide>(most_cost))
        throw Error("cost " + quoted(cost.name) + ": exceeds 2^61 in space " + space.name());
}

}  // namespace hytas
