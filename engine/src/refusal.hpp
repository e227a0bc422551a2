// What to say when no architecture fits a budget.
#pragma once

#include "hytas/budget.hpp"
#include "hytas/search_space.hpp"

namespace hytas {

// Throws Error naming the smallest, largest or nearest possible costs.
[[noreturn]] void refuse(const SearchSpace& space, const Budget& budget, std::size_t most_entries);

}  // namespace hytas
