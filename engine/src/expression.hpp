// The cost expressions of a space file: exact arithmetic over names, in the notation of Python.
//
//     + - * / // %   < <= > >= == !=   and or not   a if condition else b   min(..) max(..)
//     floor(x) ceil(x)   name[2]   'label'
//
// Numbers are exact fractions; labels ('conv') can only be compared for equality.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "hytas/detail/rational.hpp"

namespace hytas {

// What a name or an expression stands for: a number, or a label (then `label` is its index among
// the known labels).
struct Value {
    Rational number;
    std::int32_t label = -1;
};

// The inputs of evaluations, and what of their results is still known: slots that change often
// should come last.
class Environment {
  public:
    void resize(std::size_t slots) {
        slots_.resize(slots);
        changed_.assign(slots + 1, now_);
    }
    void set(std::size_t slot, const Value& value) {
        if (slots_[slot].label == value.label && slots_[slot].number == value.number) return;
        slots_[slot] = value;
        std::fill(changed_.begin() + static_cast<std::ptrdiff_t>(slot) + 1, changed_.end(), ++now_);
    }

  private:
    friend class Expressions;

    struct Known {
        Value value;
        std::uint64_t time = 0;
    };
    std::vector<Value> slots_;
    // [1 + slot]: when it or one before it did; [0]: of what reads no slot.
    std::vector<std::uint64_t> changed_;
    std::vector<Known> known_;  // [node]
    std::uint64_t now_ = 1;
};

class Expressions {
  public:
    using Root = std::size_t;

    // Names that later expressions may use. A gene has `length` slots from `slot` on (name[i]); a
    // scalar has length 0.
    void define_constant(const std::string& name, Rational value);
    void define_label(const std::string& name, const std::string& label);
    void define_gene(const std::string& name, std::size_t slot, std::size_t length);
    void define(const std::string& name, const std::string& text);
    [[nodiscard]] bool knows(const std::string& name) const { return symbols_.contains(name); }

    // `what` names the expression in messages. Throws Error on a syntax error or an unknown name.
    Root parse(const std::string& text, const std::string& what);
    Value evaluate(Root root, Environment& environment) const;

    // The gene slots that an expression reads, definitions included.
    [[nodiscard]] std::set<std::size_t> slots_of(Root root) const;

    // The expressions whose sum an expression is: itself alone, if it is no sum.
    [[nodiscard]] std::vector<Root> addends(Root root) const;

    std::int32_t intern_label(const std::string& label);

  private:
    friend class ExpressionParser;

    enum class Op {
        constant,
        slot,
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
        std::size_t reads = 0;     // 1 + the last slot that it reads, 0 without any
    };
    struct Symbol {
        enum class Kind { node, gene } kind = Kind::node;
        Root root = 0;
        std::size_t slot = 0;
        std::size_t length = 0;
    };

    Root add(Node node);
    const Value& step(Root root, Environment& environment, int depth) const;
    Value compute(const Node& node, Environment& environment, int depth) const;
    Value logical(const Node& node, Environment& environment, int depth) const;
    [[nodiscard]] static Value arithmetic(Op op, const Value& left, const Value& right);
    void define_symbol(const std::string& name, const Symbol& symbol);
    void visit(Root root, std::set<Root>& seen) const;

    std::vector<Node> nodes_;
    std::map<std::string, Symbol> symbols_;
    std::vector<std::string> labels_;
};

}  // namespace hytas
