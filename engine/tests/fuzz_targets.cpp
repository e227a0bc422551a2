#include "fuzz_targets.hpp"

#include "hytas/error.hpp"
#include "hytas/evolution.hpp"
#include "text.hpp"

namespace hytas::test {

std::string fuzz_space_text() {
    return R"JSON({
  "format": "hytas-space", "version": 1, "name": "fuzz",
  "variables": {"n": {"default": 3, "minimum": 1, "maximum": 9}},
  "genes": [{"name": "depth", "key": "d", "values": [1, 2]},
            {"name": "kind", "key": "k", "values": ["a", "b"]},
            {"name": "pair", "key": "p", "values": [[1, 2], [3, 4.5]]},
            {"name": "h", "values": [3, 5], "per": "depth"}],
  "definitions": {"w": "8 if kind == 'a' else 12"},
  "require": ["not (kind == 'b' and depth == 2)"],
  "costs": {"params": {"global": "w * n + floor(pair[1])",
                       "layers": {"depth": "h * (w // h) + layer"}},
            "activations": {"combine": "max", "global": "w",
                            "layers": {"depth": "max(h, 4) * w % 7"}}}})JSON";
}

std::shared_ptr<const Feasible> fuzz_feasible() {
    static const auto feasible = std::make_shared<const Feasible>(
        std::make_shared<const SearchSpace>(SearchSpace::parse(fuzz_space_text(), {})),
        Budget({{"params", 0, 60}}));
    return feasible;
}

bool fuzz_budget(const std::string& text) {
    try {
        const Budget budget = Budget::parse(text);
        return Budget::parse(budget.text()).bounds() == budget.bounds() || budget.bounds().empty();
    } catch (const Error&) {
        return false;
    }
}

bool fuzz_space(const std::string& text) {
    try {
        const auto space = std::make_shared<const SearchSpace>(SearchSpace::parse(text, {}));
        const Feasible feasible(space, Budget({{space->costs()[0].name, 0, 100}}), 100000);
        Rng rng(1);
        Genome genome(space->genome_length());
        feasible.sample(rng, Uniform::architectures, genome);
        return space->pack(space->unpack(genome)) == genome;
    } catch (const Error&) {
        return false;
    }
}

bool fuzz_state(const std::string& bytes) {
    try {
        Evolution run = Evolution::restore(fuzz_feasible(), bytes);
        std::vector<Gene8> genomes;
        run.ask(2, genomes);
        return !run.state().empty();
    } catch (const Error&) {
        return false;
    }
}

std::string with_checksum(std::string bytes) {
    if (bytes.size() < 8) return bytes;
    bytes.resize(bytes.size() - 8);
    const std::uint64_t sum = fingerprint(bytes);
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>((sum >> (8 * i)) & 0xff));
    return bytes;
}

}  // namespace hytas::test
