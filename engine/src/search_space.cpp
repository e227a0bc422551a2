#include "hytas/search_space.hpp"

#include <algorithm>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

std::vector<std::string> SearchSpace::cost_names() const {
    std::vector<std::string> names;
    for (const CostTable& cost : costs_) names.push_back(cost.name);
    return names;
}

std::size_t SearchSpace::cost_index(const std::string& cost) const {
    for (std::size_t i = 0; i < costs_.size(); ++i)
        if (costs_[i].name == cost) return i;
    const std::string near = nearest(cost, cost_names());
    throw Error("cost " + quoted(cost) + ": space " + name_ + " has " + join(cost_names()) +
                (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

Wide SearchSpace::size() const {
    Wide total = 0;
    for (std::size_t i = 0; i < combinations_.size(); ++i) {
        Wide here = 1;
        for (const LayerGroup& group : groups_)
            for (std::size_t layer = 0; layer < group.depth(combinations_.genes(i)); ++layer)
                here = checked_multiply(here, group.options);
        total = checked_add(total, here);
    }
    return total;
}

std::int64_t SearchSpace::cost(std::size_t index, const Gene8* genome) const {
    const CostTable& table = costs_[index];
    std::int64_t total = table.global[combinations_.of(genome)];
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        const LayerGroup& group = groups_[g];
        const LayerCosts& layers = table.groups[g];
        const std::size_t depth = group.depth(genome);
        const std::size_t row = layers.projection.row(genome);
        const Gene8* at = genome + group.offset;
        for (std::size_t layer = 0; layer < depth; ++layer, at += group.radix.size())
            total = table.join(total, layers.of(row, layer)[group.option(at)]);
    }
    return total;
}

std::string SearchSpace::complaint(GenomeView genome) const {
    if (genome.size() != genome_length_)
        return "has " + std::to_string(genome.size()) + " genes; a genome of " + name_ + " has " +
               std::to_string(genome_length_);
    for (std::size_t slot = 0; slot < slot_gene_.size(); ++slot) {
        const Gene& gene = gene_of_slot(slot);
        if (genome[slot] >= values_of_slot(slot).size())
            return gene.name + " index " + std::to_string(genome[slot]) + " is not below " +
                   std::to_string(values_of_slot(slot).size());
    }
    for (const LayerGroup& group : groups_) {
        const std::size_t depth = group.depth(genome.data());
        const Gene8* at = genome.data() + group.offset;
        for (std::size_t layer = 0; layer < group.most_layers; ++layer)
            for (std::size_t i = 0; i < group.radix.size(); ++i, ++at)
                if (*at >= (layer < depth ? group.radix[i] : 1))
                    return genes_[group.genes[i]].name + " index " + std::to_string(*at) +
                           " of layer " + std::to_string(layer) +
                           (layer < depth ? " is out of range" : " is beyond the depth: must be 0");
    }
    if (combinations_.of(genome.data()) != Combinations::none) return "";
    for (const Requirement& rule : requirements_)
        if (rule.broken[rule.genes.row(genome.data())]) return complaint(rule, genome);
    return "";
}

std::string SearchSpace::complaint(const Requirement& rule, GenomeView genome) const {
    std::vector<std::string> facts;
    for (std::size_t slot = 0; slot < slot_gene_.size(); ++slot)
        if (std::any_of(rule.genes.terms.begin(), rule.genes.terms.end(),
                        [&](const Projection::Term& term) { return term.slot == slot; }))
            facts.push_back(gene_of_slot(slot).name + " " +
                            values_of_slot(slot).all[genome[slot]].text());
    for (const std::string& name : rule.variables)
        facts.push_back(name + " " + std::to_string(variables_.at(name)));
    return join(facts) + ": must satisfy " + quoted(rule.text, 200) + " in space " + name_;
}

void SearchSpace::check(GenomeView genome) const {
    const std::string why = complaint(genome);
    if (!why.empty()) throw Error("genome: " + why);
}

bool SearchSpace::valid(GenomeView genome) const { return complaint(genome).empty(); }

Gene8 SearchSpace::index_of(const Gene& gene, const Values& values, const Json& value) const {
    const bool labels = values.numbers.empty();
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (labels && value.is(Json::Kind::string) && value.text() == values.all[i].text())
            return static_cast<Gene8>(i);
        if (!labels && value.is(Json::Kind::number) &&
            Rational::parse(value.text(), gene.name) == values.numbers[i])
            return static_cast<Gene8>(i);
    }
    std::vector<std::string> known;
    for (const Json& one : values.all) known.push_back(one.text());
    const bool scalar = value.is(Json::Kind::number) || value.is(Json::Kind::string);
    throw Error(gene.name + " " + (scalar ? quoted(value.text()) : kind_name(value.kind())) +
                ": must be one of " + join(known) + " in space " + name_);
}

void SearchSpace::pack_gene(const Gene& gene, const Json& value, Genome& genome) const {
    if (gene.group < 0 && gene.length == 0) {
        genome[gene.slot] = index_of(gene, gene.values(), value);
        return;
    }
    std::size_t expected = gene.length;
    std::size_t first = gene.slot;
    std::size_t stride = 1;
    std::string rule = "must be a list of " + std::to_string(expected) + " values";
    if (gene.group >= 0) {
        const LayerGroup& group = groups_[static_cast<std::size_t>(gene.group)];
        expected = group.depth(genome.data());
        first = group.offset + gene.slot;
        stride = group.radix.size();
        rule = "must be a list of " + std::to_string(expected) + " values, one a layer (" +
               genes_[group.depth_gene].name + ")";
    }
    if (!value.is(Json::Kind::array))
        throw Error(gene.name + " " + quoted(value.dump()) + ": " + rule);
    if (value.items().size() != expected)
        throw Error(gene.name + ": " + rule + ", not " + std::to_string(value.items().size()));
    for (std::size_t i = 0; i < expected; ++i)
        genome[first + i * stride] = index_of(gene, gene.values(i), value.items()[i]);
}

Genome SearchSpace::pack(const Json& architecture) const {
    if (!architecture.is(Json::Kind::object))
        throw Error("architecture: must be an object with one entry a gene");
    for (const auto& member : architecture.members()) {
        const std::string& name = member.first;
        const Json& value = member.second;
        if (name == "space") {
            if (!value.is(Json::Kind::string) || value.text() != name_)
                throw Error("architecture: is of space " + quoted(value.text()) + ", not of " +
                            quoted(name_));
            continue;
        }
        const auto known = [&name](const Gene& gene) { return gene.name == name; };
        const auto fixed = std::find_if(fixed_.begin(), fixed_.end(), known);
        if (fixed != fixed_.end()) {
            static_cast<void>(index_of(*fixed, fixed->values(), value));
            continue;
        }
        if (std::none_of(genes_.begin(), genes_.end(), known))
            throw Error("architecture: space " + name_ + " has no gene " + quoted(name));
    }
    Genome genome(genome_length_);
    // Global genes first: the depth says how long the lists of the layers must be.
    for (const bool global : {true, false}) {
        for (const Gene& gene : genes_) {
            if ((gene.group < 0) != global) continue;
            const Json* value = architecture.find(gene.name);
            if (value == nullptr && gene.absent >= 0)
                value = &gene.values().all[static_cast<std::size_t>(gene.absent)];
            if (value == nullptr)
                throw Error("architecture: gene " + quoted(gene.name) + " is missing");
            pack_gene(gene, *value, genome);
        }
    }
    check(genome);
    return genome;
}

Json SearchSpace::unpack(GenomeView genome) const {
    check(genome);
    Json::Members members;
    members.emplace_back("space", Json::string(name_));
    for (const Gene& gene : genes_) {
        if (gene.group < 0 && gene.length == 0) {
            members.emplace_back(gene.name, gene.values().all[genome[gene.slot]]);
            continue;
        }
        std::vector<Json> items;
        if (gene.group < 0) {
            for (std::size_t i = 0; i < gene.length; ++i)
                items.push_back(gene.values(i).all[genome[gene.slot + i]]);
        } else {
            const LayerGroup& group = groups_[static_cast<std::size_t>(gene.group)];
            for (std::size_t layer = 0; layer < group.depth(genome.data()); ++layer)
                items.push_back(
                    gene.values()
                        .all[genome[group.offset + layer * group.radix.size() + gene.slot]]);
        }
        members.emplace_back(gene.name, Json::array(std::move(items)));
    }
    return Json::object(std::move(members));
}

std::string SearchSpace::key(GenomeView genome) const {
    const Json architecture = unpack(genome);
    std::string text = name_ + ":";
    for (std::size_t i = 0; i < genes_.size(); ++i) {
        const Json& value = architecture.members()[i + 1].second;
        std::vector<std::string> parts;
        if (value.is(Json::Kind::array))
            for (const Json& item : value.items()) parts.push_back(item.text());
        else
            parts.push_back(value.text());
        // '.' separates layers, so a decimal point becomes 'p': 3.5 is 3p5. A key is also a safe
        // file name.
        for (std::string& part : parts) std::replace(part.begin(), part.end(), '.', 'p');
        text += (i == 0 ? "" : "-") + genes_[i].key + join(parts, ".");
    }
    return text;
}

SearchSpace SearchSpace::builtin(const std::string& name, const Variables& variables) {
    return parse(builtin_space_text(name), variables);
}

}  // namespace hytas
