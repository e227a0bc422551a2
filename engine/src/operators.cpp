#include "hytas/operators.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "hytas/error.hpp"
#include "text.hpp"

namespace hytas {

namespace {

constexpr std::size_t threshold_bits = 32;

struct Preset {
    const char* name;
    double depth;
    double global;
    double layer;
};

constexpr std::array<Preset, 3> presets = {
    {{"hytas", 0.2, 0.2, 0.2}, {"autoformer", 0.4, 0.4, 0.2}, {"s3", 0.2, 0.2, 0.4}}};

// New values for the genes whose bits are set: six from one step of the generator, each exactly
// uniform among the values of its gene (Brackett-Rozinsky and Lemire, "Batched ranged random
// integer generation", 2024).
void redraw(std::uint64_t bits, const std::uint32_t* radix, Rng& rng, Gene8* at) {
    while (bits != 0) {
        std::uint64_t rest = bits;
        std::uint64_t word = rng.next();
        std::uint64_t product = 1;  // six radices of at most 2^8
        for (int i = 0; i < 6 && rest != 0; ++i, rest &= rest - 1) {
            const auto place = static_cast<std::size_t>(std::countr_zero(rest));
            const Wide draw = static_cast<Wide>(word) * radix[place];
            at[place] = static_cast<Gene8>(draw >> 64);
            word = static_cast<std::uint64_t>(draw);
            product *= radix[place];
        }
        if (!Rng::biased(word, product)) bits = rest;
    }
}

// Genes of layers that the genome's depths do not have become padding.
void clear_padding(const SearchSpace& space, const GenomeWords& words, Gene8* genome) {
    const GenomeMasks& masks = space.masks();
    const auto& groups = space.groups();
    if (groups.size() == 1) {
        const std::uint64_t* present = masks.bytes(0, genome[groups[0].depth_slot]);
        for (std::size_t word = 0; word < masks.words; ++word)
            words.store(genome, word,
                        words.load(genome, word) & (masks.global_words[word] | present[word]));
        return;
    }
    for (std::size_t word = 0; word < masks.words; ++word) {
        std::uint64_t present = masks.global_words[word];
        for (std::size_t g = 0; g < groups.size(); ++g)
            present |= masks.bytes(g, genome[groups[g].depth_slot])[word];
        words.store(genome, word, words.load(genome, word) & present);
    }
}

// 0xff for each bit that is set, in the order of bytes in memory.
std::array<std::uint64_t, 256> byte_masks() noexcept {
    std::array<std::uint64_t, 256> masks{};
    for (std::size_t bits = 0; bits < masks.size(); ++bits) {
        std::array<Gene8, 8> bytes{};
        for (std::size_t i = 0; i < 8; ++i) bytes[i] = (bits >> i & 1) != 0 ? 0xff : 0;
        std::memcpy(&masks[bits], bytes.data(), 8);
    }
    return masks;
}

const std::array<std::uint64_t, 256> expanded = byte_masks();

// The first so many bytes.
std::array<std::uint64_t, 9> leading_bytes() noexcept {
    std::array<std::uint64_t, 9> masks{};
    for (std::size_t count = 0; count < masks.size(); ++count)
        masks[count] = expanded[(1U << count) - 1];
    return masks;
}

const std::array<std::uint64_t, 9> leading = leading_bytes();

// Writes the first `count` bytes; fewer than eight in powers of two, as their number is the same
// for every genome.
void store_bytes(Gene8* at, std::uint64_t value, std::size_t count) {
    if (count >= 8) {
        std::memcpy(at, &value, 8);
        return;
    }
    std::array<Gene8, 8> bytes;
    std::memcpy(bytes.data(), &value, 8);
    const Gene8* from = bytes.data();
    for (const std::size_t part : {4U, 2U, 1U}) {
        if ((count & part) == 0) continue;
        std::memcpy(at, from, part);
        at += part;
        from += part;
    }
}

// A block of layers, of which `present` bytes belong to layers that exist and `left` bytes to the
// group. How many are present is random, so nothing branches on it.
void write_block(const LayerGroup& group, std::size_t option, std::ptrdiff_t present,
                 std::size_t left, Gene8* at) {
    const Gene8* from = group.decoded.data() + option * group.stride();
    if (group.stride() > 8) {
        for (std::size_t i = 0; i < group.stride(); ++i)
            at[i] = static_cast<std::ptrdiff_t>(i) < present ? from[i] : Gene8{0};
        return;
    }
    std::uint64_t value = 0;
    std::memcpy(&value, from, 8);
    store_bytes(
        at, value & leading[static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(present, 0, 8))],
        left);
}

// Every gene of every layer that the genome's depth has, zeros beyond: several blocks of layers
// from one step of the generator, each exactly uniform. A block has at most 2^16 options, so a word
// keeps at least 8 bits to its end, and must be drawn again at most once in 2^8.
void draw_layers(const LayerGroup& group, Rng& rng, Gene8* genome) {
    const auto present = static_cast<std::ptrdiff_t>(group.depth(genome) * group.radix.size());
    const std::size_t all = group.most_layers * group.radix.size();
    const std::size_t size = group.block_layers * group.radix.size();
    const std::size_t options =
        group.stride() == 8 ? group.decoded.size() / 8 : group.decoded.size() / group.stride();
    Gene8* const at = genome + group.offset;
    std::size_t done = 0;
    while (done < all) {
        const std::size_t start = done;
        std::uint64_t word = rng.next();
        std::uint64_t product = 1;
        do {
            const Wide draw = static_cast<Wide>(word) * options;
            write_block(group, static_cast<std::size_t>(draw >> 64),
                        present - static_cast<std::ptrdiff_t>(done), all - done, at + done);
            word = static_cast<std::uint64_t>(draw);
            product *= options;
            done += size;
        } while (done < all && product <= std::uint64_t{1} << 40);
        if (Rng::biased(word, product)) done = start;
    }
}

}  // namespace

