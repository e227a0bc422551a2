#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "hytas/evolution.hpp"
#include "pareto.hpp"
#include "support.hpp"
#include "text.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

using FeasiblePtr = std::shared_ptr<const Feasible>;

FeasiblePtr feasible_in(const SpacePtr& space, const std::string& budget) {
    return std::make_shared<const Feasible>(space,
                                            budget.empty() ? Budget() : Budget::parse(budget));
}

EvolutionSettings settings(const std::string& strategy, std::size_t population,
                           std::uint64_t seed) {
    EvolutionSettings made;
    made.strategy = strategy;
    made.population = population;
    made.seed = seed;
    return made;
}

// A score with a known optimum: the nearer the MACs to a target the better; every seventh is NaN.
std::vector<double> score(const Evolution& run, std::size_t first, std::size_t count,
                          std::size_t objectives) {
    const SearchSpace& space = run.feasible().space();
    std::vector<double> scores;
    for (std::size_t id = first; id < first + count; ++id) {
        const auto macs =
            static_cast<double>(space.cost(space.cost_index("macs"), run.genome(id).data()));
        const auto params =
            static_cast<double>(space.cost(space.cost_index("params"), run.genome(id).data()));
        scores.push_back(id % 7 == 3 ? std::numeric_limits<double>::quiet_NaN()
                                     : -std::abs(macs - 1.4e8));
        if (objectives == 2) scores.push_back(-params);
    }
    return scores;
}

// Runs until `evaluations`, asking and telling in chunks of `chunk`, restored from its own state
// after every ask.
std::string run_in_chunks(const FeasiblePtr& feasible, const EvolutionSettings& with,
                          std::size_t evaluations, std::size_t chunk, bool restore) {
    Evolution run(feasible, with);
    const auto known = strategies();
    const auto own = std::find_if(known.begin(), known.end(), [&](const hytas::StrategyFacts& one) {
        return one.name == with.strategy;
    });
    const std::size_t objectives = own->several_scores ? 2 : 1;
    while (run.asked() < evaluations) {
        std::vector<Gene8> genomes;
        const std::size_t first = run.ask(chunk, genomes);
        const std::size_t count = run.asked() - first;
        if (count == 0) break;
        if (restore) run = Evolution::restore(feasible, run.state());
        const std::vector<double> scores = score(run, first, count, objectives);
        // Told backwards, one by one: order and batches must not matter.
        for (std::size_t i = count; i-- > 0;)
            run.tell({first + i}, scores.data() + i * objectives, objectives);
    }
    return run.state();
}

std::vector<std::string> all_strategies() {
    std::vector<std::string> names;
    for (const hytas::StrategyFacts& one : strategies()) names.push_back(one.name);
    return names;
}

}  // namespace

TEST_CASE("everything asked for is feasible and distinct, at any tightness") {
    for (const std::string& strategy : all_strategies())
        for (const char* budget :
             {"", "0.5M..1M-params", "700K..705K-params", "1000040..1000040-params"}) {
            INFO(strategy << " " << budget);
            Evolution run(feasible_in(builtin("hytas"), budget), settings(strategy, 40, 1));
            std::set<std::vector<Gene8>> seen;
            for (int generation = 0; generation < 8; ++generation) {
                std::vector<Gene8> genomes;
                const std::size_t first = run.ask(0, genomes);
                for (std::size_t id = first; id < run.asked(); ++id) {
                    REQUIRE(run.feasible().contains(run.genome(id)));
                    REQUIRE(seen.insert({run.genome(id).begin(), run.genome(id).end()}).second);
                }
                const std::vector<double> scores = score(run, first, run.asked() - first, 1);
                for (std::size_t id = first; id < run.asked(); ++id)
                    run.tell({id}, &scores[id - first], 1);
            }
        }
}

TEST_CASE("an interrupted run equals an uninterrupted one, whatever the chunks") {
    for (const std::string& strategy : all_strategies()) {
        INFO(strategy);
        const FeasiblePtr feasible = feasible_in(builtin("hytas"), "0.5M..1M-params");
        const std::string whole = run_in_chunks(feasible, settings(strategy, 30, 9), 300, 0, false);
        CHECK(whole == run_in_chunks(feasible, settings(strategy, 30, 9), 300, 0, true));
        // Chunks end generations at the same ids, so 300 evaluations end in the same state.
        CHECK(whole == run_in_chunks(feasible, settings(strategy, 30, 9), 300, 1, false));
        CHECK(whole == run_in_chunks(feasible, settings(strategy, 30, 9), 300, 3, true));
        CHECK(whole != run_in_chunks(feasible, settings(strategy, 30, 10), 300, 0, false));
    }
}

