// Prints how many architectures of autoformer-tiny have 5.40 to 5.41 million parameters.
#include <hytas/evolution.hpp>
#include <iostream>

int main() {
    const auto space = std::make_shared<const hytas::SearchSpace>(
        hytas::SearchSpace::builtin("autoformer-tiny", {}));
    const auto budget = hytas::Budget::parse(std::string("5.40M..5.41M-params"));
    const auto feasible = std::make_shared<const hytas::Feasible>(space, budget);
    hytas::Evolution search(feasible, {.seed = 1});
    std::vector<hytas::Gene8> genomes;
    search.ask(0, genomes);
    std::cout << hytas::to_text(feasible->count()) << " fit, " << search.asked() << " asked for\n";
}