std::vector<std::string> mutation_presets() {
    std::vector<std::string> names;
    for (const Preset& preset : presets) names.emplace_back(preset.name);
    return names;
}

MutationRates MutationRates::preset(const SearchSpace& space, const std::string& name,
                                    const std::map<std::string, double>& rates) {
    const auto* const found = std::find_if(
        presets.begin(), presets.end(), [&](const Preset& preset) { return name == preset.name; });
    if (found == presets.end())
        throw Error("mutation " + quoted(name) + ": must be one of " + join(mutation_presets()));
    for (const auto& own : rates) {
        const std::string& gene = own.first;
        const double rate = own.second;
        const auto known = [&gene](const Gene& one) { return one.name == gene; };
        if (std::none_of(space.genes().begin(), space.genes().end(), known))
            throw Error("rates: space " + space.name() + " has no gene " + quoted(gene));
        if (!(rate >= 0.0 && rate <= 1.0))
            throw Error("rates: " + gene + " " + std::to_string(rate) + ": must be 0 to 1");
    }
    const auto threshold = [&](const Gene& gene, double usual) {
        const auto own = rates.find(gene.name);
        return static_cast<std::uint64_t>(
            std::llround((own == rates.end() ? usual : own->second) * 4294967296.0));
    };
    MutationRates made;
    for (std::size_t slot = 0; slot < space.global_slots(); ++slot) {
        const auto counts = [slot](const LayerGroup& group) { return group.depth_slot == slot; };
        const bool depth = std::any_of(space.groups().begin(), space.groups().end(), counts);
        made.thresholds_.push_back(
            threshold(space.gene_of_slot(slot), depth ? found->depth : found->global));
    }
    for (const LayerGroup& group : space.groups())
        for (std::size_t layer = 0; layer < group.most_layers; ++layer)
            for (const std::size_t gene : group.genes)
                made.thresholds_.push_back(threshold(space.genes()[gene], found->layer));
    made.planes_.assign(space.masks().blocks * (threshold_bits + 1), 0);
    for (std::size_t byte = 0; byte < made.thresholds_.size(); ++byte)
        for (std::size_t bit = 0; bit <= threshold_bits; ++bit)
            if ((made.thresholds_[byte] >> bit & 1) != 0)
                made.planes_[byte / 64 * (threshold_bits + 1) + threshold_bits - bit] |=
                    std::uint64_t{1} << (byte % 64);
    return made;
}

// Sixty-four comparisons of random numbers with thresholds at once, from the highest bit down,
// until all are decided. Eight steps nearly always are enough, so they are taken without asking.
std::uint64_t MutationRates::choose(std::size_t block, std::uint64_t among, Rng& generator) const {
    const std::uint64_t* plane = planes_.data() + block * (threshold_bits + 1);
    const std::uint64_t* const end = plane + threshold_bits;
    Rng rng = generator;            // in registers
    std::uint64_t chosen = *plane;  // a rate of 1
    std::uint64_t open = among & ~chosen;
    chosen &= among;
    const auto compare = [&] {
        const std::uint64_t random = rng.next();
        const std::uint64_t threshold = *++plane;
        chosen |= open & threshold & ~random;
        open &= ~(threshold ^ random);
    };
    for (int bit = 0; bit < 8; ++bit) compare();
    while (open != 0 && plane != end) compare();
    generator = rng;
    return chosen;
}

// Genes of the layers that the parent has, redrawn, and genes of the layers that only the child
// has, drawn.
void redraw_layers(const SearchSpace& space, const Gene8* parent, std::uint64_t chosen,
                   std::size_t block, Rng& rng, Gene8* child) {
    const GenomeMasks& masks = space.masks();
    std::uint64_t layers = 0;
    for (std::size_t g = 0; g < space.groups().size(); ++g) {
        const std::size_t slot = space.groups()[g].depth_slot;
        const std::uint64_t had = masks.bits(g, parent[slot])[block];
        layers |= masks.bits(g, child[slot])[block] & (chosen | ~had);
    }
    redraw(layers, masks.radix.data() + block * 64, rng, child + block * 64);
}

