// The cost expressions of a space file: exact arithmetic over names, in the notation of Python.
//
//     + - * / // %   < <= > >= == !=   and or not   a if condition else b   min(..) max(..) floor(x) ceil(x)   name[2]   'label'
//
// Numbers are exact fractions; labels ('conv') can only be compared for equality.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hytas/rational.hpp"

namespace hytas {

// What a name or an expression stands for: a number, or a label (then `label` is its index among the known labels).
struct Value {
    Rational number;
    std::int32_t label = -1;
};

// The inputs of an evaluation: the value of every gene slot, and the index of the layer.
struct Environment {
    std::vector<Value> slots;
    std::int64_t layer = 0;
};

class Expressions {
  public:
    using Root = std::size_t;

    // Names that later expressions may use. A gene has `length` slots from `slot` on (name[i]); a scalar has length 0.
    void define_constant(const std::string& name, Rational value);
    void define_gene(const std::string& name, std::size_t slot, std::size_t length);
    void define_layer_index(const std::string& name);
    void define(const std::string& name, const std::string& text);
    bool knows(const std::string& name) const { return symbols_.contains(name); }

    // `what` names the expression in messages. Throws Error on a syntax error or an unknown name.
    Root parse(const std::string& text, const std::string& what);
    Value evaluate(Root root, const Environment& environment) const;

    // The gene slots that an expression reads, definitions included.
    std::set<std::size_t> slots_of(Root root) const;
    bool uses_layer_index(Root root) const;

    // The expressions whose sum an expression is: itself alone, if it is no sum.
    std::vector<Root> addends(Root root) const;

    std::int32_t intern_label(const std::string& label);

  private:
    friend class ExpressionParser;

    enum class Op {
        constant,
        slot,
        layer,
        add,
        subtract,
        multiply,
        divide,
        floor_divide,
        modulo,
        negate,
        less,
        less_equal,
        equal,
        not_equal,
        logical_and,
        logical_or,
        logical_not,
        choose,
        minimum,
        maximum,
        floor,
        ceil
    };
    struct Node {
        Op op = Op::constant;
        Value value;               // constant
        std::size_t slot = 0;      // slot
        std::vector<Root> inputs;  // operands
    };
    struct Symbol {
        enum class Kind { node, gene } kind = Kind::node;
        Root root = 0;
        std::size_t slot = 0;
        std::size_t length = 0;
    };

    Root add(Node node);
    Value step(Root root, const Environment& environment, int& left) const;
    Value logical(const Node& node, const Environment& environment, int& left) const;
    static Value arithmetic(Op op, const Value& left, const Value& right);
    void define_symbol(const std::string& name, const Symbol& symbol);
    void visit(Root root, std::set<Root>& seen) const;

    std::vector<Node> nodes_;
    std::map<std::string, Symbol> symbols_;
    std::vector<std::string> labels_;
};

}  // namespace hytas
