// Sums over the allowed combinations of a space.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "hytas/detail/combinations.hpp"

namespace hytas {

// Calls each(sum) for every allowed combination, in order. An addend reads some of the genes;
// value(i, genes) is what the i-th one is. Neighbouring combinations share their first genes, so
// only what reads a later one is added again.
template <class Sum, class Value, class Each>
void sum_addends(const Combinations& combinations, const std::vector<Projection>& addends,
                 const Value& value, const Each& each) {
    const std::size_t slots = combinations.slots();
    std::vector<std::vector<std::size_t>> ending(slots);  // addends by the last gene that they read
    for (std::size_t i = 0; i < addends.size(); ++i) {
        std::size_t last = 0;
        for (const Projection::Term& term : addends[i].terms) last = std::max(last, term.slot);
        ending[last].push_back(i);
    }
    // Of a change of the slot, among the slots where addends end.
    std::vector<std::size_t> first_step(slots, 0);
    std::size_t steps = 0;
    for (std::size_t slot = 0; slot < slots; ++slot) {
        first_step[slot] = steps;
        if (ending[slot].empty()) continue;
        ending[steps] = ending[slot];
        ++steps;
    }
    std::vector<Sum> sums(steps + 1, Sum(0));  // of the addends before a step
    for (std::size_t combination = 0; combination < combinations.size(); ++combination) {
        const Gene8* genes = combinations.genes(combination);
        std::size_t changed = 0;
        if (combination > 0)
            while (genes[changed] == *(genes + changed - slots)) ++changed;
        for (std::size_t step = first_step[changed]; step < steps; ++step) {
            Sum sum = sums[step];
            for (const std::size_t i : ending[step]) sum = sum + value(i, genes);
            sums[step + 1] = sum;
        }
        each(sums[steps]);
    }
}

}  // namespace hytas
