// Exact fractions: an mlp_ratio of 3.5 is 7/2, so floor(embed_dim * mlp_ratio) is the same integer
// on every platform.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace hytas {

// Always reduced, denominator >= 1. Every operation throws Error when the result leaves 64 bits or
// divides by zero.
class Rational {
  public:
    Rational() = default;
    // An integer is a fraction.
    Rational(std::int64_t value) : numerator_(value) {}  // NOLINT(google-explicit-constructor)
    [[nodiscard]] static Rational of(std::int64_t numerator, std::int64_t denominator);
    // "12", "-3", "3.5", "1e3": the exact value of a decimal text. `what` names it in the message.
    [[nodiscard]] static Rational parse(const std::string& digits, const std::string& what);
    // The decimal text times `factor`, rounded up to a whole number: exact also where the text
    // alone is no fraction of 64 bits.
    [[nodiscard]] static std::int64_t product_up(const std::string& digits, std::int64_t factor,
                                                 const std::string& what);

    [[nodiscard]] std::int64_t numerator() const { return numerator_; }
    [[nodiscard]] std::int64_t denominator() const { return denominator_; }
    [[nodiscard]] bool whole() const { return denominator_ == 1; }
    [[nodiscard]] std::int64_t floor() const;
    [[nodiscard]] std::int64_t ceil() const;
    // As a decimal when it is one ("3.5"), else "1/3".
    [[nodiscard]] std::string text() const;

    // Whole numbers, nearly always, go the short way.
    friend Rational operator+(const Rational& left, const Rational& right) {
        std::int64_t sum = 0;
        return both_whole(left, right) &&
                       !__builtin_add_overflow(left.numerator_, right.numerator_, &sum) &&
                       sum != refused
                   ? sum
                   : add(left, right);
    }
    friend Rational operator-(const Rational& left, const Rational& right) {
        std::int64_t rest = 0;
        return both_whole(left, right) &&
                       !__builtin_sub_overflow(left.numerator_, right.numerator_, &rest) &&
                       rest != refused
                   ? rest
                   : subtract(left, right);
    }
    friend Rational operator*(const Rational& left, const Rational& right) {
        std::int64_t product = 0;
        return both_whole(left, right) &&
                       !__builtin_mul_overflow(left.numerator_, right.numerator_, &product) &&
                       product != refused
                   ? product
                   : multiply(left, right);
    }
    friend Rational operator/(const Rational& left, const Rational& right);
    friend bool operator==(const Rational& left, const Rational& right) = default;
    friend bool operator<(const Rational& left, const Rational& right) {
        return both_whole(left, right) ? left.numerator_ < right.numerator_ : before(left, right);
    }

  private:
    // Its negative needs more than 64 bits.
    static constexpr std::int64_t refused = std::numeric_limits<std::int64_t>::min();

    [[nodiscard]] static bool both_whole(const Rational& left, const Rational& right) {
        return (left.denominator_ | right.denominator_) == 1;
    }
    [[nodiscard]] static Rational add(const Rational& left, const Rational& right);
    [[nodiscard]] static Rational subtract(const Rational& left, const Rational& right);
    [[nodiscard]] static Rational multiply(const Rational& left, const Rational& right);
    [[nodiscard]] static bool before(const Rational& left, const Rational& right);

    std::int64_t numerator_ = 0;
    std::int64_t denominator_ = 1;
};

}  // namespace hytas
