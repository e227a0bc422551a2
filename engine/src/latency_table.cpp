// Adds a cost to a space: formulas, or a table of measured costs, where a row holds for
// combinations of the genes that it depends on.
#include <algorithm>
#include <map>
#include <optional>

#include "addends.hpp"
#include "hytas/error.hpp"
#include "hytas/search_space.hpp"
#include "space_reader.hpp"
#include "text.hpp"

namespace hytas {

namespace {

// A time is stored in nanoseconds, any other unit in billionths of itself.
constexpr std::int64_t parts = 1000000000;
constexpr std::int64_t most_cost = std::int64_t{1} << 50;
constexpr std::size_t most_entries = std::size_t{1} << 24;
constexpr std::size_t most_steps = std::size_t{1} << 28;

std::optional<std::int64_t> nanoseconds(const std::string& unit) {
    if (unit == "ns") return 1;
    if (unit == "us") return 1000;
    if (unit == "ms") return 1000000;
    if (unit == "s") return parts;
    return std::nullopt;
}

// A place that a row can name: "embed_dim", "num_heads[1]", or a gene of the layer.
struct Place {
    const Values* values = nullptr;
    bool layer = false;
    std::size_t slot = 0;  // global: its byte; layer: its place inside a layer
};

// Rows that name the same genes: a cost for every combination of their values, the last place
// varying fastest.
struct Part {
    std::vector<Place> places;
    std::vector<std::int64_t> costs;
};

// A row: for each place the indices of the values that it holds for.
struct Row {
    const Json* when = nullptr;
    std::vector<std::vector<std::size_t>> indices;
    std::int64_t cost = 0;
};

constexpr std::int64_t no_cost = -1;

}  // namespace

class LatencyReader {
  public:
    LatencyReader(const SearchSpace& space, const std::string& name, std::string_view text)
        : space_(space), what_("latency table " + quoted(name)), file_(Json::parse(text, what_)) {}

    CostTable read(const std::string& name) {
        header();
        CostTable cost;
        cost.name = "latency@" + name;
        const auto time = nanoseconds(unit_);
        factor_ = time.value_or(parts);
        cost.unit = time ? "ns" : "1e-9 " + unit_;
        if (const Json* formula = file_.find("global");
            formula != nullptr && formula->is(Json::Kind::string)) {
            CostTable computed = SpaceReader(space_.text_, space_.variables_)
                                     .read_another_cost(space_, cost.name, formulas(), what_);
            computed.about = "formulas of " + name;
            computed.unit = cost.unit;
            return computed;
        }
        cost.about = "sum of the rows of " + name;
        const Json* global = member(file_, "global", Json::Kind::array, false);
        add_global(global == nullptr ? std::vector<Part>() : parts_of(*global, nullptr),
                   cost.global);
        const Json* layers = member(file_, "layers", Json::Kind::object, false);
        for (const LayerGroup& group : space_.groups()) {
            LayerCosts costs;
            costs.options = group.options;
            const Json* rows =
                layers == nullptr ? nullptr : layers->find(space_.genes()[group.depth_gene].name);
            std::vector<std::size_t> used =
                rows == nullptr ? std::vector<std::size_t>() : slots_of(*rows, group);
            for (const std::size_t slot : used) {
                costs.projection.terms.push_back({slot, costs.projection.rows});
                costs.projection.rows *= space_.values_of_slot(slot).size();
                if (costs.projection.rows > most_entries / costs.options)
                    fail("has more than 16,777,216 different layers");
            }
            costs.values.assign(costs.projection.rows * costs.options, 0);
            if (rows != nullptr) {
                const std::vector<Part> parts = parts_of(*rows, &group);
                check_steps(parts.size(), costs.values.size());
                for (const Part& part : parts) add_layers(part, group, costs);
            }
            cost.groups.push_back(std::move(costs));
        }
        return cost;
    }

  private:
    [[noreturn]] void fail(const std::string& why) const { throw Error(what_ + ": " + why); }

