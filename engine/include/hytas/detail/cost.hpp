// One cost of a space, tabulated: a global part, and a part a layer, combined by a sum (params) or
// a maximum (activations).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "hytas/architecture.hpp"

namespace hytas {

enum class Combine { sum, maximum };

// Maps the global slots that a table depends on to a row of the table; the others have stride 0.
struct Projection {
    struct Term {
        std::size_t slot;
        std::size_t stride;
    };
    std::vector<Term> terms;
    std::size_t rows = 1;

    std::size_t row(const Gene8* genome) const {
        std::size_t index = 0;
        for (const Term& term : terms) index += genome[term.slot] * term.stride;
        return index;
    }
};

// values[(place * layers + layer) * options + option]; `layers` is 1 unless the cost reads the
// index of the layer. A row of the projection lies at places[row], or at `row` if that is empty.
// Rows that no allowed combination has share place 0, whose values are 0.
struct LayerCosts {
    Projection projection;
    std::size_t layers = 1;
    std::size_t options = 1;
    std::vector<std::uint32_t> places;
    std::vector<std::int64_t> values;

    [[nodiscard]] const std::int64_t* of(std::size_t row, std::size_t layer) const {
        const std::size_t place = places.empty() ? row : places[row];
        return values.data() + (place * layers + (layers == 1 ? 0 : layer)) * options;
    }
};

struct CostTable {
    std::string name;
    std::string unit;
    std::string about;
    Combine combine = Combine::sum;
    std::vector<std::int64_t> global;  // one an allowed combination of global genes
    std::vector<LayerCosts> groups;    // one a depth gene

    [[nodiscard]] std::int64_t join(std::int64_t left, std::int64_t right) const {
        if (combine == Combine::sum) return left + right;
        return left < right ? right : left;
    }
};

}  // namespace hytas