TEST_CASE("the sequence is the same on every compiler and optimisation level") {
    // A hash of states after 300 evaluations. It changes with any change of the search: then runs
    // of older versions cannot be resumed either, and the version of the state must go up.
    std::uint64_t hash = 0;
    for (const char* strategy : {"evolution", "ageing", "nsga2", "random", "local"}) {
        EvolutionSettings fixed = settings(strategy, 25, 4);
        fixed.retries = 4;  // written to the state: a new default is no new sequence
        hash = hash * 31 +
               hytas::fingerprint(run_in_chunks(feasible_in(builtin("hytas"), "700K..705K-params"),
                                                fixed, 300, 0, false));
    }
    CHECK(hash == 260187078100374675ULL);
}

TEST_CASE("the whole feasible set is found, and then the search says so") {
    const SpacePtr space = small_space();
    for (const std::string& strategy : all_strategies()) {
        INFO(strategy);
        const auto expected = all_inside(*space, Budget({{"params", 60, 90}}));
        const auto feasible = std::make_shared<const Feasible>(space, Budget({{"params", 60, 90}}));
        const std::string whole =
            run_in_chunks(feasible, settings(strategy, 20, 2), 100000, 0, false);
        CHECK(whole == run_in_chunks(feasible, settings(strategy, 20, 2), 100000, 7, true));
        Evolution run = Evolution::restore(feasible, whole);
        CHECK(run.asked() == expected.size());
        CHECK(run.evaluated() == expected.size());
        CHECK(run.exhausted());
        std::vector<Gene8> genomes;
        run.ask(0, genomes);
        CHECK(genomes.empty());
        std::set<Genome> found;
        for (std::size_t id = 0; id < run.asked(); ++id)
            found.insert(Genome(run.genome(id).begin(), run.genome(id).end()));
        CHECK(found == std::set<Genome>(expected.begin(), expected.end()));
    }
}

TEST_CASE("a coarse table is exhausted all the same") {
    const SpacePtr space = small_space();
    const Budget budget({{"params", 60, 200}, {"macs", 20, 60}});
    const auto expected = all_inside(*space, budget);
    const auto coarse = std::make_shared<const Feasible>(space, budget, 100);
    REQUIRE_FALSE(coarse->exact());
    const std::string whole = run_in_chunks(coarse, settings("evolution", 20, 2), 100000, 0, false);
    CHECK(whole == run_in_chunks(coarse, settings("evolution", 20, 2), 100000, 7, true));
    const Evolution run = Evolution::restore(coarse, whole);
    CHECK(run.asked() == expected.size());
    CHECK(run.exhausted());
}

TEST_CASE("evolution, ageing and local search beat random search on a score with structure") {
    const FeasiblePtr feasible = feasible_in(builtin("hytas"), "0.5M..1M-params");
    const auto median_best = [&](const std::string& strategy) {
        std::vector<double> best;
        for (std::uint64_t seed = 0; seed < 7; ++seed) {
            EvolutionSettings with = settings(strategy, 50, seed);
            Evolution run =
                Evolution::restore(feasible, run_in_chunks(feasible, with, 1000, 0, false));
            best.push_back(run.scores(run.best())[0]);
        }
        std::sort(best.begin(), best.end());
        return best[3];
    };
    const double random = median_best("random");
    CHECK(median_best("evolution") > random);
    CHECK(median_best("ageing") > random);
    CHECK(median_best("local") > random);
}

TEST_CASE("NaN ranks last, ties go to the older") {
    const FeasiblePtr feasible = feasible_in(builtin("hytas"), "");
    Evolution run(feasible, settings("evolution", 4, 0));
    std::vector<Gene8> genomes;
    run.ask(0, genomes);
    CHECK(error_of([&] { return run.best(); }) == "best: no score has been told yet");
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double scores[] = {nan, -std::numeric_limits<double>::infinity(), 5, 5};
    run.tell({0, 1, 2, 3}, scores, 1);
    CHECK(run.best() == 2);
    run.ask(0, genomes);
    CHECK(run.population() == std::vector<std::size_t>{2, 3, 1, 0});
}