    // A cost as a space file has it.
    [[nodiscard]] Json formulas() const {
        const auto scaled = [&](const Json& formula) {
            if (factor_ == 1 || !formula.is(Json::Kind::string)) return formula;
            return Json::string(std::to_string(factor_) + " * (" + formula.text() + ")");
        };
        Json::Members layers;
        if (const Json* found = member(file_, "layers", Json::Kind::object, false))
            for (const auto& [depth, formula] : found->members())
                layers.emplace_back(depth, scaled(formula));
        return Json::object({{"global", scaled(*file_.find("global"))},
                             {"layers", Json::object(std::move(layers))}});
    }

    [[nodiscard]] const Json* member(const Json& object, const std::string& name, Json::Kind kind,
                                     bool required) const {
        const Json* found = object.find(name);
        if (found == nullptr && required) fail("\"" + name + "\" is missing");
        if (found != nullptr && !found->is(kind))
            fail("\"" + name + "\" must be " + kind_name(kind));
        return found;
    }

    void header() {
        if (!file_.is(Json::Kind::object)) fail("must be an object");
        if (member(file_, "format", Json::Kind::string, true)->text() != "hytas-latency")
            fail("\"format\" must be \"hytas-latency\"");
        if (member(file_, "version", Json::Kind::number, true)->text() != "1")
            fail("\"version\" must be 1");
        const std::string& space = member(file_, "space", Json::Kind::string, true)->text();
        if (space != space_.name())
            fail("is of space " + quoted(space) + ", not of " + quoted(space_.name()));
        unit_ = member(file_, "unit", Json::Kind::string, true)->text();
        if (unit_.empty()) fail("\"unit\" must not be empty");
        if (const Json* variables = member(file_, "variables", Json::Kind::object, false))
            for (const auto& [name, value] : variables->members()) {
                const auto own = space_.variables().find(name);
                if (own == space_.variables().end() || !value.is(Json::Kind::number) ||
                    value.text() != std::to_string(own->second))
                    fail("was measured with " + name + " " + value.dump() +
                         (own == space_.variables().end()
                              ? ""
                              : ", not " + std::to_string(own->second)));
            }
        for (const auto& entry : file_.members())
            if (entry.first != "format" && entry.first != "version" && entry.first != "space" &&
                entry.first != "unit" && entry.first != "variables" && entry.first != "about" &&
                entry.first != "conditions" && entry.first != "global" && entry.first != "layers")
                fail("has no entry " + quoted(entry.first));
        if (const Json* layers = file_.find("layers"))
            for (const auto& entry : layers->members())
                if (std::none_of(space_.groups().begin(), space_.groups().end(),
                                 [&](const LayerGroup& group) {
                                     return space_.genes()[group.depth_gene].name == entry.first;
                                 }))
                    fail("\"layers\": no gene belongs to layers of " + quoted(entry.first));
    }

    Place place_of(const std::string& name, const LayerGroup* group) const {
        for (std::size_t i = 0; i < space_.genes().size(); ++i) {
            const Gene& gene = space_.genes()[i];
            if (gene.group >= 0) {
                if (gene.name == name &&
                    group == &space_.groups()[static_cast<std::size_t>(gene.group)])
                    return {&gene.values(), true, gene.slot};
                continue;
            }
            for (std::size_t element = 0; element < std::max<std::size_t>(1, gene.length);
                 ++element)
                if (name == (gene.length == 0 ? gene.name
                                              : gene.name + "[" + std::to_string(element) + "]"))
                    return {&gene.values(element), false, gene.slot + element};
        }
        fail("no gene " + quoted(name) + " can decide this row");
    }

    [[nodiscard]] const Json& when_of(const Json& row) const {
        if (!row.is(Json::Kind::object)) fail("a row must be an object with \"when\" and \"cost\"");
        return *member(row, "when", Json::Kind::object, true);
    }