void mutate(const SearchSpace& space, const MutationRates& rates, const Gene8* parent, Rng& rng,
            Gene8* child) {
    const GenomeMasks& masks = space.masks();
    const GenomeWords words(space.genome_length());
    words.copy(parent, child);
    const std::size_t last_global = (space.global_slots() - 1) / 64;
    for (std::size_t block = 0; block < masks.blocks; ++block) {
        const std::uint64_t global = masks.global_bits[block];
        const std::uint64_t chosen = rates.choose(block, masks.all_bits[block], rng);
        redraw(chosen & global, masks.radix.data() + block * 64, rng, child + block * 64);
        // The depths are decided: all of them lie before the first gene of a layer. What is redrawn
        // lies in layers that the child has, so the others are cleared before: words that follow
        // single bytes would wait for them.
        if (block == last_global) clear_padding(space, words, child);
        redraw_layers(space, parent, chosen & ~global, block, rng, child);
    }
}

void crossover(const SearchSpace& space, const Gene8* left, const Gene8* right, Rng& rng,
               Gene8* child) {
    const GenomeMasks& masks = space.masks();
    const GenomeWords words(space.genome_length());
    const auto& groups = space.groups();
    std::uint64_t random = 0;
    const auto mixed = [&](std::size_t word, std::uint64_t common) {
        random = word % 8 == 0 ? rng.next() : random >> 8;
        const std::uint64_t from_left = words.load(left, word);
        const std::uint64_t from_right = words.load(right, word);
        const std::uint64_t side = expanded[random & 0xff];
        // Beyond the common layers the shallower parent has zeros, so "or" is the deeper one.
        return (common & ((from_left & side) | (from_right & ~side))) |
               (~common & (from_left | from_right));
    };
    // The only depth is decided by the first word, so each word loses its padding on the way; but
    // not where the last word overlaps the depth, and decides it anew.
    const bool decided = masks.words == 1 || groups[0].depth_slot < words.offset(masks.words - 1);
    const bool early = groups.size() == 1 && space.global_slots() <= 8 && decided;
    const std::uint64_t* present = nullptr;
    for (std::size_t word = 0; word < masks.words; ++word) {
        std::uint64_t common = masks.global_words[word];
        for (std::size_t g = 0; g < groups.size(); ++g)
            common |= masks.bytes(g, left[groups[g].depth_slot])[word] &
                      masks.bytes(g, right[groups[g].depth_slot])[word];
        std::uint64_t value = mixed(word, common);
        if (early && word == 0) {
            words.store(child, 0, value);
            present = masks.bytes(0, child[groups[0].depth_slot]);
        }
        if (early) value &= masks.global_words[word] | present[word];
        words.store(child, word, value);
    }
    if (!early) clear_padding(space, words, child);
}

void random_genome(const SearchSpace& space, Rng& rng, Gene8* genome) {
    const GenomeMasks& masks = space.masks();
    for (std::size_t block = 0; block < masks.blocks && masks.global_bits[block] != 0; ++block)
        redraw(masks.global_bits[block], masks.radix.data() + block * 64, rng, genome + block * 64);
    for (const LayerGroup& group : space.groups()) draw_layers(group, rng, genome);
}

void step(const SearchSpace& space, const Gene8* parent, Rng& rng, Gene8* child) {
    const GenomeMasks& masks = space.masks();
    const auto& groups = space.groups();
    GenomeWords(space.genome_length()).copy(parent, child);
    // Genes with one value cannot step.
    const auto places = [&](std::size_t block) {
        std::uint64_t present = masks.global_bits[block];
        for (std::size_t g = 0; g < groups.size(); ++g)
            present |= masks.bits(g, parent[groups[g].depth_slot])[block];
        return present & masks.open_bits[block];
    };
    std::size_t count = 0;
    for (std::size_t block = 0; block < masks.blocks; ++block)
        count += static_cast<std::size_t>(std::popcount(places(block)));
    if (count == 0) return;
    std::size_t pick = rng.below(count);
    std::size_t block = 0;
    std::uint64_t bits = places(0);
    for (; pick >= static_cast<std::size_t>(std::popcount(bits)); bits = places(++block))
        pick -= static_cast<std::size_t>(std::popcount(bits));
    for (; pick > 0; --pick) bits &= bits - 1;
    const std::size_t byte = 64 * block + static_cast<std::size_t>(std::countr_zero(bits));
    const auto value = static_cast<Gene8>(rng.below(masks.radix[byte] - 1));
    child[byte] = static_cast<Gene8>(value < parent[byte] ? value : value + 1);
    for (block = 0; block < masks.blocks; ++block)
        redraw_layers(space, parent, 0, block, rng, child);
    clear_padding(space, GenomeWords(space.genome_length()), child);
}

}  // namespace hytas
