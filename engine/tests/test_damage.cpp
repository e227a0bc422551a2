// A bounded, deterministic fuzz of everything that reads text or bytes: thousands of damaged
// inputs, none of which may do anything but be read or be refused with an Error. Run under ASan and
// UBSan by the preset `asan`; engine/fuzz holds the same entry points for libFuzzer.
#include "fuzz_targets.hpp"
#include "hytas/evolution.hpp"
#include "support.hpp"
#include "text.hpp"

using namespace hytas;
using namespace hytas::test;

namespace {

// One to eight edits: a bit, a byte, a cut, a repeated piece, a piece of another input.
std::string damaged(std::string text, const std::string& other, Rng& rng) {
    for (std::uint64_t edits = 1 + rng.below(8); edits > 0 && !text.empty(); --edits) {
        const std::size_t at = rng.below(text.size());
        const std::size_t length = 1 + rng.below(16);
        switch (rng.below(6)) {
            case 0: text[at] = static_cast<char>(text[at] ^ (1 << rng.below(8))); break;
            case 1: text[at] = static_cast<char>(rng.below(256)); break;
            case 2: text.erase(at, length); break;
            case 3: text.insert(at, text.substr(at, length)); break;
            case 4: text.insert(at, other.substr(rng.below(other.size()), length)); break;
            default: text.resize(at); break;
        }
    }
    return text;
}

std::string small_state() {
    EvolutionSettings settings;
    settings.population = 6;
    settings.strategy = "nsga2";
    Evolution run(fuzz_feasible(), settings);
    std::vector<Gene8> genomes;
    for (int i = 0; i < 2; ++i) {
        const std::size_t first = run.ask(0, genomes);
        for (std::size_t id = first; id < run.asked(); ++id) {
            const double scores[] = {static_cast<double>(id % 3), static_cast<double>(id % 5)};
            run.tell({id}, scores, 2);
        }
    }
    run.ask(3, genomes);
    return run.state();
}

// A state with the number at `at` replaced, and the checksum that belongs to it.
std::string forged(std::string state, std::size_t at, std::uint64_t number) {
    for (std::size_t i = 0; i < 8; ++i)
        state[at + i] = static_cast<char>((number >> (8 * i)) & 0xff);
    return with_checksum(state);
}

}  // namespace

TEST_CASE("damaged budgets are read or refused") {
    Rng rng(1);
    const std::string whole = "1.5M..2M-params,500M-macs,4MB-int8,3ms-latency@table.json";
    for (int i = 0; i < 20000; ++i) fuzz_budget(damaged(whole, whole, rng));
    CHECK(fuzz_budget(whole));
}

TEST_CASE("damaged spaces are read or refused") {
    Rng rng(2);
    const std::string whole(fuzz_space_text());
    int read = 0;
    for (int i = 0; i < 4000; ++i) read += fuzz_space(damaged(whole, whole, rng)) ? 1 : 0;
    CHECK(read > 5);
    CHECK(fuzz_space(whole));
}

TEST_CASE("damaged states are refused, with a wrong and with a right checksum") {
    Rng rng(3);
    const std::string whole = small_state();
    CHECK(fuzz_state(whole));
    for (int i = 0; i < 4000; ++i) CHECK_FALSE((fuzz_state(damaged(whole, whole, rng) + "x")));
    int read = 0;
    for (int i = 0; i < 4000; ++i)
        read += fuzz_state(with_checksum(damaged(whole, whole, rng))) ? 1 : 0;
    CHECK(read < 4000);
}

TEST_CASE("every truncated, edited, newer or foreign state is refused with its reason") {
    const std::string whole = small_state();
    const auto refused = [](const std::string& state) {
        return error_of([&] { return Evolution::restore(fuzz_feasible(), state); });
    };
    for (std::size_t size = 0; size < whole.size(); ++size)
        CHECK(refused(whole.substr(0, size)).find("state: is ") == 0);
    for (std::size_t at = 0; at < whole.size(); ++at) {
        std::string edited = whole;
        edited[at] = static_cast<char>(edited[at] ^ 4);
        CHECK(refused(edited).find("state: ") == 0);
    }
    CHECK(refused(whole.substr(0, whole.size() - 9)).find("is truncated: it holds") !=
          std::string::npos);
    CHECK(refused(whole + "0").find("bytes follow its end") != std::string::npos);
    std::string newer = whole;
    newer[12] = 4;
    CHECK(refused(newer).find(
              "was written by a newer hytas (state version 4); this one reads version 3") !=
          std::string::npos);
    std::string older = whole;
    older[12] = 2;
    CHECK(refused(older).find("was written by an older hytas (state version 2)") !=
          std::string::npos);
    const auto other = std::make_shared<const Feasible>(builtin("hytas"), Budget());
    CHECK(error_of([&] { return Evolution::restore(other, whole); })
              .find("belongs to another space, other variables or another budget than hytas with "
                    "no budget") != std::string::npos);
}

TEST_CASE("a state of few bytes does not ask for the work or the memory of many") {
    const auto feasible = std::make_shared<const Feasible>(builtin("hytas"), Budget());
    EvolutionSettings settings;
    settings.strategy = "ageing";
    settings.population = 10;
    Evolution run(feasible, settings);
    const std::string fresh = run.state();
    std::vector<Gene8> genomes;
    const std::size_t first = run.ask(0, genomes);
    for (std::size_t id = first; id < run.asked(); ++id) {
        const double score[] = {static_cast<double>(id)};
        run.tell({id}, score, 1);
    }
    run.ask(0, genomes);
    const std::string whole = run.state();
    const auto refused = [&](const std::string& state) {
        return error_of([&] { return Evolution::restore(feasible, state); });
    };
    CHECK(refused(whole).empty());
    // Magic, version, length, fingerprint and the strategy's name come before the sizes.
    const std::size_t sizes = 12 + 8 + 8 + 8 + 8 + settings.strategy.size();
    const std::size_t retries =
        sizes + 3 * 8 + 8 + (8 + settings.mutation.size()) + 8 + (8 + settings.uniform.size());
    const std::uint64_t many = std::uint64_t{1} << 24;
    for (const std::string& state : {fresh, whole}) {
        CHECK(forged(state, sizes, 10) == state);
        CHECK(forged(state, retries, settings.retries) == state);
        for (const std::size_t at : {sizes, sizes + 8, sizes + 16, retries})
            CHECK(refused(forged(state, at, many))
                      .find("state: is damaged: its settings ask for more than it holds") == 0);
    }
    CHECK(refused(forged(fresh, fresh.size() - 8 - 8 * 5 - 8, std::uint64_t{1} << 32))
              .find("its generation does not make sense") != std::string::npos);
    // The end of the search: all that is left of billions would be listed.
    for (const std::uint64_t known : {1, 11, 12})
        CHECK(refused(forged(whole, whole.size() - 24, known)).find("its end of the search") !=
              std::string::npos);
}
