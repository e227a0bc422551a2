// The slow twins that the tests compare with, and the spaces that they use.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hytas/error.hpp"
#include "hytas/feasible.hpp"
#include "hytas/rng.hpp"
#include "hytas/search_space.hpp"

namespace hytas::test {

using SpacePtr = std::shared_ptr<const SearchSpace>;

// Small enough to enumerate, with what makes spaces hard: depth 0, two groups of layers, a cost
// that reads the layer's index, a list gene, labels, decimals, a "require".
SpacePtr small_space();
// A random space of at most a few thousand architectures.
SpacePtr random_space(Rng& rng);
SpacePtr builtin(const std::string& name);

// Every architecture, by counting up through all bytes: no table, no walk.
std::vector<Genome> all_genomes(const SearchSpace& space);
// Costs term by term from the genome, without the tables' strides.
std::vector<Genome> all_inside(const SearchSpace& space, const Budget& budget);

// The message of the Error that a call throws; "" when it throws none.
std::string error_of(const std::function<void()>& call);

// Upper tail of the chi-square distribution is below 1e-6 above this (Wilson-Hilferty).
double chi_square_limit(double degrees);

}  // namespace hytas::test
