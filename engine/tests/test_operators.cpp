#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "hytas/detail/repair.hpp"
#include "hytas/operators.hpp"
#include "support.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

std::size_t layer_distance(const SearchSpace& space, const Genome& left, const Genome& right) {
    std::size_t distance = 0;
    for (std::size_t i = space.global_slots(); i < left.size(); ++i)
        distance += left[i] != right[i] ? 1 : 0;
    return distance;
}

bool same_globals(const SearchSpace& space, const Genome& left, const Genome& right) {
    return std::equal(left.begin(),
                      left.begin() + static_cast<std::ptrdiff_t>(space.global_slots()),
                      right.begin());
}

// So many genes with two values before the depth and behind it, and so many genes in each of up to
// so many layers.
SpacePtr space_of_shape(std::size_t before, std::size_t behind, std::size_t layers,
                        std::size_t per_layer) {
    std::string genes;
    const auto gene = [&genes](const std::string& name, const std::string& rest) {
        genes += std::string(genes.empty() ? "" : ", ") + R"({"name": ")" + name +
                 R"(", "values": [)" + rest + "}";
    };
    for (std::size_t i = 0; i < before; ++i) gene("before" + std::to_string(i), "1, 2]");
    std::string depths;
    for (std::size_t depth = 1; depth <= layers; ++depth)
        depths += (depth > 1 ? ", " : "") + std::to_string(depth);
    gene("depth", depths + "]");
    for (std::size_t i = 0; i < behind; ++i) gene("behind" + std::to_string(i), "1, 2]");
    for (std::size_t i = 0; i < per_layer; ++i)
        gene("own" + std::to_string(i), R"(1, 2, 3], "per": "depth")");
    return std::make_shared<const SearchSpace>(SearchSpace::parse(
        R"({"format": "hytas-space", "version": 1, "name": "shape", "genes": [)" + genes +
            R"(], "costs": {"params": {"layers": {"depth": "1"}}}})",
        {}));
}

}  // namespace

TEST_CASE("every operator keeps genomes of every length valid, wherever the depth stands") {
    Rng rng(11);
    for (const std::size_t before : {0, 1, 2, 6, 8})
        for (const std::size_t behind : {0, 1, 3})
            for (const std::size_t layers : {1, 2, 5, 7, 8, 13})
                for (const std::size_t per_layer : {1, 2, 3}) {
                    const SpacePtr space = space_of_shape(before, behind, layers, per_layer);
                    const MutationRates rates = MutationRates::preset(*space, "autoformer", {});
                    Genome left(space->genome_length());
                    Genome right(space->genome_length());
                    Genome child(space->genome_length());
                    bool valid = true;
                    for (int i = 0; i < 30; ++i) {
                        random_genome(*space, rng, left.data());
                        random_genome(*space, rng, right.data());
                        valid = valid && space->valid(left) && space->valid(right);
                        crossover(*space, left.data(), right.data(), rng, child.data());
                        valid = valid && space->valid(child);
                        mutate(*space, rates, left.data(), rng, child.data());
                        valid = valid && space->valid(child);
                        step(*space, left.data(), rng, child.data());
                        valid = valid && space->valid(child);
                    }
                    INFO(before, " before, ", behind, " behind, ", layers, " layers of ",
                         per_layer);
                    CHECK(valid);
                }
}

TEST_CASE("mutation keeps genomes valid and changes genes at the stated rates") {
    const SpacePtr space = builtin("hytas");
    const MutationRates rates = MutationRates::preset(*space, "autoformer", {{"mlp_ratio", 1.0}});
    const Feasible all(space, Budget());
    Rng rng(1);
    Genome parent(space->genome_length());
    Genome child(space->genome_length());
    double depth = 0;
    double width = 0;
    double heads = 0;
    double ratios = 0;
    double layers = 0;
    const int trials = 20000;
    for (int i = 0; i < trials; ++i) {
        all.sample(rng, Uniform::choices, parent);
        mutate(*space, rates, parent.data(), rng, child.data());
        REQUIRE(space->valid(child));
        depth += parent[0] != child[0] ? 1 : 0;
        width += parent[1] != child[1] ? 1 : 0;
        const std::size_t kept = std::min(space->groups()[0].depth(parent.data()),
                                          space->groups()[0].depth(child.data()));
        for (std::size_t layer = 0; layer < kept; ++layer, layers += 1) {
            heads += parent[2 + 2 * layer] != child[2 + 2 * layer] ? 1 : 0;
            ratios += parent[3 + 2 * layer] != child[3 + 2 * layer] ? 1 : 0;
        }
    }
    // A redrawn gene of n values is different (n - 1) / n of the time.
    CHECK(depth / trials == doctest::Approx(0.4 * 6 / 7).epsilon(0.03));
    CHECK(width / trials == doctest::Approx(0.4 * 11 / 12).epsilon(0.03));
    CHECK(heads / layers == doctest::Approx(0.2 * 3 / 4).epsilon(0.03));
    CHECK(ratios / layers == doctest::Approx(5.0 / 6).epsilon(0.03));
}

