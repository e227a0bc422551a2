// Several objectives, all larger-is-better: fronts and crowding as in NSGA-II (Deb et al., 2002).
#pragma once

#include <cstddef>
#include <vector>

namespace hytas {

// A row of k scores; NaN in any of them makes the row worse than every row without.
struct ScoreRows {
    const double* data;
    std::size_t count;
    std::size_t objectives;

    [[nodiscard]] const double* row(std::size_t index) const { return data + index * objectives; }
};

[[nodiscard]] bool has_nan(const double* row, std::size_t objectives);

// At least as good everywhere and better somewhere.
[[nodiscard]] bool dominates(const double* left, const double* right, std::size_t objectives);

// The front of each row: 0 is dominated by none, 1 only by front 0, ... Rows with NaN share the
// last front.
[[nodiscard]] std::vector<std::size_t> front_numbers(const ScoreRows& rows);

// Rows that none dominates, ascending; rows with NaN are never among them.
[[nodiscard]] std::vector<std::size_t> first_front(const ScoreRows& rows);

// Crowding distance of each member of one front; the ends of every objective are infinite.
[[nodiscard]] std::vector<double> crowding(const ScoreRows& rows,
                                           const std::vector<std::size_t>& front);

}  // namespace hytas
