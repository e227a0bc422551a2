#include "hytas/detail/rational.hpp"

#include <limits>
#include <numeric>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

__extension__ using Signed = __int128;

Signed greatest_divisor(Signed left, Signed right) {
    while (right != 0) {
        const Signed rest = left % right;
        left = right;
        right = rest;
    }
    return left < 0 ? -left : left;
}

constexpr Signed most = std::numeric_limits<std::int64_t>::max();

// Numerators and denominators have 64 bits, so every intermediate of one operation fits into 128.
std::int64_t narrow(Signed value) {
    if (value > most || value < -most) throw Error("expression: a value needs more than 64 bits");
    return static_cast<std::int64_t>(value);
}

}  // namespace

Rational Rational::of(std::int64_t numerator, std::int64_t denominator) {
    if (denominator == 0) throw Error("expression: division by zero");
    Rational result;
    const Signed sign = denominator < 0 ? -1 : 1;
    const Signed divisor = greatest_divisor(numerator, denominator);
    result.numerator_ = narrow(sign * numerator / divisor);
    result.denominator_ = narrow(sign * denominator / divisor);
    return result;
}

namespace {

Rational reduced(Signed numerator, Signed denominator) {
    if (denominator == 1) return narrow(numerator);  // whole numbers, nearly always: no division
    const Signed divisor = greatest_divisor(numerator, denominator);
    return Rational::of(narrow(numerator / divisor), narrow(denominator / divisor));
}

}  // namespace

namespace {

// value * 10^-scale
struct Decimal {
    std::int64_t value = 0;
    int scale = 0;
};

Decimal read_decimal(const std::string& digits, const std::string& rule) {
    std::size_t at = !digits.empty() && digits[0] == '-' ? 1 : 0;
    const bool negative = at == 1;
    std::int64_t value = 0;
    int scale = 0;
    int count = 0;
    int significant = 0;
    bool point = false;
    for (; at < digits.size() && digits[at] != 'e' && digits[at] != 'E'; ++at) {
        if (digits[at] == '.' && !point) {
            point = true;
            continue;
        }
        if (digits[at] < '0' || digits[at] > '9') throw Error(rule);
        ++count;
        significant += significant > 0 || digits[at] != '0' ? 1 : 0;
        if (significant > 18) throw Error(rule);
        value = value * 10 + (digits[at] - '0');
        scale += point ? 1 : 0;
    }
    if (count == 0) throw Error(rule);
    if (at < digits.size()) {
        const bool down = at + 1 < digits.size() && digits[at + 1] == '-';
        at += at + 1 < digits.size() && (digits[at + 1] == '-' || digits[at + 1] == '+') ? 2 : 1;
        if (at >= digits.size() || digits.size() - at > 2) throw Error(rule);
        int exponent = 0;
        for (; at < digits.size(); ++at) {
            if (digits[at] < '0' || digits[at] > '9') throw Error(rule);
            exponent = exponent * 10 + (digits[at] - '0');
        }
        scale += down ? exponent : -exponent;
    }
    return {negative ? -value : value, scale};
}

}  // namespace

Rational Rational::parse(const std::string& digits, const std::string& what) {
    const std::string rule =
        what + " " + quoted(digits) + ": must be a number of at most 18 digits";
    Decimal decimal = read_decimal(digits, rule);
    if (decimal.value == 0) return 0;
    for (; decimal.value % 10 == 0; decimal.value /= 10) --decimal.scale;
    if (decimal.scale > 18 || decimal.scale < -18) throw Error(rule);
    Rational result = decimal.value;
    for (; decimal.scale > 0; --decimal.scale) result = result / 10;
    for (; decimal.scale < 0; ++decimal.scale) result = result * 10;
    return result;
}

std::int64_t Rational::product_up(const std::string& digits, std::int64_t factor,
                                  const std::string& what) {
    const std::string rule =
        what + " " + quoted(digits) + ": must be a number of at most 18 digits";
    const Decimal decimal = read_decimal(digits, rule);
    Signed product = static_cast<Signed>(decimal.value) * factor;
    for (int scale = decimal.scale; scale < 0 && product != 0; ++scale)
        product = static_cast<Signed>(narrow(product)) * 10;
    // Digits behind the point go one by one; any that is not 0 rounds up.
    bool rest = false;
    for (int scale = decimal.scale; scale > 0 && product != 0; --scale, product /= 10)
        rest = rest || product % 10 != 0;
    return narrow(rest && decimal.value > 0 ? product + 1 : product);
}

std::int64_t Rational::floor() const {
    const std::int64_t quotient = numerator_ / denominator_;
    return numerator_ % denominator_ < 0 ? quotient - 1 : quotient;
}

std::int64_t Rational::ceil() const {
    const std::int64_t quotient = numerator_ / denominator_;
    return numerator_ % denominator_ > 0 ? quotient + 1 : quotient;
}

std::string Rational::text() const {
    if (whole()) return std::to_string(numerator_);
    Signed scaled = numerator_;
    std::string fraction;
    for (int places = 1; places <= 18; ++places) {
        scaled *= 10;
        if (scaled % denominator_ != 0) continue;
        Signed digits = scaled / denominator_;
        const bool negative = digits < 0;
        digits = negative ? -digits : digits;
        for (int i = 0; i < places; ++i, digits /= 10)
            fraction.insert(fraction.begin(),
                            static_cast<char>('0' + static_cast<int>(digits % 10)));
        return (negative ? "-" : "") + std::to_string(static_cast<std::int64_t>(digits)) + "." +
               fraction;
    }
    return std::to_string(numerator_) + "/" + std::to_string(denominator_);
}

Rational Rational::add(const Rational& left, const Rational& right) {
    return reduced(static_cast<Signed>(left.numerator_) * right.denominator_ +
                       static_cast<Signed>(right.numerator_) * left.denominator_,
                   static_cast<Signed>(left.denominator_) * right.denominator_);
}

Rational Rational::subtract(const Rational& left, const Rational& right) {
    return reduced(static_cast<Signed>(left.numerator_) * right.denominator_ -
                       static_cast<Signed>(right.numerator_) * left.denominator_,
                   static_cast<Signed>(left.denominator_) * right.denominator_);
}

Rational Rational::multiply(const Rational& left, const Rational& right) {
    return reduced(static_cast<Signed>(left.numerator_) * right.numerator_,
                   static_cast<Signed>(left.denominator_) * right.denominator_);
}

Rational operator/(const Rational& left, const Rational& right) {
    if (right.numerator_ == 0) throw Error("expression: division by zero");
    return reduced(static_cast<Signed>(left.numerator_) * right.denominator_,
                   static_cast<Signed>(left.denominator_) * right.numerator_);
}

bool Rational::before(const Rational& left, const Rational& right) {
    return static_cast<Signed>(left.numerator_) * right.denominator_ <
           static_cast<Signed>(right.numerator_) * left.denominator_;
}

}  // namespace hytas
