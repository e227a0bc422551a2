// The search loop in three verbs: ask -> score -> tell. Every architecture that is asked for is
// feasible, new and distinct; when the feasible set is exhausted, ask returns nothing.
//
// All strategies work in generations, and what is told is used in the order of ids when a
// generation is complete: the result does not depend on the order or the batches of tell, nor on
// the sizes of ask.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "hytas/detail/genome_set.hpp"
#include "hytas/detail/repair.hpp"
#include "hytas/feasible.hpp"
#include "hytas/operators.hpp"
#include "hytas/rng.hpp"

namespace hytas {

struct EvolutionSettings {
    std::string strategy = "evolution";  // a name of strategies()
    std::size_t population = 50;
    // A generation after the first; 0: the population (ageing: a tenth of it).
    std::size_t offspring = 0;
    std::size_t parents = 10;     // evolution: the best so many; ageing: of each tournament
    double mutation_share = 0.5;  // of the offspring; the others come from crossover
    std::string mutation = "autoformer";
    std::map<std::string, double> rates;
    // Of the first generation; architectures where choices cannot be weighed.
    std::string uniform = "choices";
    // A child outside the budget is varied afresh so many times, as the references do without end,
    // before it is repaired; 0: repaired at once.
    std::size_t retries = 6;
    std::uint64_t seed = 0;
};

struct StrategyFacts {
    std::string name;
    std::string about;    // for people
    bool several_scores;  // a row of scores may have more than one
};

[[nodiscard]] std::vector<StrategyFacts> strategies();

struct Strategy;  // a row of their table

class Evolution {
  public:
    // Throws Error when a setting is wrong.
    Evolution(std::shared_ptr<const Feasible> feasible, EvolutionSettings settings);

    // Appends up to `most` architectures (0: all) of the current generation, and starts the next
    // one when this one is fully told. Returns the first id; ids are consecutive. Throws Error when
    // this generation is fully asked for, but not told.
    std::size_t ask(std::size_t most, std::vector<Gene8>& genomes);

    // scores: ids.size() * objectives, larger is better, NaN ranks last. The number of objectives
    // is fixed by the first call. All or nothing: throws Error on an id that was never asked for,
    // or told before.
    void tell(const std::vector<std::size_t>& ids, const double* scores, std::size_t objectives);

    // Replaces scores that were told, for a score may depend on what was evaluated since, as a mean
    // of ranks does. The next generation is chosen by the new ones. All or nothing: throws Error on
    // an id that was not told.
    void rescore(const std::vector<std::size_t>& ids, const double* scores, std::size_t objectives);

    [[nodiscard]] const Feasible& feasible() const { return *feasible_; }
    [[nodiscard]] const std::shared_ptr<const Feasible>& shared_feasible() const {
        return feasible_;
    }
    [[nodiscard]] const EvolutionSettings& settings() const { return settings_; }
    [[nodiscard]] std::size_t generation() const {
        return generation_;
    }  // 0 while the first one is running
    [[nodiscard]] std::size_t evaluated() const { return evaluated_; }
    [[nodiscard]] std::size_t asked() const { return asked_; }
    [[nodiscard]] std::size_t objectives() const { return objectives_; }
    [[nodiscard]] bool exhausted() const {
        if (feasible_->exact()) return feasible_->count() == asked();
        return endgame_ != 0 && next_remaining_ == remaining_.size() && asked_ == known();
    }

    [[nodiscard]] GenomeView genome(std::size_t id) const {
        return {genomes_.data() + id * length_, length_};
    }
    [[nodiscard]] const double* scores(std::size_t id) const {
        return scores_.data() + id * objectives_;
    }
    [[nodiscard]] bool told(std::size_t id) const { return told_[id] != 0; }
    [[nodiscard]] std::vector<std::size_t> pending() const;  // asked for, but not told
    [[nodiscard]] const std::vector<std::size_t>& population() const { return population_; }
    // The smallest id of the best first score; throws Error before any tell.
    [[nodiscard]] std::size_t best() const;
    [[nodiscard]] std::vector<std::size_t> front() const;  // told, and dominated by none

    // Versioned, checksummed, complete: a restored evolution goes on bit by bit as this one would
    // have.
    [[nodiscard]] std::string state() const;
    [[nodiscard]] static Evolution restore(std::shared_ptr<const Feasible> feasible,
                                           const std::string& state);

  private:
    friend class StateReader;
    friend class StateWriter;
    friend struct Strategies;

    void check_settings() const;
    void check_scores(const char* verb, const std::vector<std::size_t>& ids, std::size_t objectives,
                      bool again) const;
    void set_scores(const std::vector<std::size_t>& ids, const double* scores);
    void finish_generation();
    [[nodiscard]] bool better(std::size_t left, std::size_t right) const;
    struct Lane;  // a proposal that is under way

    // A generation is planned whole when its first architecture is asked for: it depends on nothing
    // that is told later.
    void plan_generation();
    void gather_pool();
    void vary_generation();
    void propose(Lane& lane, Gene8* child);
    [[nodiscard]] const Gene8* pool(std::size_t member) const {
        return pool_.data() + member * length_;
    }
    bool draw_new(Gene8* child);
    bool draw_remaining(Gene8* child);
    void list_remaining();
    // Listing walks through all of them, which takes a minute for so many; an exact set this large
    // is never close to exhausted.
    static constexpr std::size_t most_listed = std::size_t{1} << 27;
    void append(const Gene8* genome, std::uint64_t hash);
    [[nodiscard]] std::size_t known() const { return told_.size(); }
    [[nodiscard]] bool all_known() const {
        return feasible_->exact() && feasible_->count() == known();
    }
    bool is_new(const Gene8* genome) const {
        return set_.find(set_.hash(genome), genome, genomes_.data()) == GenomeSet::none;
    }

    std::shared_ptr<const Feasible> feasible_;
    EvolutionSettings settings_;
    MutationRates rates_;
    const Strategy* strategy_;
    Uniform uniform_ = Uniform::choices;
    std::size_t length_ = 0;
    Rng rng_;
    Repair repair_;

    // Of every id, planned but not yet asked for included.
    std::vector<Gene8> genomes_;
    std::vector<double> scores_;  // once the number of objectives is known
    std::vector<char> told_;
    std::size_t asked_ = 0;
    std::size_t objectives_ = 0;
    std::size_t evaluated_ = 0;

    std::size_t generation_ = 0;
    std::size_t first_ = 0;  // id of this generation's first architecture
    std::size_t size_ = 0;   // of this generation; 0: nothing was left for it
    std::vector<std::size_t> population_;
    std::vector<Gene8> pool_;        // genomes of the population, side by side
    std::vector<std::size_t> rank_;  // nsga2: front of each member of the population
    std::vector<double> crowding_;   // nsga2: and its crowding distance

    GenomeSet set_;  // of every id
    // Ids known when the remaining architectures were listed, + 1; 0: not yet.
    std::size_t endgame_ = 0;
    std::vector<Gene8> remaining_;  // their genomes, shuffled
    std::size_t next_remaining_ = 0;
};

}  // namespace hytas
