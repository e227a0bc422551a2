#include <algorithm>
#include <cmath>
#include <set>

#include "counting_table.hpp"
#include "support.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

std::vector<Genome> enumerated(const Feasible& feasible) {
    std::vector<Genome> all;
    Genome genome(feasible.space().genome_length());
    for (Wide i = 0; i < feasible.count(); ++i) {
        feasible.unrank(i, genome);
        all.push_back(genome);
    }
    return all;
}

// Random bounds through the costs of a random architecture, so that most of them are tight but not
// empty.
Budget random_budget(const SearchSpace& space, Rng& rng) {
    const auto all = all_genomes(space);
    std::vector<Bound> bounds;
    for (std::size_t cost = 0; cost < space.costs().size(); ++cost) {
        if (rng.below(2) == 0) continue;
        std::int64_t low = space.cost(cost, all[rng.below(all.size())].data());
        std::int64_t high = space.cost(cost, all[rng.below(all.size())].data());
        if (low > high) std::swap(low, high);
        bounds.push_back({space.costs()[cost].name, rng.below(3) == 0 ? 0 : low, high});
    }
    return Budget(bounds);
}

// The documented order: global genes, then sums of bounded costs over layers, then layers.
std::vector<Genome> in_order(const SearchSpace& space, const Feasible& feasible,
                             std::vector<Genome> genomes) {
    std::sort(genomes.begin(), genomes.end(), [&](const Genome& left, const Genome& right) {
        const auto key = [&](const Genome& genome) {
            const std::vector<Gene8> global(
                genome.begin(), genome.begin() + static_cast<std::ptrdiff_t>(space.global_slots()));
            return std::make_tuple(global, feasible.table().sums_of(space, genome.data()), genome);
        };
        return key(left) < key(right);
    });
    return genomes;
}

void check_against_brute_force(const SpacePtr& space, const Budget& budget) {
    const auto expected = all_inside(*space, budget);
    INFO(space->name() << " " << budget.text());
    if (expected.empty()) {
        CHECK(error_of([&] { return Feasible(space, budget); }).find("no architecture of") !=
              std::string::npos);
        return;
    }
    const Feasible feasible(space, budget);
    REQUIRE(feasible.count() == expected.size());
    const auto found = enumerated(feasible);
    CHECK(found == in_order(*space, feasible, expected));
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(feasible.rank(found[i]) == i);
    std::size_t inside = 0;
    for (const Genome& genome : all_genomes(*space)) inside += feasible.contains(genome) ? 1 : 0;
    CHECK(inside == expected.size());
}

}  // namespace

TEST_CASE("counts, enumeration and ranks equal brute force") {
    Rng rng(1);
    check_against_brute_force(small_space(), Budget());
    for (int trial = 0; trial < 60; ++trial)
        check_against_brute_force(small_space(), random_budget(*small_space(), rng));
    for (int trial = 0; trial < 150; ++trial) {
        const SpacePtr space = random_space(rng);
        check_against_brute_force(space, random_budget(*space, rng));
    }
}

TEST_CASE("windows shrink to a single architecture") {
    const SpacePtr space = small_space();
    const std::size_t params = space->cost_index("params");
    const std::size_t macs = space->cost_index("macs");
    for (const Genome& genome : all_genomes(*space)) {
        const std::int64_t p = space->cost(params, genome.data());
        const std::int64_t m = space->cost(macs, genome.data());
        const Feasible feasible(space, Budget({{"params", p, p}, {"macs", m, m}}));
        CHECK(feasible.contains(genome));
        Genome drawn(space->genome_length());
        feasible.unrank(feasible.rank(genome), drawn);
        CHECK(drawn == genome);
    }
}

TEST_CASE("the legal architectures of the reference table") {
    CHECK(builtin("autoformer-tiny")->size() == 1056964608U);
    const auto count = [](const char* space, const char* budget) {
        return Feasible(builtin(space), Budget::parse(std::string(budget))).count();
    };
    CHECK(count("autoformer-tiny", "5.40M..5.41M-params") == 12);
    CHECK(count("autoformer-tiny", "5M..6M-params") == 14475214);
    CHECK(count("autoformer-tiny", "5.90M..5.91M-params") == 638157);
    CHECK(to_text(count("autoformer-base", "1G-params")) == "10108977168384");
    CHECK(to_text(count("hytas", "1G-params")) == "793920596262912");
}

