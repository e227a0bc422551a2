#include "space_reader.hpp"

#include <algorithm>
#include <cctype>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

// Of global genes, allowed or not: rows of a projection are counted in 64 bits.
constexpr std::size_t most_combinations = std::size_t{1} << 62;
constexpr std::size_t most_options = std::size_t{1} << 16;
constexpr std::size_t most_layers = 255;
constexpr std::size_t most_block_options = std::size_t{1} << 12;

bool in_a_word(unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; }

// Keys and labels make an architecture's key, which is a file name, and reads back in one way.
bool plain(const std::string& word) {
    return !word.empty() && std::all_of(word.begin(), word.end(), in_a_word);
}

// Whether an expression holds the word.
bool names(const std::string& text, const std::string& word) {
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
        const std::size_t end = at + word.size();
        if ((at == 0 || !in_a_word(text[at - 1])) && (end == text.size() || !in_a_word(text[end])))
            return true;
    }
    return false;
}

}  // namespace

SearchSpace SearchSpace::parse(std::string_view text, const Variables& variables) {
    return SpaceReader(text, variables).read();
}

SpaceReader::SpaceReader(std::string_view text, const Variables& variables)
    : file_(Json::parse(text, "space file")), given_(variables) {
    std::string identity(text);
    for (const auto& [name, value] : variables)
        identity += "|" + name + "=" + std::to_string(value);
    space_.fingerprint_ = hytas::fingerprint(identity);
    space_.text_ = text;
}

SearchSpace SpaceReader::read() {
    read_genome();
    read_requirements();
    read_costs();
    return std::move(space_);
}

CostTable SpaceReader::read_another_cost(const SearchSpace& space, const std::string& name,
                                         const Json& body, const std::string& what) {
    read_genome();
    what_ = what;
    space_.combinations_ = space.combinations_;
    return read_cost(name, body);
}

void SpaceReader::read_genome() {
    read_header();
    read_variables();
    read_genes();
    lay_out();
    define_names();
}

void SpaceReader::fail(const std::string& why) const { throw Error(what_ + ": " + why); }

const Json* SpaceReader::member(const Json& object, const std::string& name, Json::Kind kind,
                                bool required) const {
    const Json* found = object.find(name);
    if (found == nullptr) {
        if (required) fail("\"" + name + "\" is missing");
        return nullptr;
    }
    if (!found->is(kind))
        fail("\"" + name + "\" must be " + kind_name(kind) + ", not " + kind_name(found->kind()));
    return found;
}

void SpaceReader::known_members(const Json& object, const std::string& what,
                                const std::vector<std::string>& names) const {
    for (const auto& entry : object.members())
        if (std::find(names.begin(), names.end(), entry.first) == names.end())
            fail(what + " has no entry " + quoted(entry.first) + "; it may have " + join(names));
}

void SpaceReader::read_header() {
    if (!file_.is(Json::Kind::object)) fail("must be an object");
    known_members(file_, "a space",
                  {"format", "version", "name", "about", "variables", "genes", "definitions",
                   "require", "costs"});
    if (member(file_, "format", Json::Kind::string, true)->text() != "hytas-space")
        fail("\"format\" must be \"hytas-space\"");
    const std::string& version = member(file_, "version", Json::Kind::number, true)->text();
    if (version != "1")
        fail("\"version\" " + version + " is not known to this engine, which reads version 1");
    const std::string& name = member(file_, "name", Json::Kind::string, true)->text();
    const auto plain = [](char letter) {
        return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9') ||
               letter == '-';
    };
    if (name.empty() || name.size() > 60 || !std::all_of(name.begin(), name.end(), plain))
        fail("\"name\" " + quoted(name) + " must be of a-z, 0-9 and '-'");
    space_.name_ = name;
    what_ += " " + quoted(name);
    if (const Json* about = member(file_, "about", Json::Kind::string, false))
        space_.about_ = about->text();
}

