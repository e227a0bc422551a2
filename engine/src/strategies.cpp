// The search strategies: who stays in the population, and how its members vary. A new one is a
// function and a row of the table at the end.
#include <algorithm>
#include <cmath>

#include "hytas/error.hpp"
#include "hytas/evolution.hpp"
#include "pareto.hpp"
#include "strategy.hpp"
#include "text.hpp"

namespace hytas {

// A friend of Evolution, so that a strategy needs no declaration there.
struct Strategies {
    // Select: the architectures of the generation that ends have the ids first_ to asked().

    static void join(Evolution& run) {
        for (std::size_t id = run.first_; id < run.asked(); ++id) run.population_.push_back(id);
    }

    // (mu + lambda): the best of parents and offspring together.
    static void keep_best(Evolution& run) {
        join(run);
        // Scores beside their ids, so that sorting a large population stays in the cache. NaN
        // counts as below minus infinity.
        struct Ranked {
            bool scored;
            double score;
            std::size_t id;
        };
        std::vector<Ranked> ranked;
        for (const std::size_t id : run.population_) {
            const double score = run.scores(id)[0];
            ranked.push_back({!std::isnan(score), std::isnan(score) ? 0.0 : score, id});
        }
        const auto order = [](const Ranked& left, const Ranked& right) {
            if (left.scored != right.scored) return left.scored;
            return left.score != right.score ? left.score > right.score : left.id < right.id;
        };
        const auto kept =
            static_cast<std::ptrdiff_t>(std::min(ranked.size(), run.settings_.population));
        std::nth_element(ranked.begin(), ranked.begin() + kept - 1, ranked.end(), order);
        std::sort(ranked.begin(), ranked.begin() + kept, order);
        run.population_.resize(static_cast<std::size_t>(kept));
        for (std::size_t i = 0; i < run.population_.size(); ++i) run.population_[i] = ranked[i].id;
    }

    // Regularised evolution: the oldest leave, however good.
    static void keep_young(Evolution& run) {
        join(run);
        if (run.population_.size() > run.settings_.population)
            run.population_.erase(
                run.population_.begin(),
                run.population_.end() - static_cast<std::ptrdiff_t>(run.settings_.population));
    }

    // NSGA-II: whole fronts while they fit, then the least crowded of the next one.
    static void keep_fronts(Evolution& run) {
        join(run);
        std::vector<double> rows;
        for (const std::size_t id : run.population_)
            rows.insert(rows.end(), run.scores(id), run.scores(id) + run.objectives_);
        const ScoreRows all{rows.data(), run.population_.size(), run.objectives_};
        const std::vector<std::size_t> numbers = front_numbers(all);
        std::vector<std::vector<std::size_t>> fronts;
        for (std::size_t i = 0; i < numbers.size(); ++i) {
            if (numbers[i] >= fronts.size()) fronts.resize(numbers[i] + 1);
            fronts[numbers[i]].push_back(i);
        }
        std::vector<std::size_t> kept;
        run.rank_.clear();
        run.crowding_.clear();
        for (std::size_t number = 0;
             number < fronts.size() && kept.size() < run.settings_.population; ++number) {
            const std::vector<std::size_t>& front = fronts[number];
            const std::vector<double> distance = crowding(all, front);
            std::vector<std::size_t> order(front.size());
            for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
            std::sort(order.begin(), order.end(), [&](std::size_t left, std::size_t right) {
                return distance[left] != distance[right] ? distance[left] > distance[right]
                                                         : left < right;
            });
            for (const std::size_t i : order) {
                if (kept.size() == run.settings_.population) break;
                kept.push_back(run.population_[front[i]]);
                run.rank_.push_back(number);
                run.crowding_.push_back(distance[i]);
            }
        }
        run.population_ = std::move(kept);
    }

    // Local search: move to the best neighbour while it is better; otherwise restart from a random
    // architecture, which is what an empty population means.
    static void take_step(Evolution& run) {
        const bool restarting = run.population_.empty();
        std::size_t best = run.first_;
        for (std::size_t id = run.first_; id < run.asked(); ++id)
            if (run.better(id, best)) best = id;
        if (restarting || run.better(best, run.population_[0]))
            run.population_ = {best};
        else
            run.population_.clear();
    }

    // Vary: the genomes of the parents are run.pool(0), run.pool(1), ..., in the order of the
    // population.

    // The place of the winner of `size` members of the population, drawn with replacement.
    template <class Wins>
    static std::size_t tournament(Evolution& run, std::size_t size, Wins wins) {
        std::size_t best = run.rng_.below(run.population_.size());
        for (std::size_t i = 1; i < size; ++i) {
            const std::size_t other = run.rng_.below(run.population_.size());
            if (wins(other, best)) best = other;
        }
        return best;
    }

    template <class Parent>
    static void mutate_or_cross(Evolution& run, bool mutating, Parent parent, Gene8* child) {
        const Gene8* left = parent();
        if (mutating)
            mutate(run.feasible_->space(), run.rates_, left, run.rng_, child);
        else
            crossover(run.feasible_->space(), left, parent(), run.rng_, child);
    }

    static void vary_elite(Evolution& run, bool mutating, Gene8* child) {
        const std::size_t parents = std::min(run.settings_.parents, run.population_.size());
        mutate_or_cross(run, mutating, [&] { return run.pool(run.rng_.below(parents)); }, child);
    }

    static void mutate_winner(Evolution& run, bool, Gene8* child) {
        const auto wins = [&run](std::size_t left, std::size_t right) {
            return run.better(run.population_[left], run.population_[right]);
        };
        mutate(run.feasible_->space(), run.rates_,
               run.pool(tournament(run, run.settings_.parents, wins)), run.rng_, child);
    }

    static void vary_fronts(Evolution& run, bool mutating, Gene8* child) {
        const auto wins = [&run](std::size_t left, std::size_t right) {
            if (run.rank_[left] != run.rank_[right]) return run.rank_[left] < run.rank_[right];
            return run.crowding_[left] > run.crowding_[right];
        };
        mutate_or_cross(run, mutating, [&] { return run.pool(tournament(run, 2, wins)); }, child);
    }

    static void step_from_best(Evolution& run, bool, Gene8* child) {
        step(run.feasible_->space(), run.pool(0), run.rng_, child);
    }
};

namespace {

// name, about, offspring part, several scores, elite, select, vary
const Strategy table[] = {
    {"evolution", "the best of parents and children stay", 1, false, true, Strategies::keep_best,
     Strategies::vary_elite},
    {"ageing", "the oldest leave, however good (Real et al., 2019)", 10, false, false,
     Strategies::keep_young, Strategies::mutate_winner},
    {"nsga2", "whole Pareto fronts of several scores stay (Deb et al., 2002)", 1, true, false,
     Strategies::keep_fronts, Strategies::vary_fronts},
    {"random", "every architecture is drawn", 1, false, false, Strategies::keep_best, nullptr},
    {"local", "steps of one gene from the best, with restarts", 1, false, false,
     Strategies::take_step, Strategies::step_from_best},
};

}  // namespace

std::vector<StrategyFacts> strategies() {
    std::vector<StrategyFacts> facts;
    for (const Strategy& one : table) facts.push_back({one.name, one.about, one.several_scores});
    return facts;
}

const Strategy& strategy_named(const std::string& name) {
    std::vector<std::string> names;
    for (const Strategy& one : table) {
        if (name == one.name) return one;
        names.emplace_back(one.name);
    }
    const std::string near = nearest(name, names);
    throw Error("strategy " + quoted(name) + ": must be one of " + join(names) +
                (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace hytas
