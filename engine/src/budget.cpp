#include "hytas/budget.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "hytas/detail/rational.hpp"
#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

enum class Measure { count, bytes, time, parts };

struct Suffix {
    std::string_view text;
    Measure measure;
    std::int64_t factor;
};

constexpr std::int64_t kilo = 1000;
constexpr std::int64_t mega = kilo * kilo;
constexpr std::int64_t giga = mega * kilo;

// In each measure the largest factor first: canonical text takes the first of equally short ones.
constexpr std::array<Suffix, 19> suffixes = {{
    {"G", Measure::count, giga},
    {"M", Measure::count, mega},
    {"K", Measure::count, kilo},
    {"k", Measure::count, kilo},
    {"", Measure::count, 1},
    {"GB", Measure::bytes, giga},
    {"MB", Measure::bytes, mega},
    {"kB", Measure::bytes, kilo},
    {"KB", Measure::bytes, kilo},
    {"GiB", Measure::bytes, std::int64_t{1} << 30},
    {"MiB", Measure::bytes, std::int64_t{1} << 20},
    {"KiB", Measure::bytes, std::int64_t{1} << 10},
    {"kiB", Measure::bytes, std::int64_t{1} << 10},
    {"B", Measure::bytes, 1},
    {"s", Measure::time, giga},
    {"ms", Measure::time, mega},
    {"us", Measure::time, kilo},
    {"ns", Measure::time, 1},
    {"", Measure::parts, giga},
}};

constexpr std::string_view latency = "latency@";
constexpr std::string_view weight_bytes = "bytes_";
constexpr std::string_view examples =
    "write for example 2M-params, 1.5M..2M-params, 500M-macs, 4MB-int8, 64MB-activations or "
    "3ms-latency@table.json";

bool starts(std::string_view text, std::string_view prefix) {
    return text.substr(0, prefix.size()) == prefix;
}

Measure measure_of(const std::string& cost) {
    if (starts(cost, latency)) return Measure::time;
    const bool bytes =
        starts(cost, weight_bytes) || cost == "activations" || cost == "ram" || cost == "flash";
    return bytes ? Measure::bytes : Measure::count;
}

// "int8" is how people say the cost "bytes_int8".
std::string unit_of(const std::string& cost) {
    return starts(cost, weight_bytes) ? cost.substr(weight_bytes.size()) : cost;
}

std::string cost_of(const std::string& unit) {
    return unit == "int8" || unit == "fp16" || unit == "fp32" ? std::string(weight_bytes) + unit
                                                              : unit;
}

[[noreturn]] void refuse(const std::string& item, const std::string& why) {
    throw Error("budget " + quoted(item) + ": " + why + "; " + std::string(examples));
}

bool is_unit(const std::string& unit) {
    if (starts(unit, latency)) return unit.size() > latency.size();
    const auto letter = [](char one) {
        return (one >= 'a' && one <= 'z') || (one >= '0' && one <= '9') || one == '_';
    };
    return !unit.empty() && std::all_of(unit.begin(), unit.end(), letter);
}

std::string suffix_rule(Measure measure) {
    if (measure == Measure::bytes) return "is measured in bytes (B, kB, MB, GB, KiB, MiB, GiB)";
    if (measure == Measure::time)
        return "is measured in time (ns, us, ms, s), or plain in the unit of its table";
    return "is a count (plain, K, M or G)";
}

std::int64_t amount_of(const std::string& item, const std::string& text, const std::string& unit,
                       Bound& bound) {
    if (text.empty()) refuse(item, "an amount is missing");
    if (text[0] == '-') refuse(item, "an amount must not be negative");
    const std::size_t end = text.find_first_not_of("0123456789.");
    const std::string digits = text.substr(0, end);
    const std::string_view tail =
        end == std::string::npos ? std::string_view() : std::string_view(text).substr(end);
    const Measure measure = measure_of(cost_of(unit));
    const auto fits = [&](const Suffix& suffix) {
        return suffix.text == tail &&
               (suffix.measure == measure ||
                (measure == Measure::time && suffix.measure == Measure::parts));
    };
    const auto* const suffix = std::find_if(suffixes.begin(), suffixes.end(), fits);
    if (digits.empty() || digits[0] == '.' || digits.back() == '.')
        refuse(item, "amount " + quoted(text) + " is not a number");
    if (suffix == suffixes.end()) {
        const auto in_bytes = [&](const Suffix& known) {
            return known.text == tail && known.measure == Measure::bytes;
        };
        const bool bytes =
            measure == Measure::count && std::any_of(suffixes.begin(), suffixes.end(), in_bytes);
        const std::string hint =
            bytes ? "; in bytes are int8, fp16, fp32, activations, ram and flash" : "";
        refuse(item, "amount " + quoted(text) + ": " + unit + " " + suffix_rule(measure) + hint);
    }
    bound.plain = suffix->measure == Measure::parts;
    std::optional<Rational> value;
    try {
        value = Rational::parse(digits, "amount") * Rational(suffix->factor);
    } catch (const Error&) {
        refuse(item, "amount " + quoted(text) + " is not a number, or too large");
    }
    if (!value->whole())
        refuse(item, "amount " + quoted(text) + " is not a whole number of " +
                         (measure == Measure::bytes  ? "bytes"
                          : measure == Measure::time ? "nanoseconds"
                                                     : unit));
    if (value->numerator() > Budget::unbounded)
        refuse(item, "amount " + quoted(text) + " is too large");
    return value->numerator();
}

