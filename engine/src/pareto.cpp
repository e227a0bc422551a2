#include "pareto.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hytas {

bool has_nan(const double* row, std::size_t objectives) {
    return std::any_of(row, row + objectives, [](double score) { return std::isnan(score); });
}

bool dominates(const double* left, const double* right, std::size_t objectives) {
    bool better = false;
    for (std::size_t k = 0; k < objectives; ++k) {
        if (left[k] < right[k]) return false;
        better = better || left[k] > right[k];
    }
    return better;
}

namespace {

// Best first by the first objective, then the next, then the index: a row can only be dominated by
// one before it.
std::vector<std::size_t> sorted_rows(const ScoreRows& rows) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < rows.count; ++i)
        if (!has_nan(rows.row(i), rows.objectives)) order.push_back(i);
    std::sort(order.begin(), order.end(), [&rows](std::size_t left, std::size_t right) {
        for (std::size_t k = 0; k < rows.objectives; ++k)
            if (rows.row(left)[k] != rows.row(right)[k])
                return rows.row(left)[k] > rows.row(right)[k];
        return left < right;
    });
    return order;
}

}  // namespace

std::vector<std::size_t> front_numbers(const ScoreRows& rows) {
    std::vector<std::size_t> numbers(rows.count, 0);
    std::vector<std::vector<std::size_t>> fronts;
    for (const std::size_t row : sorted_rows(rows)) {
        const auto holds_dominator = [&](const std::vector<std::size_t>& front) {
            // The latest members are the likeliest dominators (Zhang et al., ENS, 2015).
            return std::any_of(front.rbegin(), front.rend(), [&](std::size_t other) {
                return dominates(rows.row(other), rows.row(row), rows.objectives);
            });
        };
        // Whether a front dominates the row is monotone in its number, so the first one that does
        // not is found by halving.
        const auto place = std::partition_point(fronts.begin(), fronts.end(), holds_dominator);
        numbers[row] = static_cast<std::size_t>(place - fronts.begin());
        if (place == fronts.end())
            fronts.push_back({row});
        else
            place->push_back(row);
    }
    for (std::size_t i = 0; i < rows.count; ++i)
        if (has_nan(rows.row(i), rows.objectives)) numbers[i] = fronts.size();
    return numbers;
}

std::vector<std::size_t> first_front(const ScoreRows& rows) {
    std::vector<std::size_t> front;
    for (const std::size_t row : sorted_rows(rows)) {
        const auto is_dominated = [&](std::size_t other) {
            return dominates(rows.row(other), rows.row(row), rows.objectives);
        };
        if (std::none_of(front.rbegin(), front.rend(), is_dominated)) front.push_back(row);
    }
    std::sort(front.begin(), front.end());
    return front;
}

std::vector<double> crowding(const ScoreRows& rows, const std::vector<std::size_t>& front) {
    std::vector<double> distance(front.size(), 0.0);
    std::vector<std::size_t> order(front.size());
    for (std::size_t k = 0; k < rows.objectives; ++k) {
        std::iota(order.begin(), order.end(), std::size_t{0});
        const auto score = [&](std::size_t i) { return rows.row(front[i])[k]; };
        std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
            return score(left) != score(right) ? score(left) < score(right)
                                               : front[left] < front[right];
        });
        if (order.empty() || std::isnan(score(order.front()))) continue;
        const double range = score(order.back()) - score(order.front());
        distance[order.front()] = distance[order.back()] = std::numeric_limits<double>::infinity();
        if (!(range > 0.0) || !std::isfinite(range)) continue;
        for (std::size_t i = 1; i + 1 < order.size(); ++i)
            distance[order[i]] += (score(order[i + 1]) - score(order[i - 1])) / range;
    }
    return distance;
}

}  // namespace hytas
