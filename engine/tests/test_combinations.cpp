#include <algorithm>
#include <set>

#include "hytas/detail/repair.hpp"
#include "support.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

struct GlobalGene {
    std::string name;
    std::string values;
};

std::string space_text(const std::vector<GlobalGene>& genes, const std::vector<std::string>& rules,
                       const std::string& cost) {
    std::string text =
        R"({"format": "hytas-space", "version": 1, "name": "sparse", "genes": [{"name": "depth",
            "values": [1, 2]}, )";
    for (const GlobalGene& gene : genes)
        text += R"({"name": ")" + gene.name + R"(", "values": [)" + gene.values + "]}, ";
    text += R"({"name": "own", "values": [1, 2, 4], "per": "depth"}], "require": [)";
    for (std::size_t i = 0; i < rules.size(); ++i)
        text += (i == 0 ? "\"" : ", \"") + rules[i] + "\"";
    return text + R"(], "costs": {"params": {"global": ")" + cost +
           R"(", "layers": {"depth": "3 * own"}}}})";
}

SpacePtr open(const std::string& text) {
    return std::make_shared<const SearchSpace>(SearchSpace::parse(text, {}));
}

std::string refusal(const std::string& text) {
    return error_of([&] { return SearchSpace::parse(text, {}); });
}

// Every valid genome whose genes of layers are all 0, by counting up through the global genes.
std::vector<Genome> allowed_by_hand(const SearchSpace& space) {
    std::vector<Genome> all;
    Genome genome(space.genome_length(), 0);
    for (;;) {
        if (space.valid(genome)) all.push_back(genome);
        std::size_t at = space.global_slots();
        while (at > 0 && ++genome[at - 1] == space.radix_of_slot(at - 1)) genome[--at] = 0;
        if (at == 0) return all;
    }
}

std::size_t distance(const SearchSpace& space, const Genome& left, const Genome& right) {
    std::size_t changes = 0;
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot)
        changes += left[slot] == right[slot] ? 0 : 1;
    return changes;
}

// Three genes of three values, and 24 that must equal one of them, of which three are free where
// the first gene is 3: 2 * 3^27 combinations, of which 2 * (18 + 9 * 27) are allowed.
SpacePtr followers() {
    std::vector<GlobalGene> genes = {{"a0", "1, 2, 3"}, {"a1", "1, 2, 3"}, {"a2", "1, 2, 3"}};
    std::vector<std::string> rules;
    for (int i = 0; i < 24; ++i) {
        const std::string name = "f" + std::to_string(i);
        genes.push_back({name, "1, 2, 3"});
        rules.push_back(name + " == a" + std::to_string(i % 3) + (i % 8 == 5 ? " or a0 == 3" : ""));
    }
    return open(space_text(genes, rules, "10 * a0 + a1 * f5 + a2 * f13 + 2 * f21"));
}

