// The part of Evolution that ends a generation: who stays in the population.
#include <algorithm>
#include <cmath>

#include "hytas/evolution.hpp"
#include "hytas/pareto.hpp"

namespace hytas {

void Evolution::finish_generation() {
    if (strategy_ == Strategy::ageing)
        select_young();
    else if (strategy_ == Strategy::nsga2)
        select_fronts();
    else if (strategy_ == Strategy::local)
        select_step();
    else
        select_best();
    ++generation_;
    first_ = asked();
    size_ = settings_.offspring;
}

// (mu + lambda): the best of parents and offspring together.
void Evolution::select_best() {
    for (std::size_t id = first_; id < asked(); ++id) population_.push_back(id);
    // Scores beside their ids, so that sorting a large population stays in the cache. NaN counts as below minus infinity.
    struct Ranked {
        bool scored;
        double score;
        std::size_t id;
    };
    std::vector<Ranked> ranked;
    for (const std::size_t id : population_) ranked.push_back({!std::isnan(scores(id)[0]), std::isnan(scores(id)[0]) ? 0.0 : scores(id)[0], id});
    const auto order = [](const Ranked& left, const Ranked& right) {
        if (left.scored != right.scored) return left.scored;
        return left.score != right.score ? left.score > right.score : left.id < right.id;
    };
    const auto kept = static_cast<std::ptrdiff_t>(std::min(population_.size(), settings_.population));
    std::nth_element(ranked.begin(), ranked.begin() + kept - 1, ranked.end(), order);
    std::sort(ranked.begin(), ranked.begin() + kept, order);
    population_.resize(static_cast<std::size_t>(kept));
    for (std::size_t i = 0; i < population_.size(); ++i) population_[i] = ranked[i].id;
}

// Regularised evolution: the oldest leave, however good.
void Evolution::select_young() {
    for (std::size_t id = first_; id < asked(); ++id) population_.push_back(id);
    if (population_.size() > settings_.population)
        population_.erase(population_.begin(), population_.end() - static_cast<std::ptrdiff_t>(settings_.population));
}

// NSGA-II: whole fronts while they fit, then the least crowded of the next one.
void Evolution::select_fronts() {
    for (std::size_t id = first_; id < asked(); ++id) population_.push_back(id);
    std::vector<double> rows;
    for (const std::size_t id : population_) rows.insert(rows.end(), scores(id), scores(id) + objectives_);
    const ScoreRows all{rows.data(), population_.size(), objectives_};
    const std::vector<std::size_t> numbers = front_numbers(all);
    std::vector<std::vector<std::size_t>> fronts;
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (numbers[i] >= fronts.size()) fronts.resize(numbers[i] + 1);
        fronts[numbers[i]].push_back(i);
    }
    std::vector<std::size_t> kept;
    rank_.clear();
    crowding_.clear();
    for (std::size_t number = 0; number < fronts.size() && kept.size() < settings_.population; ++number) {
        const std::vector<std::size_t>& front = fronts[number];
        const std::vector<double> distance = crowding(all, front);
        std::vector<std::size_t> order(front.size());
        for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
        std::sort(order.begin(), order.end(),
                  [&](std::size_t left, std::size_t right) { return distance[left] != distance[right] ? distance[left] > distance[right] : left < right; });
        for (const std::size_t i : order) {
            if (kept.size() == settings_.population) break;
            kept.push_back(population_[front[i]]);
            rank_.push_back(number);
            crowding_.push_back(distance[i]);
        }
    }
    population_ = std::move(kept);
}

// Local search: move to the best neighbour while it is better; otherwise restart from a random architecture, which
// is what an empty population means.
void Evolution::select_step() {
    const bool restarting = population_.empty();
    std::size_t best = first_;
    for (std::size_t id = first_; id < asked(); ++id)
        if (better(id, best)) best = id;
    if (restarting || better(best, population_[0]))
        population_ = {best};
    else
        population_.clear();
}

}  // namespace hytas
