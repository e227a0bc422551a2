// Rates of the engine on one core, without Python. Prints one JSON object a measurement;
// benchmarks/engine.py runs it.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hytas/evolution.hpp"

using namespace hytas;

namespace {

// Processor time of this one thread: other work on the machine does not count.
double seconds(const std::function<void()>& work) {
    const std::clock_t start = std::clock();
    work();
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// The best of several rounds: the machine's other work can only make a round slower.
double best_of(int rounds, const std::function<void()>& work) {
    double best = seconds(work);
    for (int i = 1; i < rounds; ++i) best = std::min(best, seconds(work));
    return best;
}

void print(const std::string& what, const std::string& space, const std::string& budget,
           double value, const char* unit) {
    std::printf(
        "{\"what\": \"%s\", \"space\": \"%s\", \"budget\": \"%s\", \"value\": %.6g, \"unit\": "
        "\"%s\"}\n",
        what.c_str(), space.c_str(), budget.c_str(), value, unit);
    std::fflush(stdout);
}

std::uint64_t sink = 0;  // what is computed must be used, or the compiler leaves it out

void random_and_check(const Feasible& feasible, Rng& rng, std::size_t draws) {
    const SearchSpace& space = feasible.space();
    Genome genome(space.genome_length());
    for (std::size_t i = 0; i < draws; ++i) {
        random_genome(space, rng, genome.data());
        sink += feasible.fits(genome.data()) ? 1 : 0;
    }
}

void exact_draws(const Feasible& feasible, Rng& rng, std::size_t draws) {
    Genome genome(feasible.space().genome_length());
    for (std::size_t i = 0; i < draws; ++i) {
        feasible.sample(rng, Uniform::architectures, genome);
        sink += genome[0];
    }
}

// One generation of `count` children of a fifth as many parents: mutation, crossover, inside the
// budget, distinct. The selection of the parents is part of it, drawing them is not.
double offspring(const std::shared_ptr<const Feasible>& feasible, std::uint64_t seed,
                 std::size_t count) {
    EvolutionSettings settings;
    settings.population = settings.parents = count / 5;
    settings.offspring = count;
    settings.seed = seed;
    Evolution run(feasible, settings);
    std::vector<Gene8> genomes;
    const std::vector<double> scores(settings.population, 0.0);
    std::vector<std::size_t> ids(settings.population);
    for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = i;
    run.ask(0, genomes);
    run.tell(ids, scores.data(), 1);
    genomes.clear();
    genomes.reserve(count * feasible->space().genome_length());
    const double taken = seconds([&] { run.ask(0, genomes); });
    return taken / static_cast<double>(run.asked() - ids.size());
}

void evolution(const std::shared_ptr<const Feasible>& feasible, std::size_t population,
               int generations) {
    EvolutionSettings settings;
    settings.population = population;
    settings.parents = std::max<std::size_t>(1, population / 5);
    const std::size_t macs = feasible->space().cost_index("macs");
    const double taken = best_of(3, [&] {
        Evolution run(feasible, settings);
        std::vector<Gene8> genomes;
        std::vector<double> scores;
        std::vector<std::size_t> ids;
        for (int generation = 0; generation < generations; ++generation) {
            genomes.clear();
            scores.clear();
            ids.clear();
            for (std::size_t id = run.ask(0, genomes); id < run.asked(); ++id) {
                ids.push_back(id);
                scores.push_back(-std::abs(
                    static_cast<double>(feasible->space().cost(macs, run.genome(id).data())) -
                    1.5e8));
            }
            run.tell(ids, scores.data(), 1);
        }
        sink += run.best();
    });
    print("evolution P=" + std::to_string(population) + " G=" + std::to_string(generations),
          feasible->space().name(), feasible->budget().text(), taken, "s");
}

void measure(const std::string& name, const std::string& budget, std::size_t draws) {
    const auto space = std::make_shared<const SearchSpace>(SearchSpace::builtin(name, {}));
    const double build = best_of(5, [&] {
        sink += static_cast<std::uint64_t>(Feasible(space, Budget::parse(budget)).count());
    });
    print("table build", name, budget, build * 1e3, "ms");
    const auto feasible = std::make_shared<const Feasible>(space, Budget::parse(budget));
    Rng rng(1);
    print("random draw with check", name, budget,
          static_cast<double>(draws) / best_of(3, [&] { random_and_check(*feasible, rng, draws); }),
          "1/s");
    print("exact draw", name, budget,
          static_cast<double>(draws) / best_of(3, [&] { exact_draws(*feasible, rng, draws); }),
          "1/s");
    if (feasible->count() > 1000000) {
        double least = offspring(feasible, 0, 100000);
        for (std::uint64_t seed = 1; seed < 5; ++seed)
            least = std::min(least, offspring(feasible, seed, 100000));
        print("offspring, distinct", name, budget, 1 / least, "1/s");
    }
    if (feasible->count() > 1000000) evolution(feasible, 1000, 200);
    if (feasible->count() < 100) {
        const double all = best_of(5, [&] {
            const Feasible fresh(space, Budget::parse(budget));
            Genome genome(space->genome_length());
            for (Wide i = 0; i < fresh.count(); ++i) {
                fresh.unrank(i, genome);
                sink += genome[0];
            }
        });
        print("build and list all", name, budget, all * 1e3, "ms");
    }
}

}  // namespace

int main(int count, char** arguments) {
    const std::size_t draws = count > 1 ? std::strtoul(arguments[1], nullptr, 10) : 1000000;
    measure("hytas", "0.5M..1M-params", draws);
    measure("hytas", "700K..705K-params", draws);
    measure("autoformer-tiny", "5M..6M-params", draws);
    measure("autoformer-tiny", "5.90M..5.91M-params", draws);
    measure("autoformer-tiny", "5.40M..5.41M-params", draws);
    return sink == 0 ? 1 : 0;
}
