// Recursive descent over the text of one expression; it appends nodes to an Expressions.
#pragma once

#include <string>

#include "expression.hpp"

namespace hytas {

[[nodiscard]] inline bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

[[nodiscard]] inline bool is_name_letter(char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           is_digit(letter) || letter == '_';
}

class ExpressionParser {
  public:
    ExpressionParser(Expressions& into, const std::string& text, const std::string& what)
        : into_(into), text_(text), what_(what) {}

    Expressions::Root whole();

  private:
    using Op = Expressions::Op;
    using Root = Expressions::Root;

    Root conditional();
    Root disjunction();
    Root conjunction();
    Root negation();
    Root comparison();
    Root sum();
    Root product();
    Root unary();
    Root atom();
    Root number();
    Root label();
    Root call_or_name();
    Root call(const std::string& function);
    Root name(const std::string& name);

    Root node(Op op, std::vector<Root> inputs);
    void skip_blanks();
    bool take(const std::string& token);  // a symbol, or a whole word
    void expect(const std::string& token);
    std::string word();
    [[noreturn]] void fail(const std::string& why) const;

    Expressions& into_;
    const std::string& text_;
    const std::string& what_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace hytas
