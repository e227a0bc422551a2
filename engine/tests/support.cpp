#include "support.hpp"

#include <cmath>

namespace hytas::test {

namespace {

constexpr const char* small_text = R"JSON({
  "format": "hytas-space", "version": 1, "name": "small",
  "variables": {"scale": {"default": 3, "minimum": 1, "maximum": 9}},
  "genes": [
    {"name": "depth", "key": "d", "values": [0, 1, 3]},
    {"name": "tail", "key": "t", "values": [1, 2]},
    {"name": "kind", "key": "k", "values": ["plain", "wide"]},
    {"name": "pair", "key": "p", "values": [[1, 2], [3, 4]]},
    {"name": "head", "key": "h", "values": [3, 5], "per": "depth"},
    {"name": "ratio", "key": "r", "values": [1, 1.5, 2], "per": "depth"},
    {"name": "end", "key": "e", "values": [7, 2], "per": "tail"}
  ],
  "definitions": {"width": "8 if kind == 'plain' else 12", "q": "head * (width // head)"},
  "require": ["not (kind == 'wide' and depth == 0)"],
  "costs": {
    "params": {"global": "width * scale + pair[0] * pair[1]",
               "layers": {"depth": "q * width + floor(ratio * width)", "tail": "end * width"}},
    "macs": {"global": "5 * pair[1]", "layers": {"depth": "head * ratio * 2 + layer",
    "tail": "end"}},
    "activations": {"combine": "max", "global": "width", "layers": {"depth": "head * width",
    "tail": "end * end"}}
  }
})JSON";

}  // namespace

SpacePtr small_space() {
    return std::make_shared<const SearchSpace>(SearchSpace::parse(small_text, {}));
}

SpacePtr builtin(const std::string& name) {
    return std::make_shared<const SearchSpace>(SearchSpace::builtin(name, {}));
}

SpacePtr random_space(Rng& rng) {
    const auto number = [&rng](std::uint64_t low, std::uint64_t high) {
        return std::to_string(low + rng.below(high - low + 1));
    };
    const auto values = [&](std::size_t count, std::uint64_t step) {
        std::string list;
        std::uint64_t value = 1;
        for (std::size_t i = 0; i < count; ++i) {
            value += 1 + rng.below(step);
            list += (i == 0 ? "" : ", ") + std::to_string(value);
        }
        return "[" + list + "]";
    };
    // Half of the spaces have layer costs that do not add up gene by gene.
    const std::string product =
        rng.below(2) == 0 ? "a * b" : "a * " + number(1, 5) + " + b * " + number(1, 3);
    const std::string text = R"({"format": "hytas-space", "version": 1, "name": "random", "genes": [
        {"name": "depth", "values": [)" +
                             number(0, 1) + ", " + number(2, 3) + R"(]},
        {"name": "width", "values": )" +
                             values(1 + rng.below(3), 4) + R"(},
        {"name": "a", "values": )" +
                             values(1 + rng.below(3), 3) + R"(, "per": "depth"},
        {"name": "b", "values": )" +
                             values(1 + rng.below(3), 5) + R"(, "per": "depth"}],
      "costs": {
        "params": {"global": "width * )" +
                             number(1, 9) + R"(", "layers": {"depth": "width * ()" + product +
                             R"() + )" + number(0, 3) + R"("}},
        "macs": {"global": ")" +
                             number(0, 9) +
                             R"(", "layers": {"depth": "a * width + b * (1 + layer))" + R"("}},
        "activations": {"combine": "max", "global": "width", "layers": {"depth": "a * b"}}}})";
    return std::make_shared<const SearchSpace>(SearchSpace::parse(text, {}));
}

std::vector<Genome> all_genomes(const SearchSpace& space) {
    std::vector<Genome> all;
    Genome genome(space.genome_length(), 0);
    std::vector<std::size_t> radix;
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot)
        radix.push_back(space.values_of_slot(slot).size());
    for (const LayerGroup& group : space.groups())
        for (std::size_t i = 0; i < group.most_layers * group.radix.size(); ++i)
            radix.push_back(group.radix[i % group.radix.size()]);
    for (;;) {
        if (space.valid(genome)) all.push_back(genome);
        std::size_t at = genome.size();
        while (at > 0 && ++genome[at - 1] == radix[at - 1]) genome[--at] = 0;
        if (at == 0) return all;
    }
}

std::vector<Genome> all_inside(const SearchSpace& space, const Budget& budget) {
    std::vector<Genome> inside;
    for (const Genome& genome : all_genomes(space)) {
        bool fits = true;
        for (const Bound& bound : budget.bounds()) {
            const std::int64_t cost = space.cost(space.cost_index(bound.cost), genome.data());
            fits = fits && cost >= bound.lower && cost <= bound.upper;
        }
        if (fits) inside.push_back(genome);
    }
    return inside;
}

std::string error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const Error& error) {
        return error.what();
    }
    return "";
}

double chi_square_limit(double degrees) {
    const double normal = 4.753424;  // 1e-6 of the normal distribution lies above
    const double third = 1.0 - 2.0 / (9.0 * degrees) + normal * std::sqrt(2.0 / (9.0 * degrees));
    return degrees * third * third * third;
}

}  // namespace hytas::test