TEST_CASE("the presets are the references' and wrong ones are refused") {
    const SpacePtr space = builtin("hytas");
    const auto rate = [&](const char* name) {
        const MutationRates rates = MutationRates::preset(*space, name, {});
        const auto share = [](std::uint64_t threshold) {
            return std::round(100 * static_cast<double>(threshold) / 4294967296.0) / 100;
        };
        return std::vector<double>{share(rates.thresholds()[0]), share(rates.thresholds()[1]),
                                   share(rates.thresholds()[2])};
    };
    CHECK(rate("autoformer") == std::vector<double>{0.4, 0.4, 0.2});
    CHECK(rate("s3") == std::vector<double>{0.2, 0.2, 0.4});
    CHECK(rate("hytas") == std::vector<double>{0.2, 0.2, 0.2});
    CHECK(error_of([&] {
              return MutationRates::preset(*space, "x", {});
          }).find("must be one of hytas, autoformer, s3") != std::string::npos);
    CHECK(error_of([&] {
              return MutationRates::preset(*space, "s3", {{"width", 0.1}});
          }).find("has no gene 'width'") != std::string::npos);
    CHECK(error_of([&] {
              return MutationRates::preset(*space, "s3", {{"depth", 1.5}});
          }).find("must be 0 to 1") != std::string::npos);
    CHECK(error_of([&] {
              return MutationRates::preset(*space, "s3",
                                           {{"depth", std::numeric_limits<double>::quiet_NaN()}});
          }).find("must be 0 to 1") != std::string::npos);
}

TEST_CASE("crossover takes every gene from a parent, also between parents of different depth") {
    Rng rng(2);
    for (const SpacePtr& space :
         {builtin("hytas"), builtin("s3"), builtin("pit-tiny"), small_space()}) {
        const Feasible all(space, Budget());
        Genome left(space->genome_length());
        Genome right(space->genome_length());
        Genome child(space->genome_length());
        std::size_t mixed = 0;
        for (int i = 0; i < 2000; ++i) {
            all.sample(rng, Uniform::choices, left);
            all.sample(rng, Uniform::choices, right);
            crossover(*space, left.data(), right.data(), rng, child.data());
            // Two parents may combine to what "require" excludes: repair's business, not
            // crossover's.
            if (space->combinations().of(child.data()) != Combinations::none)
                REQUIRE(space->valid(child));
            for (std::size_t slot = 0; slot < space->global_slots(); ++slot)
                CHECK((child[slot] == left[slot] || child[slot] == right[slot]));
            for (const LayerGroup& group : space->groups()) {
                const std::size_t genes = group.radix.size();
                for (std::size_t layer = 0; layer < group.depth(child.data()); ++layer)
                    for (std::size_t gene = 0; gene < genes; ++gene) {
                        const std::size_t at = group.offset + layer * genes + gene;
                        const bool from_left =
                            layer < group.depth(left.data()) && child[at] == left[at];
                        const bool from_right =
                            layer < group.depth(right.data()) && child[at] == right[at];
                        REQUIRE((from_left || from_right));
                    }
            }
            mixed += child != left && child != right ? 1 : 0;
        }
        CHECK(mixed > 1000);
    }
}

