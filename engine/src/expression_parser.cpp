#include "expression_parser.hpp"

#include <utility>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {
// Parentheses, minus signs and conditionals recurse: without a bound a hostile file could exhaust
// the stack.
constexpr int deepest = 64;
constexpr std::size_t longest = 4096;
}  // namespace

void ExpressionParser::fail(const std::string& why) const {
    throw Error(what_ + " " + quoted(text_, 120) + ": " + why + " (at character " +
                std::to_string(at_ + 1) + ")");
}

void ExpressionParser::skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
        ++at_;
}

bool ExpressionParser::take(const std::string& token) {
    skip_blanks();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    const std::size_t after = at_ + token.size();
    const bool cuts_a_word =
        is_name_letter(token[0]) && after < text_.size() && is_name_letter(text_[after]);
    // '<' must not take the first half of '<=', nor '/' that of '//'.
    const bool cuts_a_symbol = (token == "<" || token == ">" || token == "/") &&
                               after < text_.size() &&
                               (text_[after] == '=' || (token == "/" && text_[after] == '/'));
    if (cuts_a_word || cuts_a_symbol) return false;
    at_ = after;
    return true;
}

void ExpressionParser::expect(const std::string& token) {
    if (!take(token)) fail("expected '" + token + "'");
}

ExpressionParser::Root ExpressionParser::node(Op op, std::vector<Root> inputs) {
    return into_.add({op, {}, 0, std::move(inputs), 0});
}

ExpressionParser::Root ExpressionParser::whole() {
    if (text_.size() > longest) fail("is longer than 4096 characters");
    const Root root = conditional();
    skip_blanks();
    if (at_ != text_.size()) fail("expected an operator or the end");
    return root;
}

ExpressionParser::Root ExpressionParser::conditional() {
    if (++depth_ > deepest) fail("is nested more than 64 deep");
    Root result = disjunction();
    if (take("if")) {
        const Root condition = disjunction();
        expect("else");
        result = node(Op::choose, {condition, result, conditional()});
    }
    --depth_;
    return result;
}

ExpressionParser::Root ExpressionParser::disjunction() {
    Root left = conjunction();
    while (take("or")) left = node(Op::logical_or, {left, conjunction()});
    return left;
}

ExpressionParser::Root ExpressionParser::conjunction() {
    Root left = negation();
    while (take("and")) left = node(Op::logical_and, {left, negation()});
    return left;
}

ExpressionParser::Root ExpressionParser::negation() {
    if (!take("not")) return comparison();
    if (++depth_ > deepest) fail("is nested more than 64 deep");
    const Root result = node(Op::logical_not, {negation()});
    --depth_;
    return result;
}

ExpressionParser::Root ExpressionParser::comparison() {
    const Root left = sum();
    if (take("==")) return node(Op::equal, {left, sum()});
    if (take("!=")) return node(Op::not_equal, {left, sum()});
    if (take("<=")) return node(Op::less_equal, {left, sum()});
    if (take("<")) return node(Op::less, {left, sum()});
    if (take(">=")) {
        const Root right = sum();
        return node(Op::less_equal, {right, left});
    }
    if (take(">")) {
        const Root right = sum();
        return node(Op::less, {right, left});
    }
    return left;
}

ExpressionParser::Root ExpressionParser::sum() {
    Root left = product();
    for (;;) {
        if (take("+"))
            left = node(Op::add, {left, product()});
        else if (take("-"))
            left = node(Op::subtract, {left, product()});
        else
            return left;
    }
}

ExpressionParser::Root ExpressionParser::product() {
    Root left = unary();
    for (;;) {
        if (take("*"))
            left = node(Op::multiply, {left, unary()});
        else if (take("//"))
            left = node(Op::floor_divide, {left, unary()});
        else if (take("/"))
            left = node(Op::divide, {left, unary()});
        else if (take("%"))
            left = node(Op::modulo, {left, unary()});
        else
            return left;
    }
}

ExpressionParser::Root ExpressionParser::unary() {
    if (!take("-")) return atom();
    if (++depth_ > deepest) fail("is nested more than 64 deep");
    const Root result = node(Op::negate, {unary()});
    --depth_;
    return result;
}

ExpressionParser::Root ExpressionParser::atom() {
    skip_blanks();
    if (at_ >= text_.size()) fail("ends too early");
    if (take("(")) {
        const Root inside = conditional();
        expect(")");
        return inside;
    }
    if (text_[at_] == '\'') return label();
    if (is_digit(text_[at_])) return number();
    if (is_name_letter(text_[at_])) return call_or_name();
    fail("expected a number, a name or '('");
}

ExpressionParser::Root ExpressionParser::number() {
    const std::size_t start = at_;
    while (at_ < text_.size() && (is_digit(text_[at_]) || text_[at_] == '.')) ++at_;
    const Rational value = Rational::parse(text_.substr(start, at_ - start), what_ + ": number");
    return into_.add({Op::constant, {value, -1}, 0, {}, 0});
}

ExpressionParser::Root ExpressionParser::label() {
    const std::size_t end = text_.find('\'', at_ + 1);
    if (end == std::string::npos) fail("a label has no closing quote");
    const std::string text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return into_.add({Op::constant, {Rational(0), into_.intern_label(text)}, 0, {}, 0});
}

std::string ExpressionParser::word() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_name_letter(text_[at_])) ++at_;
    return text_.substr(start, at_ - start);
}

ExpressionParser::Root ExpressionParser::call_or_name() {
    const std::string text = word();
    return take("(") ? call(text) : name(text);
}

ExpressionParser::Root ExpressionParser::call(const std::string& function) {
    std::vector<Root> inputs;
    do inputs.push_back(conditional());
    while (take(","));
    expect(")");
    if (function == "min") return node(Op::minimum, std::move(inputs));
    if (function == "max") return node(Op::maximum, std::move(inputs));
    if (function != "floor" && function != "ceil") fail("unknown function " + quoted(function));
    if (inputs.size() != 1) fail(function + " takes one argument");
    return node(function == "floor" ? Op::floor : Op::ceil, std::move(inputs));
}

ExpressionParser::Root ExpressionParser::name(const std::string& name) {
    const auto found = into_.symbols_.find(name);
    if (found == into_.symbols_.end()) {
        std::vector<std::string> known;
        for (const auto& symbol : into_.symbols_) known.push_back(symbol.first);
        const std::string near = nearest(name, known);
        fail("unknown name " + quoted(name) +
             (near.empty() ? "" : "; did you mean " + quoted(near) + "?"));
    }
    const Expressions::Symbol& symbol = found->second;
    if (symbol.kind == Expressions::Symbol::Kind::node) return symbol.root;
    std::size_t element = 0;
    if (symbol.length > 0) {
        expect("[");
        skip_blanks();
        const std::string index = word();
        element = index.size() == 1 && is_digit(index[0]) ? static_cast<std::size_t>(index[0] - '0')
                                                          : symbol.length;
        if (element >= symbol.length)
            fail(quoted(name) + " has elements 0 to " + std::to_string(symbol.length - 1));
        expect("]");
    }
    return into_.add({Op::slot, {}, symbol.slot + element, {}, 0});
}

}  // namespace hytas