void SpaceReader::read_variables() {
    const Json* variables = member(file_, "variables", Json::Kind::object, false);
    const Json none = Json::object({});
    const Json& known = variables == nullptr ? none : *variables;
    for (const auto& [name, value] : given_)
        if (known.find(name) == nullptr) {
            std::vector<std::string> names;
            for (const auto& entry : known.members()) names.push_back(entry.first);
            throw Error("variable " + quoted(name) + ": space " + space_.name_ + " has " +
                        (names.empty() ? "none" : join(names)));
        }
    for (const auto& variable : known.members()) {
        const std::string& name = variable.first;
        const Json& body = variable.second;
        if (!body.is(Json::Kind::object)) fail("variable " + quoted(name) + " must be an object");
        known_members(body, "a variable", {"about", "default", "minimum", "maximum"});
        const auto number = [&](const char* entry, std::int64_t fallback) {
            const Json* value = member(body, entry, Json::Kind::number, false);
            if (value == nullptr) return fallback;
            const Rational parsed = Rational::parse(value->text(), "space file: " + name);
            if (!parsed.whole())
                fail("variable " + quoted(name) + ": \"" + entry + "\" must be a whole number");
            return parsed.numerator();
        };
        const auto given = given_.find(name);
        if (given == given_.end() && body.find("default") == nullptr)
            throw Error("variable " + quoted(name) + ": is missing; space " + space_.name_ +
                        " needs it");
        const std::int64_t value = given == given_.end() ? number("default", 0) : given->second;
        const std::int64_t low = number("minimum", 0);
        const std::int64_t high = number("maximum", 1000000);
        if (low > high)
            fail("variable " + quoted(name) + ": \"minimum\" " + std::to_string(low) +
                 " is more than \"maximum\" " + std::to_string(high));
        if (value < low || value > high)
            throw Error("variable " + name + " " + std::to_string(value) + ": must be " +
                        std::to_string(low) + " to " + std::to_string(high) + " in space " +
                        space_.name_);
        space_.variables_[name] = value;
        expressions_.define_constant(name, value);
    }
}

void SpaceReader::read_genes() {
    const Json* genes = member(file_, "genes", Json::Kind::array, true);
    if (genes->items().empty()) fail("\"genes\" must not be empty");
    for (const Json& item : genes->items()) read_gene(item);
}

void SpaceReader::read_gene(const Json& item) {
    if (!item.is(Json::Kind::object)) fail("a gene must be an object");
    known_members(item, "a gene",
                  {"name", "key", "about", "values", "weights", "absent", "if", "length", "per"});
    Gene gene;
    gene.name = member(item, "name", Json::Kind::string, true)->text();
    const Json* key = member(item, "key", Json::Kind::string, false);
    gene.key = key == nullptr ? gene.name : key->text();
    if (gene.name == "space" || gene.name == "costs")
        fail("a gene must not be called " + quoted(gene.name) +
             ": files of architectures use the word");
    if (!plain(gene.key))
        fail("gene " + quoted(gene.name) + ": \"key\" " + quoted(gene.key) +
             " must be of letters, digits and '_'");
    for (const Gene& other : space_.genes_) {
        if (other.name == gene.name) fail("gene " + quoted(gene.name) + " is there twice");
        if (other.key == gene.key)
            fail("genes " + quoted(gene.name) + " and " + quoted(other.name) +
                 " have the same key");
    }
    read_lists(item, gene);
    place_gene(item, gene);
    read_weights(item, gene);
    read_absent(item, gene);
    if (is_there(item, gene)) {
        space_.genes_.push_back(std::move(gene));
        return;
    }
    const Json only = gene.values().all[static_cast<std::size_t>(gene.absent)];
    expressions_.define_label(gene.name, only.text());
    gene.lists = {Values{{only}, {}}};
    space_.fixed_.push_back(std::move(gene));
}