// Every architecture of `followers`, from its description and not from its requirements.
std::vector<Genome> all_followers(const SearchSpace& space) {
    std::vector<Genome> all;
    Genome genome(space.genome_length(), 0);
    for (std::size_t code = 0; code < 2 * 729; ++code) {
        std::size_t rest = code;
        const auto digit = [&rest](std::size_t radix) {
            const auto value = static_cast<Gene8>(rest % radix);
            rest /= radix;
            return value;
        };
        genome[0] = digit(2);
        for (std::size_t i = 1; i <= 3; ++i) genome[i] = digit(3);
        for (std::size_t i = 0; i < 24; ++i) genome[4 + i] = genome[1 + i % 3];
        bool once = true;
        for (const std::size_t i : {5U, 13U, 21U}) {
            const Gene8 value = digit(3);
            if (genome[1] == 2)
                genome[4 + i] = value;
            else
                once = once && value == 0;
        }
        if (!once) continue;
        for (Gene8 first = 0; first < 3; ++first)
            for (Gene8 second = 0; second < (genome[0] == 0 ? 1 : 3); ++second) {
                genome[28] = first;
                genome[29] = second;
                all.push_back(genome);
            }
    }
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

TEST_CASE("allowed combinations equal brute force, whatever the requirements") {
    Rng rng(21);
    std::size_t nothing = 0;
    for (int trial = 0; trial < 200; ++trial) {
        std::vector<GlobalGene> genes;
        const std::size_t count = 2 + rng.below(4);
        for (std::size_t i = 0; i < count; ++i) {
            const std::string lists[] = {"1", "0, 1", "1, 2, 3", "2, 0, 1, 5"};
            genes.push_back({"g" + std::to_string(i), lists[rng.below(4)]});
        }
        const auto gene = [&] { return genes[rng.below(count)].name; };
        std::vector<std::string> rules;
        for (std::size_t i = rng.below(5); i > 0; --i) {
            const std::string forms[] = {gene() + " + " + gene() + " <= 4",
                                         gene() + " != " + gene() + " or " + gene() + " == 1",
                                         gene() + " != 1", gene() + " * depth != 2",
                                         "depth == 1 or " + gene() + " > " + gene()};
            rules.push_back(forms[rng.below(5)]);
        }
        const std::string text = space_text(genes, rules, "g0");
        const std::string why = refusal(text);
        if (!why.empty()) {
            CHECK(why.find("\"require\" excludes everything") != std::string::npos);
            ++nothing;
            continue;
        }
        const SpacePtr space = open(text);
        const Combinations& combinations = space->combinations();
        const std::vector<Genome> expected = allowed_by_hand(*space);
        INFO(text);
        REQUIRE(combinations.size() == expected.size());
        for (std::size_t i = 0; i < expected.size(); ++i) {
            REQUIRE(combinations.of(expected[i].data()) == i);
            REQUIRE(
                std::equal(expected[i].begin(),
                           expected[i].begin() + static_cast<std::ptrdiff_t>(combinations.slots()),
                           combinations.genes(i)));
        }
        Genome other(space->genome_length(), 0);
        for (int probe = 0; probe < 20; ++probe) {
            for (std::size_t slot = 0; slot < combinations.slots(); ++slot)
                other[slot] = static_cast<Gene8>(rng.below(space->radix_of_slot(slot)));
            CHECK((combinations.of(other.data()) == Combinations::none) == !space->valid(other));
            for (std::size_t changes = 0; changes <= combinations.slots(); ++changes) {
                std::vector<std::size_t> near;
                for (std::size_t i = 0; i < expected.size(); ++i)
                    if (distance(*space, expected[i], other) == changes) near.push_back(i);
                std::vector<std::size_t> found;
                std::size_t steps = 100000;
                CHECK(combinations.at_distance(other.data(), changes, steps, found));
                CHECK(found == near);
            }
        }
    }
    CHECK(nothing > 0);
    CHECK(nothing < 100);
}

TEST_CASE(
    "a space of 1e13 combinations of which few are allowed is counted, numbered and drawn from "
    "exactly") {
    const SpacePtr space = followers();
    CHECK(space->combinations().size() == 522);
    const std::vector<Genome> all = all_followers(*space);
    CHECK(space->size() == all.size());
    const Budget budget({{"params", 30, 48}});
    std::set<Genome> inside;
    for (const Genome& genome : all) {
        REQUIRE(space->valid(genome));
        const std::int64_t cost = space->cost(0, genome.data());
        std::int64_t by_hand = 10 * (genome[1] + 1) + (genome[2] + 1) * (genome[9] + 1) +
                               (genome[3] + 1) * (genome[17] + 1) + 2 * (genome[25] + 1);
        for (std::size_t layer = 0; layer < (genome[0] == 0 ? 1U : 2U); ++layer)
            by_hand += 3 << genome[28 + layer];
        REQUIRE(cost == by_hand);
        if (cost >= 30 && cost <= 48) inside.insert(genome);
    }
    const Feasible feasible(space, budget);
    REQUIRE(feasible.count() == inside.size());
    Genome genome(space->genome_length());
    for (Wide i = 0; i < feasible.count(); ++i) {
        feasible.unrank(i, genome);
        CHECK(inside.contains(genome));
        CHECK(feasible.rank(genome) == i);
    }
    std::vector<double> seen(inside.size(), 0.0);
    Rng rng(3);
    for (std::size_t i = 0; i < 100 * seen.size(); ++i) {
        feasible.sample(rng, Uniform::architectures, genome);
        seen[static_cast<std::size_t>(feasible.rank(genome))] += 1;
    }
    double chi = 0;
    for (const double here : seen) chi += (here - 100.0) * (here - 100.0) / 100.0;
    CHECK(chi < chi_square_limit(static_cast<double>(seen.size() - 1)));
}

TEST_CASE("repair finds the nearest allowed combinations, near and far") {
    const SpacePtr space = followers();
    const Feasible feasible(space, Budget({{"params", 30, 48}}));
    std::set<std::vector<Gene8>> known;
    Genome genome(space->genome_length());
    for (Wide i = 0; i < feasible.count(); ++i) {
        feasible.unrank(i, genome);
        known.insert({genome.begin(), genome.begin() + 28});
    }
    Repair repair(feasible);
    Rng rng(9);
    for (int trial = 0; trial < 400; ++trial) {
        Genome child(space->genome_length());
        feasible.sample(rng, Uniform::architectures, child);
        const std::size_t far = trial % 20 == 0 ? 28 : 1 + rng.below(3);
        for (std::size_t i = 0; i < far; ++i)
            child[1 + rng.below(27)] = static_cast<Gene8>(rng.below(3));
        const Genome before = child;
        std::size_t fewest = 28;
        for (const auto& globals : known) {
            std::size_t changes = 0;
            for (std::size_t slot = 0; slot < 28; ++slot)
                changes += globals[slot] == before[slot] ? 0 : 1;
            fewest = std::min(fewest, changes);
        }
        repair(rng, child.data());
        REQUIRE(feasible.contains(child));
        CHECK(distance(*space, child, before) == fewest);
    }
}

TEST_CASE("too many combinations are refused early, with the rule") {
    const auto binary = [](const std::string& prefix, std::size_t count) {
        std::vector<GlobalGene> genes;
        for (std::size_t i = 0; i < count; ++i)
            genes.push_back({prefix + std::to_string(i), "0, 1"});
        return genes;
    };
    CHECK(refusal(space_text(binary("g", 19), {}, "0")) == "");
    CHECK(refusal(space_text(binary("g", 20), {}, "0")) ==
          "space file 'sparse': allows 2,097,152 combinations of global genes; at most 1,048,576 "
          "may be: let some genes belong to layers (\"per\"), or exclude "
          "more "
          "(\"require\")");
    CHECK(refusal(space_text(binary("g", 61), {}, "0"))
              .find("allows 4,611,686,018,427,387,904 combinations of global genes; at most") !=
          std::string::npos);
    CHECK(refusal(space_text(binary("g", 62), {}, "0"))
              .find("has more than 2^62 combinations of global genes, allowed or not") !=
          std::string::npos);
    // Pairs that must be equal: quick where they are neighbours, refused where all of one half come
    // before the other.
    std::vector<GlobalGene> apart = binary("a", 30);
    std::vector<GlobalGene> neighbours;
    std::vector<std::string> rules;
    for (std::size_t i = 0; i < 30; ++i) {
        const std::string number = std::to_string(i);
        apart.push_back({"b" + number, "0, 1"});
        neighbours.push_back({"a" + number, "0, 1"});
        neighbours.push_back({"b" + number, "0, 1"});
        rules.push_back("a" + number + " == b" + number);
    }
    CHECK(refusal(space_text(neighbours, rules, "0")).find("allows 2,147,483,648 combinations") !=
          std::string::npos);
    CHECK(refusal(space_text(apart, rules, "0"))
              .find("\"require\" takes more than 4,194,304 steps") != std::string::npos);
    for (std::size_t i = 0; i < 12; ++i) rules.push_back("a" + std::to_string(i) + " == 1");
    const SpacePtr space = open(space_text(neighbours, rules, "a0 + b29"));
    CHECK(space->combinations().size() == std::size_t{1} << 19);
    std::string sum = "g0";
    for (std::size_t i = 1; i < 21; ++i) sum += " + g" + std::to_string(i);
    CHECK(refusal(space_text(binary("g", 21), {sum + " == 21"}, "0"))
              .find("reads genes of more than 1,048,576 combinations; write it as several "
                    "requirements") != std::string::npos);
}

TEST_CASE("a cost counts only where its combination is allowed") {
    const std::vector<GlobalGene> genes = {{"a", "1, 2, 3"}, {"b", "1, 2, 3"}};
    CHECK(refusal(space_text(genes, {}, "a - b")).find("is -1 for some architecture") !=
          std::string::npos);
    CHECK(refusal(space_text(genes, {}, "6 / (a - b)")).find("division by zero") !=
          std::string::npos);
    CHECK(refusal(space_text(genes, {"a >= b"}, "a - b")) == "");
    CHECK(refusal(space_text(genes, {"a > b"}, "6 / (a - b)")) == "");
    // Addends may be fractions where their sum is whole.
    CHECK(refusal(space_text(genes, {"a == b"}, "a / 2 + b / 2")) == "");
    CHECK(refusal(space_text(genes, {"a != b"}, "a / 2 + b / 2"))
              .find("is 1.5 for some architecture") != std::string::npos);
}

TEST_CASE("hytas-wide: 8e8 combinations, a thousandth of them allowed") {
    const SpacePtr space = builtin("hytas-wide");
    double all = 1;
    for (std::size_t slot = 0; slot < space->global_slots(); ++slot)
        all *= static_cast<double>(space->radix_of_slot(slot));
    CHECK(all > 3e8);
    // Counted by nested loops over what the genes mean.
    CHECK(space->combinations().size() == 506304);
    const Feasible feasible(space, Budget::parse(std::string("20K..30K-params")));
    Genome genome(space->genome_length());
    Rng rng(2);
    for (int i = 0; i < 300; ++i) {
        feasible.sample(rng, Uniform::architectures, genome);
        REQUIRE(feasible.contains(genome));
        const Wide rank = feasible.rank(genome);
        Genome again(space->genome_length());
        feasible.unrank(rank, again);
        CHECK(again == genome);
    }
}