TEST_CASE("no budget and a budget that all fit count the same") {
    for (const char* name : {"hytas", "autoformer-tiny", "autoformer-small", "autoformer-base",
                             "pit-tiny", "pit-xs", "pit-small"}) {
        const SpacePtr space = builtin(name);
        CHECK(Feasible(space, Budget()).count() == space->size());
        CHECK(Feasible(space, Budget::parse(std::string("100G-params"))).count() == space->size());
    }
}

TEST_CASE("a uniform draw over architectures is uniform") {
    const SpacePtr space = small_space();
    const Feasible feasible(space, Budget({{"params", 60, 200}, {"activations", 0, 40}}));
    const auto count = static_cast<std::size_t>(feasible.count());
    REQUIRE(count > 100);
    std::vector<double> seen(count, 0.0);
    Rng rng(7);
    Genome genome(space->genome_length());
    const double draws = 100.0 * static_cast<double>(count);
    for (double i = 0; i < draws; ++i) {
        feasible.sample(rng, Uniform::architectures, genome);
        seen[static_cast<std::size_t>(feasible.rank(genome))] += 1;
    }
    double chi = 0;
    for (const double here : seen) chi += (here - 100.0) * (here - 100.0) / 100.0;
    CHECK(chi < chi_square_limit(static_cast<double>(count - 1)));
}

TEST_CASE("a uniform draw over choices has the probability of its genes") {
    const SpacePtr space = small_space();
    const Feasible feasible(space, Budget({{"params", 60, 200}}));
    const auto genomes = enumerated(feasible);
    // 1 / probability of the layers; the global genes have the same probability everywhere.
    std::vector<double> weight;
    double total = 0;
    for (const Genome& genome : genomes) {
        double chance = 1;
        for (const LayerGroup& group : space->groups())
            chance /= std::pow(static_cast<double>(group.options),
                               static_cast<double>(group.depth(genome.data())));
        weight.push_back(chance);
        total += chance;
    }
    std::vector<double> seen(genomes.size(), 0.0);
    Rng rng(8);
    Genome genome(space->genome_length());
    const double draws = 2e5;
    for (double i = 0; i < draws; ++i) {
        feasible.sample(rng, Uniform::choices, genome);
        seen[static_cast<std::size_t>(feasible.rank(genome))] += 1;
    }
    // Cells with few expected draws are pooled: the statistic assumes at least about ten in each.
    double chi = 0;
    double cells = 0;
    double pooled_seen = 0;
    double pooled_expected = 0;
    for (std::size_t i = 0; i < genomes.size(); ++i) {
        const double expected = draws * weight[i] / total;
        pooled_seen += seen[i];
        pooled_expected += expected;
        if (pooled_expected < 10) continue;
        chi += (pooled_seen - pooled_expected) * (pooled_seen - pooled_expected) / pooled_expected;
        cells += 1;
        pooled_seen = pooled_expected = 0;
    }
    REQUIRE(cells > 50);
    CHECK(chi < chi_square_limit(cells - 1));
}

TEST_CASE("counts beyond 64 bits are exact") {
    std::string text = R"({"format": "hytas-space", "version": 1, "name": "deep", "genes": [
        {"name": "depth", "values": [64]}, {"name": "a", "values": [1, 2, 3], "per": "depth"}],
        "costs": {"params": {"layers": {"depth": "a"}}}})";
    const auto space = std::make_shared<const SearchSpace>(SearchSpace::parse(text, {}));
    Wide power = 1;
    for (int i = 0; i < 64; ++i) power *= 3;
    CHECK(space->size() == power);
    const Feasible feasible(space, Budget({{"params", 100, 150}}));
    CHECK((feasible.count() >> 64) != 0);
    Rng rng(3);
    Genome genome(space->genome_length());
    for (int i = 0; i < 200; ++i) {
        const Wide index = rng.below_wide(feasible.count());
        feasible.unrank(index, genome);
        CHECK(feasible.contains(genome));
        CHECK(feasible.rank(genome) == index);
    }
    // Symmetric: a sum of 128 +- x has as many architectures on either side.
    CHECK(Feasible(space, Budget({{"params", 64, 100}})).count() ==
          Feasible(space, Budget({{"params", 156, 192}})).count());
    // 255 layers of 3 genes have more than 2^128 architectures: said, not wrapped.
    text.replace(text.find("64"), 2, "255");
    const auto deeper = std::make_shared<const SearchSpace>(SearchSpace::parse(text, {}));
    CHECK(error_of([&] { return deeper->size(); }).find("more than 2^128") != std::string::npos);
    CHECK(error_of([&] { return Feasible(deeper, Budget()); }).find("more than 2^128") !=
          std::string::npos);
}