    [[nodiscard]] std::vector<std::size_t> slots_of(const Json& rows,
                                                    const LayerGroup& group) const {
        if (!rows.is(Json::Kind::array)) fail("the rows of layers must be a list");
        std::vector<std::size_t> slots;
        for (const Json& row : rows.items())
            for (const auto& entry : when_of(row).members()) {
                const Place place = place_of(entry.first, &group);
                if (!place.layer &&
                    std::find(slots.begin(), slots.end(), place.slot) == slots.end())
                    slots.push_back(place.slot);
            }
        return slots;
    }

    [[nodiscard]] std::size_t index_in(const Values& values, const std::string& name,
                                       const Json& value) const {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const bool number = value.is(Json::Kind::number) && !values.numbers.empty();
            if (number ? Rational::parse(value.text(), what_) == values.numbers[i]
                       : value.is(Json::Kind::string) && values.numbers.empty() &&
                             value.text() == values.all[i].text())
                return i;
        }
        fail("\"when\": " + name + " " + value.dump() + " is not one of its values");
    }

    [[nodiscard]] std::int64_t cost_of(const Json& row) const {
        const std::string& text = member(row, "cost", Json::Kind::number, true)->text();
        if (text[0] == '-') fail("cost " + text + " must not be negative");
        const std::int64_t cost = Rational::product_up(text, factor_, what_ + ": cost");
        if (cost > most_cost) fail("cost " + text + " is too large");
        return cost;
    }

    // The values that an entry of a row names: one, or a list without repetition.
    [[nodiscard]] std::vector<std::size_t> indices_in(const Values& values, const std::string& name,
                                                      const Json& entry) const {
        if (!entry.is(Json::Kind::array)) return {index_in(values, name, entry)};
        if (entry.items().empty()) fail("\"when\": the list of " + name + " is empty");
        std::vector<std::size_t> indices;
        std::vector<bool> named(values.size(), false);
        for (const Json& value : entry.items()) {
            indices.push_back(index_in(values, name, value));
            if (named[indices.back()])
                fail("\"when\": the list of " + name + " has " + value.dump() + " twice");
            named[indices.back()] = true;
        }
        return indices;
    }

    // Each must have every combination of its genes once.
    std::vector<Part> parts_of(const Json& rows, const LayerGroup* group) {
        std::map<std::vector<std::string>, std::vector<Row>> tables;  // by the names of their genes
        for (const Json& row : rows.items()) {
            std::vector<std::pair<std::string_view, const Json*>> when;
            for (const auto& [name, entry] : when_of(row).members())
                when.emplace_back(name, &entry);
            std::sort(when.begin(), when.end(),
                      [](const auto& left, const auto& right) { return left.first < right.first; });
            std::vector<std::string> names;
            Row found;
            found.when = &when_of(row);
            for (const auto& [name, entry] : when) {
                names.emplace_back(name);
                found.indices.push_back(
                    indices_in(*place_of(names.back(), group).values, names.back(), *entry));
            }
            found.cost = cost_of(row);
            tables[names].push_back(std::move(found));
        }
        std::vector<Part> parts;
        for (const auto& [names, found] : tables) parts.push_back(part_of(names, found, group));
        return parts;
    }

    Part part_of(const std::vector<std::string>& names, const std::vector<Row>& rows,
                 const LayerGroup* group) {
        const std::string genes = names.empty() ? "no gene" : join(names);
        Part part;
        std::size_t combinations = 1;
        for (const std::string& name : names) {
            part.places.push_back(place_of(name, group));
            combinations *= part.places.back().values->size();
            if (combinations > most_entries)
                fail("has more than 16,777,216 combinations of " + genes);
        }
        entries_ += combinations;
        if (entries_ > most_entries)
            fail("has more than 16,777,216 combinations of genes in all of its parts");
        part.costs.assign(combinations, no_cost);
        std::size_t covered = 0;
        for (const Row& row : rows) covered += cover(row, part);
        if (covered != combinations)
            fail("has " + std::to_string(covered) + " of the " + std::to_string(combinations) +
                 " combinations of " + genes);
        return part;
    }

