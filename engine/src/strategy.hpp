// What makes a search strategy: one row of the table in strategies.cpp.
#pragma once

#include <string>

#include "hytas/architecture.hpp"

namespace hytas {

class Evolution;

struct Strategy {
    const char* name;
    const char* about;           // for people
    std::size_t offspring_part;  // a generation after the first is population / offspring_part,
                                 // unless settings say it
    bool several_scores;         // a row of scores may have more than one
    bool elite;  // children have the best `parents` of the population as parents, not all of it

    void (*select)(Evolution& run);  // ends a generation: who stays in the population
    // Writes one child of the population, by mutation or else by crossover; null where all
    // architectures are drawn.
    void (*vary)(Evolution& run, bool mutating, Gene8* child);
};

// Throws Error with the nearest name.
[[nodiscard]] const Strategy& strategy_named(const std::string& name);

}  // namespace hytas