Values SpaceReader::read_values(const Json& list, const Gene& gene) const {
    const std::string what = "gene " + quoted(gene.name);
    if (!list.is(Json::Kind::array) || list.items().empty() || list.items().size() > 255)
        fail(what + " must have 1 to 255 values");
    Values values;
    values.all = list.items();
    const Json::Kind kind = values.all[0].kind();
    for (std::size_t i = 0; i < values.size(); ++i) {
        const Json& value = values.all[i];
        if (!value.is(kind) || !(kind == Json::Kind::number || kind == Json::Kind::string))
            fail(what + ": its values must be all numbers or all labels");
        if (kind == Json::Kind::string && !plain(value.text()))
            fail(what + ": label " + quoted(value.text()) + " must be of letters, digits and '_'");
        if (kind == Json::Kind::number)
            values.numbers.push_back(Rational::parse(value.text(), "gene " + gene.name));
        for (std::size_t j = 0; j < i; ++j)
            if (kind == Json::Kind::number ? values.numbers[j] == values.numbers[i]
                                           : values.all[j].text() == value.text())
                fail(what + " has the value " + quoted(value.text()) + " twice");
    }
    return values;
}

// "values" is a list; with "length" the gene is a list of so many of them; a list of lists gives
// each element its own.
void SpaceReader::read_lists(const Json& item, Gene& gene) const {
    const Json* values = member(item, "values", Json::Kind::array, true);
    const bool own = !values->items().empty() && values->items()[0].is(Json::Kind::array);
    if (own)
        for (const Json& list : values->items()) gene.lists.push_back(read_values(list, gene));
    else
        gene.lists.push_back(read_values(*values, gene));
    const Json* length = member(item, "length", Json::Kind::number, false);
    if (length == nullptr && !own) return;
    const Rational count = length == nullptr
                               ? Rational(static_cast<std::int64_t>(gene.lists.size()))
                               : Rational::parse(length->text(), "gene " + gene.name + " length");
    if (!count.whole() || count.numerator() < 1 || count.numerator() > 9)
        fail("gene " + quoted(gene.name) + ": a list must have 1 to 9 elements");
    gene.length = static_cast<std::size_t>(count.numerator());
    if (own && gene.length != gene.lists.size())
        fail("gene " + quoted(gene.name) + ": \"length\" does not match its lists of values");
}

// How much likelier one value of a global gene is than another when choices are drawn: a value that
// leaves other genes only one choice would else be as rare as they are many.
void SpaceReader::read_weights(const Json& item, Gene& gene) const {
    const Json* weights = member(item, "weights", Json::Kind::array, false);
    if (weights == nullptr) return;
    const std::string what = "gene " + quoted(gene.name) + ": \"weights\" ";
    if (gene.group >= 0 || gene.length != 0)
        fail(what + "are for a gene with one value, and not of a layer");
    if (weights->items().size() != gene.values().size())
        fail(what + "must be as many as its values");
    for (const Json& weight : weights->items()) {
        if (!weight.is(Json::Kind::number)) fail(what + "must be whole numbers of 1 to 1000");
        const Rational number = Rational::parse(weight.text(), "gene " + gene.name + " weights");
        if (!number.whole() || number.numerator() < 1 || number.numerator() > 1000)
            fail(what + "must be whole numbers of 1 to 1000");
        gene.weights.push_back(static_cast<std::uint32_t>(number.numerator()));
    }
}

// The value that older architectures, which lack the gene, have.
void SpaceReader::read_absent(const Json& item, Gene& gene) const {
    const Json* absent = member(item, "absent", Json::Kind::string, false);
    if (absent == nullptr) return;
    const std::string what = "gene " + quoted(gene.name) + ": \"absent\" ";
    if (gene.group >= 0 || gene.length != 0)
        fail(what + "is for a gene with one value, and not of a layer");
    const std::vector<Json>& values = gene.values().all;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (values[i].is(Json::Kind::string) && values[i].text() == absent->text())
            gene.absent = static_cast<int>(i);
    if (gene.absent < 0) fail(what + quoted(absent->text()) + " must be one of its labels");
}

// A gene whose condition on variables does not hold is no part of a genome: an architecture may
// name it, and it has the value "absent".
bool SpaceReader::is_there(const Json& item, const Gene& gene) {
    const Json* condition = item.find("if");
    if (condition == nullptr) return true;
    const std::string what = "gene " + quoted(gene.name) + ": \"if\"";
    if (gene.absent < 0) fail(what + " needs \"absent\"");
    environment_.resize(0);
    return !(number(expression(*condition, what), what) == Rational(0));
}

