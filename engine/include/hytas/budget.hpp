// A budget as people write it: "2M-params", "1.5M..2M-params", "500M-macs", "4MB-int8",
// "64MB-activations", "3ms-latency@table.json"; several, comma-separated or repeated, must all
// hold.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hytas {

// lower <= cost <= upper. Bytes for sizes, nanoseconds for times, plain counts for the rest.
struct Bound {
    std::string cost;  // the name of a cost of the space
    std::int64_t lower = 0;
    std::int64_t upper = 0;
    bool plain = false;  // a latency without a time unit: in the table's own unit, stored in
                         // billionths of it

    [[nodiscard]] std::string text() const;  // canonical: "1.5M..2M-params"
    friend bool operator==(const Bound&, const Bound&) = default;
};

// A cost in the notation of a budget: "2M-params", "4MB-int8", "3ms-latency@table.json".
[[nodiscard]] std::string amount_text(const std::string& cost, std::int64_t value);
// A cost as a sentence says it: "203,456 params", "203,456 bytes of int8 weights".
[[nodiscard]] std::string spoken_amount(const std::string& cost, std::int64_t value,
                                        bool plain = false);

class Budget {
  public:
    static constexpr std::int64_t unbounded = std::int64_t{1} << 61;

    Budget() = default;  // no bound: everything fits
    // Throws Error with the rule and an example. Two bounds of one cost are intersected.
    [[nodiscard]] static Budget parse(const std::string& text);
    [[nodiscard]] static Budget parse(const std::vector<std::string>& texts);
    explicit Budget(std::vector<Bound> bounds) : bounds_(std::move(bounds)) {}

    [[nodiscard]] const std::vector<Bound>& bounds() const { return bounds_; }
    [[nodiscard]] std::vector<std::string> tables() const;  // the files of its latency bounds
    [[nodiscard]] std::string text() const;

  private:
    void add(const std::string& item);

    std::vector<Bound> bounds_;
};

}  // namespace hytas