TEST_CASE("a random genome is valid, and every gene of it uniform among its values") {
    // Nine genes a layer are drawn layer by layer, one alone several layers at once.
    std::string nine =
        R"({"format": "hytas-space", "version": 1, "name": "nine", "genes": [{"name": "depth",
            "values": [0, 1, 3]})";
    for (const char* gene : {"a", "b", "c", "d", "e", "f", "g", "h", "i"})
        nine +=
            std::string(R"(, {"name": ")") + gene + R"(", "values": [1, 2, 3], "per": "depth"})";
    nine += R"(], "costs": {"params": {"layers": {"depth": "a"}}}})";
    std::string alone =
        R"({"format": "hytas-space", "version": 1, "name": "alone", "genes": [{"name": "depth",
            "values": [9, 11]},
        {"name": "a", "values": [1, 2, 3, 4, 5], "per": "depth"}],
        "costs": {"params": {"layers": {"depth": "a"}}}})";
    const auto parsed = [](const std::string& text) {
        return std::make_shared<const SearchSpace>(SearchSpace::parse(text, {}));
    };
    Rng rng(12);
    for (const SpacePtr& space : {builtin("hytas"), builtin("autoformer-tiny"), builtin("s3"),
                                  small_space(), parsed(nine), parsed(alone)}) {
        INFO(space->name());
        Genome genome(space->genome_length());
        std::vector<std::map<Gene8, double>> seen(genome.size());
        std::vector<double> present(genome.size(), 0.0);
        const int draws = 20000;
        for (int i = 0; i < draws; ++i) {
            std::fill(genome.begin(), genome.end(), Gene8{0xff});
            random_genome(*space, rng, genome.data());
            if (space->combinations().of(genome.data()) != Combinations::none)
                REQUIRE(space->valid(genome));
            const auto count = [&](std::size_t at) {
                seen[at][genome[at]] += 1;
                present[at] += 1;
            };
            for (std::size_t slot = 0; slot < space->global_slots(); ++slot) count(slot);
            for (const LayerGroup& group : space->groups())
                for (std::size_t at = group.offset;
                     at < group.offset + group.depth(genome.data()) * group.radix.size(); ++at)
                    count(at);
        }
        for (std::size_t at = 0; at < genome.size(); ++at) {
            const double values = space->masks().radix[at];
            REQUIRE(present[at] > 100);
            double chi = 0;
            for (std::size_t value = 0; value < static_cast<std::size_t>(values); ++value) {
                const double off = seen[at][static_cast<Gene8>(value)] - present[at] / values;
                chi += off * off / (present[at] / values);
            }
            if (values > 1) CHECK(chi < chi_square_limit(values - 1));
        }
    }
}

TEST_CASE("the layers of a random genome do not depend on one another") {
    const SpacePtr space = builtin("hytas");
    const LayerGroup& group = space->groups()[0];
    Rng rng(13);
    Genome genome(space->genome_length());
    // In one block, in neighbouring blocks, and far apart.
    for (const auto& [one, other] : {std::pair{0U, 1U}, std::pair{1U, 2U}, std::pair{0U, 3U}}) {
        std::vector<double> seen(group.options * group.options, 0.0);
        const double draws = 30.0 * static_cast<double>(seen.size());
        for (double i = 0; i < draws; ++i) {
            random_genome(*space, rng, genome.data());
            seen[group.option(genome.data() + group.offset + 2 * one) * group.options +
                 group.option(genome.data() + group.offset + 2 * other)] += 1;
        }
        double chi = 0;
        for (const double here : seen) chi += (here - 30) * (here - 30) / 30;
        CHECK(chi < chi_square_limit(static_cast<double>(seen.size() - 1)));
    }
}

TEST_CASE("a step changes exactly one gene") {
    const SpacePtr space = builtin("hytas");
    const Feasible all(space, Budget());
    Rng rng(3);
    Genome parent(space->genome_length());
    Genome child(space->genome_length());
    for (int i = 0; i < 3000; ++i) {
        all.sample(rng, Uniform::choices, parent);
        step(*space, parent.data(), rng, child.data());
        REQUIRE(space->valid(child));
        if (parent[0] == child[0]) {
            CHECK(layer_distance(*space, parent, child) + (parent[1] != child[1] ? 1 : 0) == 1);
        } else {
            CHECK(parent[1] == child[1]);
            const std::size_t kept = 2 * std::min(space->groups()[0].depth(parent.data()),
                                                  space->groups()[0].depth(child.data()));
            CHECK(std::equal(parent.begin() + 2,
                             parent.begin() + 2 + static_cast<std::ptrdiff_t>(kept),
                             child.begin() + 2));
        }
    }
}

