// Walks down the levels of a counting table: from an index to a genome and back.
#pragma once

#include "counting_table.hpp"

namespace hytas {

// Writes the layers of the `index`-th architecture below a root; the global genes and padding must
// be there already.
void walk_down(const CountingTable& table, const SearchSpace& space, const Root& root, Wide index,
               Gene8* genome);

// The index of a genome below its root; `found` is false when the genome is not there.
[[nodiscard]] Wide walk_up(const CountingTable& table, const SearchSpace& space, const Root& root,
                           const Gene8* genome, bool& found);

}  // namespace hytas
