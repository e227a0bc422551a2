#include "expression.hpp"

#include <algorithm>

#include "expression_parser.hpp"
#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

// A long chain of definitions is a deep recursion: a bound keeps it inside the stack.
constexpr int most_deep = 5000;

Value truth(bool value) { return {Rational(value ? 1 : 0), -1}; }

const Rational& number_of(const Value& value) {
    if (value.label >= 0) throw Error("expression: a label can only be compared with == or !=");
    return value.number;
}

bool true_of(const Value& value) { return !(number_of(value) == Rational(0)); }

}  // namespace

Expressions::Root Expressions::add(Node node) {
    if (node.op == Op::slot) node.reads = node.slot + 1;
    for (const Root input : node.inputs) node.reads = std::max(node.reads, nodes_[input].reads);
    nodes_.push_back(std::move(node));
    return nodes_.size() - 1;
}

void Expressions::define_symbol(const std::string& name, const Symbol& symbol) {
    static const std::set<std::string> reserved = {"if",  "else", "and",   "or",  "not",
                                                   "min", "max",  "floor", "ceil"};
    const bool letters = !name.empty() && std::all_of(name.begin(), name.end(), is_name_letter) &&
                         !is_digit(name[0]);
    if (!letters || reserved.contains(name))
        throw Error("name " + quoted(name) +
                    ": must be letters, digits and '_', not a word of the expression language");
    if (!symbols_.emplace(name, symbol).second)
        throw Error("name " + quoted(name) + ": is defined twice");
}

void Expressions::define_constant(const std::string& name, Rational value) {
    define_symbol(name, {Symbol::Kind::node, add({Op::constant, {value, -1}, 0, {}, 0}), 0, 0});
}

void Expressions::define_label(const std::string& name, const std::string& label) {
    const Value value{Rational(0), intern_label(label)};
    define_symbol(name, {Symbol::Kind::node, add({Op::constant, value, 0, {}, 0}), 0, 0});
}

void Expressions::define_gene(const std::string& name, std::size_t slot, std::size_t length) {
    define_symbol(name, {Symbol::Kind::gene, 0, slot, length});
}

void Expressions::define(const std::string& name, const std::string& text) {
    define_symbol(name, {Symbol::Kind::node, parse(text, "definition " + quoted(name)), 0, 0});
}

Expressions::Root Expressions::parse(const std::string& text, const std::string& what) {
    return ExpressionParser(*this, text, what).whole();
}

std::int32_t Expressions::intern_label(const std::string& label) {
    const auto index = static_cast<std::int32_t>(std::find(labels_.begin(), labels_.end(), label) -
                                                 labels_.begin());
    if (static_cast<std::size_t>(index) == labels_.size()) labels_.push_back(label);
    return index;
}

Value Expressions::evaluate(Root root, Environment& environment) const {
    environment.known_.resize(nodes_.size());
    return step(root, environment, 0);
}

Value Expressions::arithmetic(Op op, const Value& left, const Value& right) {
    if (op == Op::equal || op == Op::not_equal) {
        if ((left.label < 0) != (right.label < 0))
            throw Error("expression: a label is compared with a number");
        const bool same = left.label < 0 ? left.number == right.number : left.label == right.label;
        return truth(same == (op == Op::equal));
    }
    const Rational& a = number_of(left);
    const Rational& b = number_of(right);
    switch (op) {
        case Op::add: return {a + b, -1};
        case Op::subtract: return {a - b, -1};
        case Op::multiply: return {a * b, -1};
        case Op::divide: return {a / b, -1};
        case Op::floor_divide: return {Rational((a / b).floor()), -1};
        case Op::modulo: return {a - b * Rational((a / b).floor()), -1};
        case Op::less: return truth(a < b);
        case Op::less_equal: return truth(!(b < a));
        case Op::minimum: return {b < a ? b : a, -1};
        default: return {a < b ? b : a, -1};  // maximum
    }
}

Value Expressions::logical(const Node& node, Environment& environment, int depth) const {
    const bool first = true_of(step(node.inputs[0], environment, depth));
    switch (node.op) {
        case Op::logical_not: return truth(!first);
        case Op::logical_and:
            return truth(first && true_of(step(node.inputs[1], environment, depth)));
        case Op::logical_or:
            return truth(first || true_of(step(node.inputs[1], environment, depth)));
        default: return step(node.inputs[first ? 1 : 2], environment, depth);  // choose
    }
}

const Value& Expressions::step(Root root, Environment& environment, int depth) const {
    const Node& node = nodes_[root];
    if (node.op == Op::constant) return node.value;
    if (node.op == Op::slot) return environment.slots_[node.slot];
    Environment::Known& known = environment.known_[root];
    if (known.time >= environment.changed_[node.reads]) return known.value;
    if (depth > most_deep) throw Error("expression: operations are nested more than 5,000 deep");
    known.value = compute(node, environment, depth + 1);
    known.time = environment.now_;
    return known.value;
}

Value Expressions::compute(const Node& node, Environment& environment, int depth) const {
    switch (node.op) {
        case Op::logical_and:
        case Op::logical_or:
        case Op::logical_not:
        case Op::choose: return logical(node, environment, depth);
        case Op::negate:
            return {Rational(0) - number_of(step(node.inputs[0], environment, depth)), -1};
        case Op::floor:
            return {Rational(number_of(step(node.inputs[0], environment, depth)).floor()), -1};
        case Op::ceil:
            return {Rational(number_of(step(node.inputs[0], environment, depth)).ceil()), -1};
        default: break;
    }
    Value result = step(node.inputs[0], environment, depth);
    for (std::size_t i = 1; i < node.inputs.size(); ++i)
        result = arithmetic(node.op, result, step(node.inputs[i], environment, depth));
    return result;
}

void Expressions::visit(Root root, std::set<Root>& seen) const {
    if (!seen.insert(root).second) return;
    for (const Root input : nodes_[root].inputs) visit(input, seen);
}

std::set<std::size_t> Expressions::slots_of(Root root) const {
    std::set<Root> seen;
    visit(root, seen);
    std::set<std::size_t> slots;
    for (const Root node : seen)
        if (nodes_[node].op == Op::slot) slots.insert(nodes_[node].slot);
    return slots;
}

std::vector<Expressions::Root> Expressions::addends(Root root) const {
    if (nodes_[root].op != Op::add) return {root};
    std::vector<Root> all;
    for (const Root input : nodes_[root].inputs)
        for (const Root one : addends(input)) all.push_back(one);
    return all;
}

}  // namespace hytas