TEST_CASE("elitism: the best are never lost; ageing: the oldest leave") {
    for (const char* strategy : {"evolution", "ageing"}) {
        Evolution run(feasible_in(builtin("hytas"), ""), settings(strategy, 10, 3));
        for (int generation = 0; generation < 12; ++generation) {
            std::vector<Gene8> genomes;
            const std::size_t first = run.ask(0, genomes);
            const auto scores = score(run, first, run.asked() - first, 1);
            for (std::size_t id = first; id < run.asked(); ++id)
                run.tell({id}, &scores[id - first], 1);
        }
        std::vector<Gene8> genomes;
        const std::size_t told = run.asked();
        run.ask(0, genomes);
        const auto& population = run.population();
        REQUIRE(population.size() == 10);
        if (std::string(strategy) == "evolution") {
            CHECK(population[0] == run.best());
        } else {
            for (std::size_t i = 0; i < 10; ++i) CHECK(population[i] == told - 10 + i);
        }
    }
}

TEST_CASE("tell is all or nothing") {
    Evolution run(feasible_in(builtin("hytas"), ""), settings("evolution", 4, 0));
    std::vector<Gene8> genomes;
    run.ask(3, genomes);
    const double scores[] = {1, 2, 3, 4};
    CHECK(error_of([&] { return run.tell({0, 3}, scores, 1); }) ==
          "tell: id 3 was never asked for");
    CHECK(error_of([&] { return run.tell({0, 0}, scores, 1); }) == "tell: id 0 is there twice");
    CHECK(error_of([&] {
              return run.tell({0}, scores, 2);
          }).find("strategy evolution takes one, nsga2 several") != std::string::npos);
    CHECK(run.evaluated() == 0);
    run.tell({1}, scores, 1);
    CHECK(error_of([&] { return run.tell({1}, scores, 1); }) == "tell: id 1 was told before");
    CHECK(run.pending() == std::vector<std::size_t>{0, 2});
    run.ask(0, genomes);
    CHECK(run.asked() == 4);
    CHECK(error_of([&] {
              return run.ask(0, genomes);
          }).find("3 of its architectures have no score yet") != std::string::npos);
}

TEST_CASE("scores may move, and the next generation is chosen by what they are then") {
    const FeasiblePtr feasible = feasible_in(builtin("hytas"), "");
    Evolution run(feasible, settings("evolution", 4, 0));
    std::vector<Gene8> genomes;
    run.ask(0, genomes);
    const double rising[] = {1, 2, 3, 4};
    const double falling[] = {4, 3, 2, 1};
    CHECK(error_of([&] { return run.rescore({0}, falling, 1); }) ==
          "rescore: id 0 was not told yet");
    run.tell({0, 1, 2, 3}, rising, 1);
    run.ask(0, genomes);
    CHECK(run.population() == std::vector<std::size_t>{3, 2, 1, 0});
    CHECK(error_of([&] { return run.rescore({0, 4}, falling, 1); }) ==
          "rescore: id 4 was not told yet");
    CHECK(error_of([&] { return run.rescore({0, 9}, falling, 1); }) ==
          "rescore: id 9 was never asked for");
    CHECK(run.best() == 3);
    const double poor[] = {0, 0, 0, 0};
    run.tell({4, 5, 6, 7}, poor, 1);
    run.rescore({0, 1, 2, 3}, falling, 1);
    CHECK(run.evaluated() == 8);
    CHECK(run.best() == 0);
    Evolution restored = Evolution::restore(feasible, run.state());
    for (Evolution* each : {&run, &restored}) {
        each->ask(0, genomes);
        CHECK(each->population() == std::vector<std::size_t>{0, 1, 2, 3});
    }
    CHECK(run.state() == restored.state());
}