void SpaceReader::place_gene(const Json& item, Gene& gene) {
    const Json* per = member(item, "per", Json::Kind::string, false);
    if (per == nullptr) return;
    if (gene.length != 0)
        fail("gene " + quoted(gene.name) + ": \"length\" and \"per\" exclude each other");
    LayerGroup& group = group_of(per->text());
    gene.group = static_cast<int>(&group - space_.groups_.data());
    gene.slot = group.genes.size();
    group.genes.push_back(space_.genes_.size());
    group.radix.push_back(gene.values().size());
    group.options *= gene.values().size();
    if (group.options > most_options)
        fail("a layer of " + quoted(per->text()) + " has more than 65,536 combinations of genes");
}

LayerGroup& SpaceReader::group_of(const std::string& depth_gene) {
    for (LayerGroup& group : space_.groups_)
        if (space_.genes_[group.depth_gene].name == depth_gene) return group;
    for (std::size_t i = 0; i < space_.genes_.size(); ++i) {
        const Gene& gene = space_.genes_[i];
        if (gene.name != depth_gene) continue;
        LayerGroup group;
        group.depth_gene = i;
        if (gene.group >= 0 || gene.length != 0 || gene.values().numbers.empty())
            fail(quoted(depth_gene) + " must be one number to count layers");
        for (const Rational& depth : gene.values().numbers) {
            if (!depth.whole() || depth.numerator() < 0 ||
                depth.numerator() > static_cast<std::int64_t>(most_layers))
                fail(quoted(depth_gene) + " must be whole numbers of 0 to 255 to count layers");
            group.depths.push_back(static_cast<std::size_t>(depth.numerator()));
            group.most_layers = std::max(group.most_layers, group.depths.back());
        }
        space_.groups_.push_back(std::move(group));
        return space_.groups_.back();
    }
    fail("\"per\": no gene " + quoted(depth_gene) + " comes before");
}

// As many layers make a block as fit eight bytes and a table that stays in the cache.
void SpaceReader::decode_blocks(LayerGroup& group) {
    const std::size_t genes = group.radix.size();
    std::size_t options = group.options;
    for (; group.block_layers < group.most_layers && (group.block_layers + 1) * genes <= 8 &&
           options * group.options <= most_block_options;
         options *= group.options)
        ++group.block_layers;
    group.decoded.assign(options * group.stride(), 0);
    for (std::size_t option = 0; option < options; ++option) {
        std::size_t rest = option;
        for (std::size_t i = group.block_layers * genes; i-- > 0; rest /= group.radix[i % genes])
            group.decoded[option * group.stride() + i] =
                static_cast<Gene8>(rest % group.radix[i % genes]);
    }
}

void SpaceReader::lay_out() {
    std::size_t combinations = 1;
    for (std::size_t i = 0; i < space_.genes_.size(); ++i) {
        Gene& gene = space_.genes_[i];
        if (gene.group >= 0) continue;
        gene.slot = space_.slot_gene_.size();
        for (std::size_t element = 0; element < std::max<std::size_t>(gene.length, 1); ++element) {
            space_.slot_gene_.push_back(i);
            space_.slot_radix_.push_back(gene.values(element).size());
            if (gene.values(element).size() > most_combinations / combinations)
                fail(
                    "has more than 2^62 combinations of global genes, allowed or not; let some "
                    "belong to layers (\"per\")");
            combinations *= gene.values(element).size();
        }
    }
    space_.genome_length_ = space_.slot_gene_.size();
    for (LayerGroup& group : space_.groups_) {
        group.depth_slot = space_.genes_[group.depth_gene].slot;
        group.offset = space_.genome_length_;
        space_.genome_length_ += group.most_layers * group.genes.size();
        decode_blocks(group);
    }
    make_masks();
}

