// Walks the rows of a projection in order, following the row of another that reads only some of its slots.
#pragma once

#include <cstddef>
#include <vector>

#include "hytas/search_space.hpp"

namespace hytas {

class RowWalk {
  public:
    // Every slot of `part` must be one of `whole`.
    RowWalk(const SearchSpace& space, const Projection& whole, const Projection& part) {
        for (const Projection::Term& term : whole.terms) {
            std::size_t stride = 0;
            for (const Projection::Term& own : part.terms)
                if (own.slot == term.slot) stride = own.stride;
            digits_.push_back({0, space.values_of_slot(term.slot).size(), stride});
        }
    }

    // The part's row of the next row of the whole, from the first.
    std::size_t next() {
        const std::size_t here = row_;
        for (Digit& digit : digits_) {
            row_ += digit.stride;
            if (++digit.value < digit.radix) break;
            row_ -= digit.radix * digit.stride;
            digit.value = 0;
        }
        return here;
    }

  private:
    struct Digit {
        std::size_t value;
        std::size_t radix;
        std::size_t stride;  // in the part; 0 for a slot that it does not read
    };
    std::vector<Digit> digits_;
    std::size_t row_ = 0;
};

}  // namespace hytas