TEST_CASE("an infeasible budget names the smallest, the largest or the nearest costs") {
    const SpacePtr space = small_space();
    const std::size_t params = space->cost_index("params");
    std::set<std::int64_t> costs;
    for (const Genome& genome : all_genomes(*space))
        costs.insert(space->cost(params, genome.data()));
    const auto refusal = [&](std::int64_t low, std::int64_t high) {
        return error_of([&] { return Feasible(space, Budget({{"params", low, high}})); });
    };
    CHECK(refusal(0, 1) == "budget 1-params: no architecture of small fits; the smallest has " +
                               std::to_string(*costs.begin()) + " params");
    CHECK(refusal(5000, 6000)
              .find("the largest has " + std::to_string(*costs.rbegin()) + " params") !=
          std::string::npos);
    for (auto at = costs.begin(); std::next(at) != costs.end(); ++at) {
        const std::int64_t low = *at + 1;
        const std::int64_t high = *std::next(at) - 1;
        if (low > high) continue;
        CHECK(refusal(low, high).find("the nearest have " + std::to_string(low - 1) +
                                      " params below and " + std::to_string(high + 1) +
                                      " params above") != std::string::npos);
    }
    const std::string both = error_of(
        [&] { return Feasible(space, Budget({{"params", 0, *costs.begin()}, {"macs", 60, 80}})); });
    CHECK(both.find("with the other bounds kept") != std::string::npos);
}

TEST_CASE("an empty window of a maximum names the nearest costs, too") {
    const SpacePtr space = small_space();
    std::set<std::int64_t> costs;
    for (const Genome& genome : all_genomes(*space))
        costs.insert(space->cost(space->cost_index("activations"), genome.data()));
    std::size_t empty = 0;
    for (auto at = costs.begin(); std::next(at) != costs.end(); ++at) {
        const std::int64_t low = *at + 1;
        const std::int64_t high = *std::next(at) - 1;
        if (low > high) continue;
        ++empty;
        const std::string message =
            error_of([&] { return Feasible(space, Budget({{"activations", low, high}})); });
        CHECK(message.find("nearest have " + std::to_string(low - 1) +
                           " bytes of activations below and " + std::to_string(high + 1)) !=
              std::string::npos);
    }
    CHECK(empty > 0);
}

TEST_CASE("of several bounds that cannot be met even alone each names its own nearest costs") {
    const SpacePtr space = builtin("autoformer-small");
    const std::string message = error_of([&] {
        return Feasible(space, Budget::parse(std::string("20M..20.01M-params,4.5G..4.501G-macs")));
    });
    CHECK(message.find("of 20M..20.01M-params alone the nearest have 19,991,496 params below and "
                       "20,011,944 params above") != std::string::npos);
    CHECK(
        message.find(
            "macs alone the nearest have 4,499,919,872 macs below and 4,501,432,832 macs above") !=
        std::string::npos);
}

TEST_CASE("layers that no feasible architecture has need no weights") {
    const auto space = std::make_shared<const SearchSpace>(SearchSpace::parse(
        R"({"format": "hytas-space", "version": 1, "name": "deep", "genes": [{"name": "depth",
            "values": [1, 64]},
            {"name": "a", "values": [1, 2, 3, 4], "per": "depth"}, {"name": "b",
            "values": [1, 2, 3, 4, 5, 6], "per": "depth"}],
            "costs": {"params": {"layers": {"depth": "100 * a * b"}}}})",
        {}));
    const auto feasible = std::make_shared<const Feasible>(space, Budget({{"params", 0, 2500}}));
    CHECK(feasible->count() == 24);
    CHECK(feasible->can_weigh());
    Genome genome(space->genome_length());
    Rng rng(0);
    feasible->sample(rng, Uniform::choices, genome);
    CHECK(feasible->contains(genome));
}