void SpaceReader::make_masks() {
    const std::size_t length = space_.genome_length_;
    const GenomeWords genome_words(length);
    GenomeMasks& masks = space_.masks_;
    masks.words = genome_words.count();
    masks.blocks = (length + 63) / 64;
    // Bytes [from, to) as bits and as whole bytes.
    const auto mark = [&](std::size_t from, std::size_t to, std::vector<std::uint64_t>& bits,
                          std::vector<std::uint64_t>& bytes) {
        Genome all(length);
        std::fill(all.begin() + static_cast<std::ptrdiff_t>(from),
                  all.begin() + static_cast<std::ptrdiff_t>(to), Gene8{0xff});
        for (std::size_t word = 0; word < masks.words; ++word)
            bytes.push_back(genome_words.load(all.data(), word));
        bits.resize(bits.size() + masks.blocks, 0);
        for (std::size_t byte = from; byte < to; ++byte)
            bits[bits.size() - masks.blocks + byte / 64] |= std::uint64_t{1} << (byte % 64);
    };
    mark(0, space_.slot_gene_.size(), masks.global_bits, masks.global_words);
    masks.radix.assign(space_.slot_radix_.begin(), space_.slot_radix_.end());
    for (const LayerGroup& group : space_.groups_) {
        masks.first.push_back(masks.layer_bits.size() / masks.blocks);
        for (const std::size_t depth : group.depths)
            mark(group.offset, group.offset + depth * group.genes.size(), masks.layer_bits,
                 masks.layer_words);
        for (std::size_t layer = 0; layer < group.most_layers; ++layer)
            masks.radix.insert(masks.radix.end(), group.radix.begin(), group.radix.end());
    }
    masks.all_bits.assign(masks.blocks, 0);
    masks.open_bits.assign(masks.blocks, 0);
    for (std::size_t byte = 0; byte < length; ++byte) {
        const std::uint64_t bit = std::uint64_t{1} << (byte % 64);
        masks.all_bits[byte / 64] |= bit;
        if (masks.radix[byte] > 1) masks.open_bits[byte / 64] |= bit;
    }
}

std::vector<Value> SpaceReader::known_values(const Values& values) {
    std::vector<Value> known;
    for (std::size_t i = 0; i < values.size(); ++i)
        known.push_back(values.numbers.empty()
                            ? Value{Rational(0), expressions_.intern_label(values.all[i].text())}
                            : Value{values.numbers[i], -1});
    return known;
}

void SpaceReader::define_names() {
    // In the order in which they change when costs are tabulated: what reads only the first ones is
    // kept longest.
    for (std::size_t slot = 0; slot < space_.global_slots(); ++slot)
        slot_values_.push_back(known_values(space_.values_of_slot(slot)));
    expressions_.define_gene("layer", slot_values_.size(), 0);
    slot_values_.emplace_back();
    for (const Gene& gene : space_.genes_) {
        layer_slots_.push_back(slot_values_.size());
        expressions_.define_gene(gene.name, gene.group < 0 ? gene.slot : slot_values_.size(),
                                 gene.length);
        if (gene.group >= 0) slot_values_.push_back(known_values(gene.values()));
    }
    environment_.resize(slot_values_.size());
    if (const Json* definitions = member(file_, "definitions", Json::Kind::object, false))
        for (const auto& [name, text] : definitions->members()) {
            if (!text.is(Json::Kind::string) && !text.is(Json::Kind::number))
                fail("definition " + quoted(name) + " must be an expression in quotes");
            expressions_.define(name, text.text());
        }
}

void SpaceReader::read_requirements() {
    const Json* rules = member(file_, "require", Json::Kind::array, false);
    for (const Json& rule : rules == nullptr ? std::vector<Json>() : rules->items()) {
        const Expressions::Root root = expression(rule, "require");
        Requirement found{rule.text(), projection_of(root, -1, "require"), {}, {}};
        if (found.genes.rows > Combinations::most)
            fail("require " + quoted(found.text) +
                 " reads genes of more than 1,048,576 combinations; write it as several "
                 "requirements");
        for (std::size_t row = 0; row < found.genes.rows; ++row) {
            set_row(found.genes, row);
            found.broken.push_back(whole_cost(number(root, "require"), "require") == 0);
        }
        for (const auto& [name, value] : space_.variables_)
            if (names(found.text, name)) found.variables.push_back(name);
        space_.requirements_.push_back(std::move(found));
    }
    try {
        space_.combinations_ = Combinations(space_.slot_radix_, space_.requirements_);
    } catch (const Error& error) {
        fail(error.what());
    }
}

}  // namespace hytas
