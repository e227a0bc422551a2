#include "hytas/operators.hpp"

#include <algorithm>
#include <cmath>

#include "hytas/error.hpp"
#include "hytas/text.hpp"

namespace hytas {

namespace {

struct Preset {
    const char* name;
    double depth;
    double global;
    double layer;
};

constexpr std::array<Preset, 3> presets = {{{"hytas", 0.2, 0.2, 0.2}, {"autoformer", 0.4, 0.4, 0.2}, {"s3", 0.2, 0.2, 0.4}}};

// 32 random bits at a time: two decisions from one step of the generator.
class Coins {
  public:
    explicit Coins(Rng& rng) : rng_(rng) {}

    // Uniform in [0, bound), bound < 2^31, without bias (Lemire, as Rng::below, on 32 bits).
    std::size_t below(std::size_t bound) {
        std::uint64_t product = draw() * bound;
        if (bound == 1) return 0;
        if ((product & 0xffffffffU) < bound) {
            const std::uint64_t threshold = (std::uint64_t{1} << 32) % bound;
            while ((product & 0xffffffffU) < threshold) product = draw() * bound;
        }
        return static_cast<std::size_t>(product >> 32);
    }

    std::uint64_t draw() {
        if (left_ == 0) {
            word_ = rng_.next();
            left_ = 2;
        }
        const std::uint64_t bits = word_ & 0xffffffffU;
        word_ >>= 32;
        --left_;
        return bits;
    }

  private:
    Rng& rng_;
    std::uint64_t word_ = 0;
    int left_ = 0;
};

// Layers that the parent does not have are drawn; layers beyond the child's depth become padding.
void fit_layers(const LayerGroup& group, std::size_t had, Coins& coins, Gene8* child) {
    const std::size_t depth = group.depth(child);
    const std::size_t genes = group.radix.size();
    Gene8* at = child + group.offset;
    if (genes == 2) {  // the usual case, without an inner loop
        for (std::size_t layer = had; layer < depth; ++layer) std::copy_n(group.decoded.data() + coins.below(group.options) * 2, 2, at + layer * 2);
    } else {
        for (std::size_t layer = had; layer < depth; ++layer) std::copy_n(group.decoded.data() + coins.below(group.options) * genes, genes, at + layer * genes);
    }
    for (std::size_t i = depth * genes; i < had * genes; ++i) at[i] = 0;
}

}  // namespace

std::vector<std::string> mutation_presets() {
    std::vector<std::string> names;
    for (const Preset& preset : presets) names.emplace_back(preset.name);
    return names;
}

MutationRates MutationRates::preset(const SearchSpace& space, const std::string& name, const std::map<std::string, double>& rates) {
    const auto* const found = std::find_if(presets.begin(), presets.end(), [&](const Preset& preset) { return name == preset.name; });
    if (found == presets.end()) throw Error("mutation " + quoted(name) + ": must be one of " + join(mutation_presets()));
    for (const auto& own : rates) {
        const std::string& gene = own.first;
        const double rate = own.second;
        const auto known = [&gene](const Gene& one) { return one.name == gene; };
        if (std::none_of(space.genes().begin(), space.genes().end(), known)) throw Error("rates: space " + space.name() + " has no gene " + quoted(gene));
        if (!(rate >= 0.0 && rate <= 1.0)) throw Error("rates: " + gene + " " + std::to_string(rate) + ": must be 0 to 1");
    }
    const auto threshold = [&](const Gene& gene, double usual) {
        const auto own = rates.find(gene.name);
        return static_cast<std::uint64_t>(std::llround((own == rates.end() ? usual : own->second) * 4294967296.0));
    };
    MutationRates made;
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot) {
        const auto counts = [slot](const LayerGroup& group) { return group.depth_slot == slot; };
        const bool depth = std::any_of(space.groups().begin(), space.groups().end(), counts);
        made.global_.push_back(threshold(space.gene_of_slot(slot), depth ? found->depth : found->global));
    }
    for (const LayerGroup& group : space.groups()) {
        std::vector<std::uint64_t> genes;
        for (const std::size_t gene : group.genes) genes.push_back(threshold(space.genes()[gene], found->layer));
        made.layers_.push_back(std::move(genes));
    }
    return made;
}

