// An architecture inside the engine: a packed genome, one byte a gene, each the index of a value in
// its gene's list.
//
//     [ global slots ][ layers of the first depth gene, layer by layer, gene by gene ][ layers of
//     the second ] ...
//
// Every genome of a space has the same length: layers beyond the depth are padding and hold 0, so
// equal architectures are equal bytes, and a crossover between parents of different depth is valid
// (as in HAT).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hytas {

using Gene8 = std::uint8_t;
using Genome = std::vector<Gene8>;
using GenomeView = std::span<const Gene8>;
using GenomeSpan = std::span<Gene8>;

}  // namespace hytas