TEST_CASE("repair changes the fewest genes, each nearest architecture equally likely") {
    const SpacePtr space = small_space();
    Rng rng(4);
    const auto all = all_genomes(*space);
    for (int trial = 0; trial < 40; ++trial) {
        const Genome& one = all[rng.below(all.size())];
        const std::int64_t params = space->cost(0, one.data());
        const std::int64_t macs = space->cost(1, one.data());
        const Budget budget = trial % 2 == 0
                                  ? Budget({{"params", params - 3, params + 3}})
                                  : Budget({{"params", params - 12, params + 12},
                                            {"macs", macs - 4, macs},
                                            {"activations", trial % 4 == 1 ? 0 : 20, 60}});
        const auto inside = all_inside(*space, budget);
        if (inside.empty()) continue;
        const Feasible feasible(space, budget);
        Repair repair(feasible);
        const Genome& broken = all[rng.below(all.size())];
        // The slow twin: all feasible architectures with the same global genes at the smallest
        // distance.
        std::set<Genome> expected;
        std::size_t fewest = broken.size();
        for (const Genome& genome : inside)
            if (same_globals(*space, genome, broken))
                fewest = std::min(fewest, layer_distance(*space, genome, broken));
        for (const Genome& genome : inside)
            if (same_globals(*space, genome, broken) &&
                layer_distance(*space, genome, broken) == fewest)
                expected.insert(genome);
        std::map<Genome, double> seen;
        const double draws = expected.empty() ? 100 : 100.0 * static_cast<double>(expected.size());
        for (double i = 0; i < draws; ++i) {
            Genome child = broken;
            const std::size_t changed = repair(rng, child.data());
            REQUIRE(feasible.contains(child));
            if (expected.empty()) continue;
            REQUIRE(expected.contains(child));
            CHECK(changed == fewest);
            seen[child] += 1;
        }
        if (expected.size() < 2) continue;
        double chi = 0;
        for (const Genome& genome : expected)
            chi += (seen[genome] - 100) * (seen[genome] - 100) / 100;
        CHECK(chi < chi_square_limit(static_cast<double>(expected.size() - 1)));
    }
}

TEST_CASE("repair counts more ways than 64 bits hold") {
    // The deepest architectures of this space number more than 2^64 for each combination of global
    // genes.
    const SpacePtr space = builtin("autoformer");
    const Feasible all(space, Budget());
    Rng rng(6);
    Genome home(space->genome_length());
    int distant = 0;
    for (int trial = 0; trial < 200; ++trial) {
        all.sample(rng, Uniform::architectures, home);  // nearly all are among the deepest
        const std::int64_t params = space->cost(0, home.data());
        const Feasible feasible(space, Budget({{space->costs()[0].name, params, params}}));
        REQUIRE(feasible.exact());
        REQUIRE(feasible.count() > 0);
        if (trial == 0) CHECK((all.count() >> 64) > 0);
        Repair repair(feasible);
        Genome child = home;
        for (int changes = 0; changes < 5; ++changes) {
            const LayerGroup& group = space->groups()[0];
            const std::size_t byte = rng.below(group.depth(home.data()) * group.radix.size());
            child[group.offset + byte] =
                static_cast<Gene8>(rng.below(group.radix[byte % group.radix.size()]));
        }
        const Genome before = child;
        const std::size_t changed = repair(rng, child.data());
        REQUIRE(feasible.contains(child));
        CHECK(same_globals(*space, child, before));
        CHECK(changed == layer_distance(*space, child, before));
        CHECK(changed <= layer_distance(*space, home, before));  // the way back is one way
        distant += changed > 2 ? 1 : 0;
    }
    CHECK(distant > 0);
}

TEST_CASE("repair changes the fewest global genes when no architecture has the child's") {
    const SpacePtr space = builtin("hytas");
    const Feasible feasible(space, Budget::parse(std::string("250K-params")));
    const Feasible all(space, Budget());
    Repair repair(feasible);
    Rng rng(5);
    Genome child(space->genome_length());
    std::set<std::vector<Gene8>> known;
    for (int i = 0; i < 20000; ++i) {
        feasible.sample(rng, Uniform::choices, child);
        known.insert({child[0], child[1]});
    }
    for (int i = 0; i < 3000; ++i) {
        all.sample(rng, Uniform::choices, child);
        const Genome before = child;
        repair(rng, child.data());
        REQUIRE(feasible.contains(child));
        std::size_t fewest = 2;
        for (const auto& globals : known)
            fewest = std::min<std::size_t>(
                fewest, (globals[0] != before[0] ? 1 : 0) + (globals[1] != before[1] ? 1 : 0));
        CHECK((child[0] != before[0] ? 1U : 0U) + (child[1] != before[1] ? 1U : 0U) == fewest);
    }
}