void mutate(const SearchSpace& space, const MutationRates& rates, const Gene8* parent, Rng& rng, Gene8* child) {
    std::copy(parent, parent + space.genome_length(), child);
    Coins coins(rng);
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot)
        if (coins.draw() < rates.global()[slot]) child[slot] = static_cast<Gene8>(coins.below(space.radix_of_slot(slot)));
    for (std::size_t g = 0; g < space.groups().size(); ++g) {
        const LayerGroup& group = space.groups()[g];
        const std::size_t had = group.depth(parent);
        const std::size_t kept = std::min(had, group.depth(child));
        Gene8* at = child + group.offset;
        for (std::size_t layer = 0; layer < kept; ++layer)
            for (std::size_t i = 0; i < group.radix.size(); ++i, ++at)
                if (coins.draw() < rates.layers()[g][i]) *at = static_cast<Gene8>(coins.below(group.radix[i]));
        fit_layers(group, had, coins, child);
    }
}

void crossover(const SearchSpace& space, const Gene8* left, const Gene8* right, Rng& rng, Gene8* child) {
    std::fill(child, child + space.genome_length(), Gene8{0});
    std::uint64_t bits = 0;
    int ready = 0;
    const auto flip = [&] {
        if (ready == 0) {
            bits = rng.next();
            ready = 64;
        }
        --ready;
        const bool side = (bits & 1) != 0;
        bits >>= 1;
        return side;
    };
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot) child[slot] = flip() ? left[slot] : right[slot];
    for (const LayerGroup& group : space.groups()) {
        const std::size_t genes = group.radix.size();
        const std::size_t depth = group.depth(child);
        const std::size_t both = std::min({depth, group.depth(left), group.depth(right)});
        const Gene8* deeper = group.depth(left) > group.depth(right) ? left : right;
        std::size_t at = group.offset;
        for (; at < group.offset + both * genes; ++at) child[at] = flip() ? left[at] : right[at];
        for (; at < group.offset + depth * genes; ++at) child[at] = deeper[at];
    }
}

void random_genome(const SearchSpace& space, Rng& rng, Gene8* genome) {
    Coins coins(rng);
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot) genome[slot] = static_cast<Gene8>(coins.below(space.radix_of_slot(slot)));
    for (const LayerGroup& group : space.groups()) {
        fit_layers(group, 0, coins, genome);
        const std::size_t used = group.depth(genome) * group.radix.size();
        std::fill(genome + group.offset + used, genome + group.offset + group.most_layers * group.radix.size(), Gene8{0});
    }
}

void step(const SearchSpace& space, const Gene8* parent, Rng& rng, Gene8* child) {
    std::copy(parent, parent + space.genome_length(), child);
    std::vector<std::pair<std::size_t, std::size_t>> places;  // byte, radix; genes with one value cannot step
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot) places.emplace_back(slot, space.radix_of_slot(slot));
    for (const LayerGroup& group : space.groups())
        for (std::size_t i = 0; i < group.depth(parent) * group.radix.size(); ++i) places.emplace_back(group.offset + i, group.radix[i % group.radix.size()]);
    std::erase_if(places, [](const auto& place) { return place.second < 2; });
    if (places.empty()) return;
    const auto [byte, radix] = places[rng.below(places.size())];
    const auto value = static_cast<Gene8>(rng.below(radix - 1));
    child[byte] = static_cast<Gene8>(value < parent[byte] ? value : value + 1);
    Coins coins(rng);
    for (const LayerGroup& group : space.groups()) fit_layers(group, group.depth(parent), coins, child);
}

}  // namespace hytas