std::string trimmed(const std::string& text) {
    const std::size_t first = text.find_first_not_of(" \t\n");
    return first == std::string::npos
               ? ""
               : text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

// The shortest way to write the exact value: 2M and 1.5M, but 1234567 rather than 1234.567K.
std::string amount_text(Measure measure, std::int64_t value) {
    if (measure == Measure::parts) return Rational::of(value, giga).text();
    std::string best = std::to_string(value) + (measure == Measure::bytes  ? "B"
                                                : measure == Measure::time ? "ns"
                                                                           : "");
    for (const Suffix& suffix : suffixes) {
        if (suffix.measure != measure || value < suffix.factor || suffix.factor % kilo != 0)
            continue;
        const std::string text =
            Rational::of(value, suffix.factor).text() + std::string(suffix.text);
        if (text.find('/') == std::string::npos && text.size() < best.size()) best = text;
    }
    return best;
}

}  // namespace

std::string amount_text(const std::string& cost, std::int64_t value) {
    return amount_text(measure_of(cost), value) + "-" + unit_of(cost);
}

std::string spoken_amount(const std::string& cost, std::int64_t value, bool plain) {
    if (starts(cost, latency))
        return amount_text(plain ? Measure::parts : Measure::time, value) + " " + cost;
    if (starts(cost, weight_bytes))
        return with_commas(value) + " bytes of " + unit_of(cost) + " weights";
    if (cost == "activations" || cost == "ram" || cost == "flash")
        return with_commas(value) + " bytes of " + (cost == "ram" ? "RAM" : cost);
    return with_commas(value) + " " + cost;
}

std::string Bound::text() const {
    const Measure measure = plain ? Measure::parts : measure_of(cost);
    return (lower == 0 ? "" : amount_text(measure, lower) + "..") + amount_text(measure, upper) +
           "-" + unit_of(cost);
}

void Budget::add(const std::string& item) {
    if (item.empty()) refuse(item, "is empty");
    const std::size_t table = item.find('@');
    // The last '-' before a table's name separates amount and unit, so "-1-params" reads as the
    // amount "-1".
    const std::size_t dash = item.substr(0, table).rfind('-');
    if (dash == std::string::npos || dash == 0)
        refuse(item, "has no unit: an amount, '-' and a unit");
    const std::string amounts = item.substr(0, dash);
    const std::string unit = item.substr(dash + 1);
    if (!is_unit(unit)) refuse(item, "unit " + quoted(unit) + " is not a unit");
    if (unit + "@" == latency)
        refuse(item, "latency needs the table that it is read from, as latency@table.json");
    Bound bound;
    bound.cost = cost_of(unit);
    const std::size_t range = amounts.find("..");
    if (range == std::string::npos) {
        bound.upper = amount_of(item, amounts, unit, bound);
    } else {
        const std::string low = amounts.substr(0, range);
        const std::string high = amounts.substr(range + 2);
        if (low.empty() || high.empty()) refuse(item, "a range needs both ends");
        bound.lower = amount_of(item, low, unit, bound);
        const bool plain = bound.plain;
        bound.upper = amount_of(item, high, unit, bound);
        if (plain != bound.plain)
            refuse(item, "both ends of a range need a unit of time, or neither");
    }
    if (bound.lower > bound.upper)
        refuse(item, "the range is reversed: the smaller end comes first");
    for (Bound& other : bounds_) {
        if (other.cost != bound.cost) continue;
        if (other.plain != bound.plain)
            refuse(item, "a unit of time is missing in one of two bounds of " + unit);
        other.lower = std::max(other.lower, bound.lower);
        other.upper = std::min(other.upper, bound.upper);
        if (other.lower > other.upper) refuse(item, "excludes the other bound of " + unit);
        return;
    }
    bounds_.push_back(std::move(bound));
}

Budget Budget::parse(const std::string& text) { return parse(std::vector<std::string>{text}); }

Budget Budget::parse(const std::vector<std::string>& texts) {
    Budget budget;
    for (const std::string& text : texts) {
        std::size_t start = 0;
        for (;;) {
            const std::size_t comma = text.find(',', start);
            const std::string item =
                text.substr(start, comma == std::string::npos ? comma : comma - start);
            budget.add(trimmed(item));
            if (comma == std::string::npos) break;
            start = comma + 1;
        }
    }
    return budget;
}

std::vector<std::string> Budget::tables() const {
    std::vector<std::string> files;
    for (const Bound& bound : bounds_)
        if (starts(bound.cost, latency)) files.push_back(bound.cost.substr(latency.size()));
    return files;
}

std::string Budget::text() const {
    std::vector<std::string> parts;
    for (const Bound& bound : bounds_) parts.push_back(bound.text());
    return join(parts, ",");
}

}  // namespace hytas