    // Sets the cost of every combination that a row holds for, and returns how many they are.
    std::size_t cover(const Row& row, Part& part) const {
        std::vector<std::size_t> cells = {0};
        for (std::size_t i = 0; i < part.places.size(); ++i) {
            std::vector<std::size_t> longer;
            longer.reserve(cells.size() * row.indices[i].size());
            for (const std::size_t cell : cells)
                for (const std::size_t index : row.indices[i])
                    longer.push_back(cell * part.places[i].values->size() + index);
            cells = std::move(longer);
        }
        for (const std::size_t cell : cells) {
            if (part.costs[cell] != no_cost)
                fail("two rows have the same \"when\" " + described(cell, row, part));
            part.costs[cell] = row.cost;
        }
        return cells.size();
    }

    // One combination of a row, with the names in the row's order.
    [[nodiscard]] std::string described(std::size_t cell, const Row& row, const Part& part) const {
        Json::Members members = row.when->members();
        std::vector<std::size_t> order(members.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
            return members[left].first < members[right].first;
        });
        for (std::size_t i = order.size(); i-- > 0; cell /= part.places[i].values->size())
            members[order[i]].second =
                part.places[i].values->all[cell % part.places[i].values->size()];
        return Json::object(std::move(members)).dump();
    }

    // Many parts over many combinations would take too long to add up.
    void check_steps(std::size_t parts, std::size_t combinations) const {
        if (parts > most_steps / std::max<std::size_t>(1, combinations))
            fail("takes more than 268,435,456 steps to add up: " + std::to_string(parts) +
                 " parts over " + std::to_string(combinations) + " combinations of genes");
    }

    void add_global(const std::vector<Part>& parts, std::vector<std::int64_t>& into) const {
        check_steps(parts.size(), space_.combinations().size());
        std::vector<Projection> genes_of;
        for (const Part& part : parts) {
            Projection genes;
            for (std::size_t i = part.places.size(); i-- > 0;
                 genes.rows *= part.places[i].values->size())
                genes.terms.push_back({part.places[i].slot, genes.rows});
            genes_of.push_back(std::move(genes));
        }
        const auto value = [&](std::size_t i, const Gene8* genes) {
            return static_cast<Wide>(parts[i].costs[genes_of[i].row(genes)]);
        };
        sum_addends<Wide>(space_.combinations(), genes_of, value, [&](Wide sum) {
            if (sum > static_cast<Wide>(most_cost)) fail("its costs add up to too much");
            into.push_back(static_cast<std::int64_t>(sum));
        });
    }

    void add_layers(const Part& part, const LayerGroup& group, LayerCosts& into) const {
        for (std::size_t at = 0; at < into.values.size(); ++at) {
            std::size_t index = 0;
            for (const Place& place : part.places)
                index =
                    index * place.values->size() +
                    index_at(place, at / into.options, at % into.options, group, into.projection);
            into.values[at] += part.costs[index];
            if (into.values[at] > most_cost) fail("its costs add up to too much");
        }
    }

    static std::size_t index_at(const Place& place, std::size_t row, std::size_t option,
                                const LayerGroup& group, const Projection& projection) {
        if (place.layer) {
            for (std::size_t i = group.radix.size(); i-- > place.slot + 1;)
                option /= group.radix[i];
            return option % group.radix[place.slot];
        }
        for (const Projection::Term& term : projection.terms)
            if (term.slot == place.slot) return row / term.stride % place.values->size();
        return 0;
    }

    const SearchSpace& space_;
    std::string what_;
    Json file_;
    std::string unit_;
    std::int64_t factor_ = 1;
    std::size_t entries_ = 0;  // of all parts
};

SearchSpace SearchSpace::with_table(const std::string& name, std::string_view text) const {
    SearchSpace copy = *this;
    CostTable cost = LatencyReader(*this, name, text).read(name);
    for (const CostTable& other : costs_)
        if (other.name == cost.name)
            throw Error("latency table " + quoted(name) + ": is there twice");
    copy.costs_.push_back(std::move(cost));
    copy.fingerprint_ =
        hytas::fingerprint(std::to_string(fingerprint_) + "|" + name + "|" + std::string(text));
    return copy;
}

}  // namespace hytas