TEST_CASE("where some bounds fit exactly the coarse table keeps them") {
    const SpacePtr space = builtin("hytas");
    const Budget budget = Budget::parse(std::string("0.9M..1M-params,150M..160M-macs"));
    const Feasible exact(space, budget);
    REQUIRE(exact.exact());
    const Feasible alone(space, Budget::parse(std::string("0.9M..1M-params")));
    const Feasible coarse(space, budget, exact.table().entries() - 1);
    REQUIRE_FALSE(coarse.exact());
    CHECK(coarse.at_most() >= exact.count());
    CHECK(coarse.at_most() <= alone.count());
}

TEST_CASE("rank and unrank refuse what is outside") {
    const SpacePtr space = small_space();
    const Feasible feasible(space, Budget({{"params", 0, 100}}));
    Genome genome(space->genome_length());
    CHECK(error_of([&] {
              return feasible.unrank(feasible.count(), genome);
          }).find("must be below the count") != std::string::npos);
    for (const Genome& other : all_genomes(*space))
        if (!feasible.contains(other)) {
            CHECK(error_of([&] { return feasible.rank(other); }).find("is not inside the budget") !=
                  std::string::npos);
            break;
        }
}

TEST_CASE("where the exact table is too large, draws from a coarser one stay exact") {
    const SpacePtr space = small_space();
    const Budget budget({{"params", 60, 200}, {"macs", 20, 60}, {"activations", 20, 60}});
    const Feasible exact(space, budget);
    REQUIRE(exact.exact());
    std::size_t coarse_tables = 0;
    for (const std::size_t percent : {95U, 90U, 80U}) {
        const std::size_t most = exact.table().entries() * percent / 100;
        const Feasible coarse(space, budget, most);
        if (coarse.exact()) continue;
        ++coarse_tables;
        CHECK(coarse.at_most() >= exact.count());
        CHECK(error_of([&] { return coarse.count(); }).find("the exact table of small with") !=
              std::string::npos);
        CHECK(error_of([&] {
                  return coarse.rank(all_inside(*space, budget)[0]);
              }).find("at most") != std::string::npos);
        // Every feasible architecture is in the table's set, once.
        std::set<Genome> inside;
        Genome genome(space->genome_length());
        for (Wide i = 0; i < coarse.at_most(); ++i) {
            coarse.walk(i, genome);
            if (coarse.fits(genome.data())) CHECK(inside.insert(genome).second);
        }
        CHECK(inside.size() == exact.count());
        const auto count = static_cast<std::size_t>(exact.count());
        std::vector<double> seen(count, 0.0);
        Rng rng(most);
        for (std::size_t i = 0; i < 50 * count; ++i) {
            coarse.sample(rng, Uniform::architectures, genome);
            seen[static_cast<std::size_t>(exact.rank(genome))] += 1;
        }
        double chi = 0;
        for (const double here : seen) chi += (here - 50.0) * (here - 50.0) / 50.0;
        CHECK(chi < chi_square_limit(static_cast<double>(count - 1)));
    }
    CHECK(coarse_tables >= 2);
    CHECK(error_of([&] {
              return Feasible(space, budget, 10);
          }).find("is too small for any table") != std::string::npos);
}

TEST_CASE("three bounds of hytas with unrelated layer costs fall back and still sample") {
    std::string table =
        R"({"format": "hytas-latency", "version": 1, "space": "hytas", "unit": "us",
            "layers": {"depth": [)";
    Rng rng(12);
    for (const char* width :
         {"32", "48", "64", "80", "96", "112", "128", "144", "160", "176", "192", "240"})
        for (int heads = 3; heads <= 6; ++heads)
            for (int ratio = 1; ratio <= 6; ++ratio)
                table += std::string(table.back() == '[' ? "" : ", ") +
                         R"({"when": {"embed_dim": )" + width + R"(, "num_heads": )" +
                         std::to_string(heads) + R"(, "mlp_ratio": )" + std::to_string(ratio) +
                         R"(}, "cost": )" + std::to_string(20 + rng.below(100)) + "." +
                         std::to_string(100 + rng.below(900)) + "}";
    const auto space =
        std::make_shared<const SearchSpace>(builtin("hytas")->with_table("t", table + "]}}"));
    const Feasible feasible(
        space, Budget::parse(std::string("0.5M..1M-params,200M-macs,0.2ms..0.4ms-latency@t")),
        std::size_t{1} << 20);
    CHECK_FALSE(feasible.exact());
    Genome genome(space->genome_length());
    for (int i = 0; i < 1000; ++i) {
        feasible.sample(rng, Uniform::architectures, genome);
        REQUIRE(feasible.contains(genome));
    }
}