TEST_CASE("wrong settings are refused") {
    const FeasiblePtr feasible = feasible_in(builtin("hytas"), "");
    CHECK(error_of([&] {
              return Evolution(feasible, settings("evolve", 5, 0));
          }).find("must be one of evolution, ageing, nsga2, random, local") != std::string::npos);
    CHECK(error_of([&] { return Evolution(feasible, settings("random", 0, 0)); }) ==
          "population 0: must be 1 to 16,777,216");
    EvolutionSettings wrong = settings("random", 5, 0);
    wrong.mutation_share = -0.5;
    CHECK(error_of([&] { return Evolution(feasible, wrong); }).find("mutation_share") == 0);
}

TEST_CASE("fronts and crowding equal the definitions") {
    Rng rng(11);
    for (int trial = 0; trial < 60; ++trial) {
        const std::size_t count = 1 + rng.below(40);
        const std::size_t objectives = 1 + rng.below(3);
        std::vector<double> data;
        for (std::size_t i = 0; i < count * objectives; ++i)
            data.push_back(rng.below(20) == 0 ? std::numeric_limits<double>::quiet_NaN()
                                              : static_cast<double>(rng.below(6)));
        const ScoreRows rows{data.data(), count, objectives};
        // The slow twin: peel off what none of the rest dominates, again and again.
        std::vector<std::size_t> expected(count, count + 1);
        std::size_t number = 0;
        for (std::size_t left = count; left > 0; ++number) {
            std::vector<std::size_t> front;
            for (std::size_t i = 0; i < count; ++i) {
                bool open = expected[i] == count + 1 && !has_nan(rows.row(i), objectives);
                for (std::size_t j = 0; j < count && open; ++j)
                    open = !(expected[j] == count + 1 && !has_nan(rows.row(j), objectives) &&
                             dominates(rows.row(j), rows.row(i), objectives));
                if (open) front.push_back(i);
            }
            if (front.empty()) break;
            for (const std::size_t i : front) expected[i] = number;
            left -= front.size();
        }
        for (std::size_t i = 0; i < count; ++i)
            if (has_nan(rows.row(i), objectives)) expected[i] = number;
        CHECK(front_numbers(rows) == expected);
        std::vector<std::size_t> first;
        for (std::size_t i = 0; i < count; ++i)
            if (expected[i] == 0 && !has_nan(rows.row(i), objectives)) first.push_back(i);
        CHECK(first_front(rows) == first);
    }
    // Four points on a line, by hand: the inner ones have (4-0)/6 + (6-2)/6 and (6-1)/6 + (5-0)/6.
    const double line[] = {0, 6, 1, 5, 4, 2, 6, 0};
    const auto distance = crowding({line, 4, 2}, {0, 1, 2, 3});
    CHECK(std::isinf(distance[0]));
    CHECK(std::isinf(distance[3]));
    CHECK(distance[1] == doctest::Approx(8.0 / 6));
    CHECK(distance[2] == doctest::Approx(10.0 / 6));
}

TEST_CASE("NSGA-II covers the front of a small space") {
    const SpacePtr space = small_space();
    const auto feasible = std::make_shared<const Feasible>(space, Budget());
    const auto all = all_genomes(*space);
    std::vector<double> scores;
    for (const Genome& genome : all) {
        scores.push_back(static_cast<double>(space->cost(1, genome.data())));
        scores.push_back(-static_cast<double>(space->cost(0, genome.data())));
    }
    std::set<std::pair<double, double>> truth;
    for (const std::size_t i : first_front({scores.data(), all.size(), 2}))
        truth.insert({scores[2 * i], scores[2 * i + 1]});
    Evolution run(feasible, settings("nsga2", 60, 1));
    while (run.asked() < all.size() / 5) {
        std::vector<Gene8> genomes;
        const std::size_t first = run.ask(0, genomes);
        for (std::size_t id = first; id < run.asked(); ++id) {
            const double pair[] = {static_cast<double>(space->cost(1, run.genome(id).data())),
                                   -static_cast<double>(space->cost(0, run.genome(id).data()))};
            run.tell({id}, pair, 2);
        }
    }
    std::size_t found = 0;
    std::set<std::pair<double, double>> points;
    for (const std::size_t id : run.front()) points.insert({run.scores(id)[0], run.scores(id)[1]});
    for (const auto& point : truth) found += points.contains(point) ? 1 : 0;
    // A fifth of the space is enough for most of its front; random draws would find a fifth of it.
    CHECK(static_cast<double>(found) > 0.6 * static_cast<double>(truth.size()));
}
