// A search space, read from data: global genes, genes a layer, and the costs of every architecture
// as exact integers. docs/research.md describes the file. Adding a space needs no C++.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hytas/architecture.hpp"
#include "hytas/detail/combinations.hpp"
#include "hytas/detail/cost.hpp"
#include "hytas/detail/genome_words.hpp"
#include "hytas/detail/rational.hpp"
#include "hytas/json.hpp"
#include "hytas/wide.hpp"

namespace hytas {

using Variables = std::map<std::string, std::int64_t>;

// The values that one place of a genome may take, in the order of their indices.
struct Values {
    std::vector<Json> all;          // numbers or labels, as the file writes them
    std::vector<Rational> numbers;  // empty when they are labels

    [[nodiscard]] std::size_t size() const { return all.size(); }
};

struct Gene {
    std::string name;
    std::string key;                     // the prefix in a text key: "d" in "d4-e64"
    std::vector<Values> lists;           // one an element of a list gene, else one
    std::vector<std::uint32_t> weights;  // of its values when choices are drawn; empty: all alike
    std::size_t length = 0;              // 0: one value; n: a list of n values
    int absent = -1;       // index of the value of an architecture without the gene; -1: an error
    int group = -1;        // the depth gene's group for a gene of a layer, -1 for a global gene
    std::size_t slot = 0;  // global: its first byte; layer: its place inside a layer

    [[nodiscard]] const Values& values(std::size_t element = 0) const {
        return lists[lists.size() == 1 ? 0 : element];
    }
};

// The layers that one depth gene counts.
struct LayerGroup {
    std::size_t depth_gene = 0;
    std::size_t depth_slot = 0;
    std::vector<std::size_t> depths;  // value index -> number of layers
    std::size_t most_layers = 0;
    std::size_t offset = 0;          // of its first byte
    std::vector<std::size_t> genes;  // of a layer, in file order
    std::vector<std::size_t> radix;  // number of values of each
    std::size_t options = 1;         // of one layer: their product
    // [option of a block * stride + layer * genes + gene], zeros up to the stride.
    std::vector<Gene8> decoded;
    std::size_t block_layers = 1;  // so many layers are drawn at once

    [[nodiscard]] std::size_t stride() const { return std::max<std::size_t>(8, radix.size()); }
    std::size_t depth(const Gene8* genome) const { return depths[genome[depth_slot]]; }
    // The index of a layer's genes among all `options`, the last gene varying fastest.
    std::size_t option(const Gene8* layer) const {
        std::size_t index = 0;
        for (std::size_t i = 0; i < radix.size(); ++i) index = index * radix[i] + layer[i];
        return index;
    }
};

class SearchSpace {
  public:
    // Throw Error naming what is wrong in the text, or which variable is missing, unknown or out of
    // range.
    [[nodiscard]] static SearchSpace parse(std::string_view text, const Variables& variables);
    [[nodiscard]] static SearchSpace builtin(const std::string& name, const Variables& variables);

    // A copy with one more cost "latency@<name>", from a table of costs a layer, or from formulas
    // (docs/budget-and-time.md has both formats).
    [[nodiscard]] SearchSpace with_table(const std::string& name, std::string_view text) const;

    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] const std::string& about() const { return about_; }
    [[nodiscard]] const Variables& variables() const { return variables_; }
    [[nodiscard]] const std::vector<Gene>& genes() const { return genes_; }
    [[nodiscard]] const std::vector<LayerGroup>& groups() const { return groups_; }
    [[nodiscard]] const std::vector<CostTable>& costs() const { return costs_; }
    [[nodiscard]] std::vector<std::string> cost_names() const;
    // Throws Error with the nearest name.
    [[nodiscard]] std::size_t cost_index(const std::string& cost) const;

    [[nodiscard]] std::size_t genome_length() const { return genome_length_; }
    [[nodiscard]] const GenomeMasks& masks() const { return masks_; }
    [[nodiscard]] std::size_t global_slots() const { return slot_gene_.size(); }
    [[nodiscard]] const Gene& gene_of_slot(std::size_t slot) const {
        return genes_[slot_gene_[slot]];
    }
    [[nodiscard]] const Values& values_of_slot(std::size_t slot) const {
        const Gene& gene = gene_of_slot(slot);
        return gene.values(slot - gene.slot);
    }
    [[nodiscard]] std::size_t radix_of_slot(std::size_t slot) const { return slot_radix_[slot]; }
    // Of the global genes, without those that the file's "require" excludes.
    [[nodiscard]] const Combinations& combinations() const { return combinations_; }
    [[nodiscard]] Wide size() const;

    // Throws Error naming the gene, its value and its values.
    [[nodiscard]] Genome pack(const Json& architecture) const;
    [[nodiscard]] Json unpack(GenomeView genome) const;
    [[nodiscard]] std::string key(GenomeView genome) const;
    // Throws Error unless canonical: indices in range, padding 0, allowed.
    void check(GenomeView genome) const;
    [[nodiscard]] bool valid(GenomeView genome) const;

    std::int64_t cost(std::size_t index, const Gene8* genome) const;  // of a valid genome

    // Equal for equal spaces (file, variables and tables): a state refuses another space.
    [[nodiscard]] std::uint64_t fingerprint() const { return fingerprint_; }

  private:
    friend class SpaceReader;
    friend class LatencyReader;
    SearchSpace() = default;

    [[nodiscard]] std::string complaint(GenomeView genome) const;
    [[nodiscard]] std::string complaint(const Requirement& rule, GenomeView genome) const;
    [[nodiscard]] Gene8 index_of(const Gene& gene, const Values& values, const Json& value) const;
    void pack_gene(const Gene& gene, const Json& value, Genome& genome) const;

    std::string name_;
    std::string about_;
    std::string text_;  // of the space file
    Variables variables_;
    std::vector<Gene> genes_;
    std::vector<Gene> fixed_;  // those that the variables leave one value
    std::vector<LayerGroup> groups_;
    std::vector<CostTable> costs_;
    std::vector<std::size_t> slot_gene_;
    std::vector<std::size_t> slot_radix_;
    std::vector<Requirement> requirements_;
    Combinations combinations_;
    std::size_t genome_length_ = 0;
    GenomeMasks masks_;
    std::uint64_t fingerprint_ = 0;
};

[[nodiscard]] std::vector<std::string> builtin_spaces();
// Throws Error with the nearest name.
[[nodiscard]] std::string_view builtin_space_text(const std::string& name);

}  // namespace hytas
