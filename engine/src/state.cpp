// The state of an evolution as bytes: a header, a version, the length, the content, a checksum.
#include <algorithm>

#include "hytas/error.hpp"
#include "hytas/evolution.hpp"
#include "state_bytes.hpp"
#include "strategy.hpp"
#include "text.hpp"

namespace hytas {

namespace {

constexpr std::string_view magic = "hytas-state\n";
constexpr std::uint64_t version = 3;
// Before the content; a checksum of 8 bytes follows it.
constexpr std::size_t frame = magic.size() + 8 + 8;

// The content of a state that is whole, unedited and of a version that this engine reads.
std::string_view content_of(std::string_view state) {
    if (state.substr(0, magic.size()) != magic) throw Error("state: is not a hytas state");
    ByteReader header(state.substr(magic.size()));
    if (state.size() < frame)
        throw Error("state: is truncated: " + std::to_string(state.size()) +
                    " bytes, its header alone has " + std::to_string(frame));
    const std::uint64_t written = header.number();
    if (written > version)
        throw Error("state: was written by a newer hytas (state version " +
                    std::to_string(written) + "); this one reads version " +
                    std::to_string(version));
    if (written != version)
        throw Error("state: was written by an older hytas (state version " +
                    std::to_string(written) +
                    "), whose runs this one cannot go on with bit by bit; it reads version " +
                    std::to_string(version));
    const std::uint64_t size = header.number();
    const std::uint64_t held = state.size() - frame;
    if (held < 8 || size > held - 8)
        throw Error("state: is truncated: it holds " + std::to_string(state.size()) + " of " +
                    std::to_string(frame + size + 8) + " bytes");
    if (size < held - 8) throw Error("state: is damaged: bytes follow its end");
    ByteReader tail(state.substr(state.size() - 8));
    if (tail.number() != fingerprint(state.substr(0, state.size() - 8)))
        throw Error("state: is edited or damaged: its checksum does not match");
    return state.substr(frame, static_cast<std::size_t>(size));
}

void write_settings(ByteWriter& out, const EvolutionSettings& settings) {
    out.text(settings.strategy);
    out.number(settings.population);
    out.number(settings.offspring);
    out.number(settings.parents);
    out.real(settings.mutation_share);
    out.text(settings.mutation);
    out.number(settings.rates.size());
    for (const auto& [gene, rate] : settings.rates) {
        out.text(gene);
        out.real(rate);
    }
    out.text(settings.uniform);
    out.number(settings.retries);
    out.number(settings.seed);
}

EvolutionSettings read_settings(ByteReader& in) {
    EvolutionSettings settings;
    settings.strategy = in.text();
    settings.population = in.number();
    settings.offspring = in.number();
    settings.parents = in.number();
    settings.mutation_share = in.real();
    settings.mutation = in.text();
    for (std::size_t left = in.count(16); left > 0; --left) {
        const std::string gene(in.text());
        settings.rates[gene] = in.real();
    }
    settings.uniform = in.text();
    settings.retries = in.number();
    settings.seed = in.number();
    return settings;
}

}  // namespace

class StateWriter {
  public:
    static std::string content(const Evolution& run) {
        ByteWriter out;
        out.number(run.feasible_->fingerprint());
        write_settings(out, run.settings_);
        for (const std::uint64_t word : run.rng_.state()) out.number(word);
        out.number(run.objectives_);
        out.number(run.known());
        out.number(run.asked_);
        out.text({reinterpret_cast<const char*>(run.genomes_.data()), run.genomes_.size()});
        out.text({run.told_.data(), run.told_.size()});
        for (const double score : run.scores_) out.real(score);
        out.number(run.generation_);
        out.number(run.first_);
        out.number(run.size_);
        out.number(run.population_.size());
        for (const std::size_t id : run.population_) out.number(id);
        out.number(run.rank_.size());
        for (std::size_t i = 0; i < run.rank_.size(); ++i) {
            out.number(run.rank_[i]);
            out.real(run.crowding_[i]);
        }
        out.number(run.endgame_);
        out.number(run.next_remaining_);
        return out.take();
    }
};

class StateReader {
  public:
    // `bytes` are those of the whole state.
    StateReader(Evolution& run, ByteReader& in, std::size_t bytes)
        : run_(run), in_(in), bytes_(bytes) {}

    void read() {
        check_work();
        Rng::State words{};
        for (std::uint64_t& word : words) word = in_.number();
        require(
            std::any_of(words.begin(), words.end(), [](std::uint64_t word) { return word != 0; }),
            "generator");
        run_.rng_ = Rng(words);
        read_evaluations();
        run_.generation_ = in_.number();
        run_.first_ = in_.number();
        run_.size_ = in_.number();
        // A generation is planned whole, or, before the first ask, not at all.
        const bool planned = run_.known() - run_.first_ == run_.size_;
        require(run_.first_ <= run_.asked_ && run_.generation_ <= run_.asked_, "generation");
        require(planned || (run_.known() == 0 && run_.size_ == run_.settings_.population),
                "generation");
        read_population();
        read_endgame();
        require(in_.done(), "end");
    }

  private:
    static void require(bool sound, const std::string& what) {
        if (!sound) throw Error("state: is damaged: its " + what + " does not make sense");
    }

    // Settings of a few bytes can ask for the work of minutes. A large generation that is under way
    // has left its bytes.
    void check_work() const {
        const EvolutionSettings& settings = run_.settings_;
        const Wide draws = static_cast<Wide>(std::max<std::size_t>(1, settings.retries + 1)) *
                           (run_.strategy_->elite ? 1 : settings.parents);
        const Wide work = draws * std::max(settings.population, settings.offspring);
        require(work <= std::max<Wide>(most_work, bytes_),
                "settings ask for more than it holds: their number of draws");
    }

    void read_evaluations() {
        run_.objectives_ = in_.number();
        const std::size_t known = in_.count(run_.length_);
        run_.asked_ = in_.number();
        const std::string_view genomes = in_.text();
        const std::string_view told = in_.text();
        require(
            genomes.size() == known * run_.length_ && told.size() == known && run_.asked_ <= known,
            "list of architectures");
        require(run_.objectives_ <= 64, "number of objectives");
        run_.genomes_.assign(genomes.begin(), genomes.end());
        run_.told_.assign(told.begin(), told.end());
        for (std::size_t i = 0; i < known * run_.objectives_; ++i)
            run_.scores_.push_back(in_.real());
        run_.set_.reserve(known, run_.genomes_.data(), 0);
        for (std::size_t id = 0; id < known; ++id) {
            require(run_.feasible_->contains(run_.genome(id)),
                    "architecture " + std::to_string(id));
            require(told[id] == 0 || (told[id] == 1 && run_.objectives_ > 0 && id < run_.asked_),
                    "scores");
            run_.evaluated_ += told[id] == 1 ? 1 : 0;
            const Gene8* genome = run_.genome(id).data();
            require(run_.is_new(genome), "list of architectures");
            run_.set_.insert(run_.set_.hash(genome), id);
        }
    }

    void read_population() {
        for (std::size_t left = in_.count(8); left > 0; --left)
            run_.population_.push_back(in_.number());
        require(run_.population_.size() <= run_.settings_.population, "population");
        std::vector<bool> seen(run_.first_);
        for (const std::size_t id : run_.population_) {
            require(id < run_.first_ && run_.told(id) && !seen[id], "population");
            seen[id] = true;
        }
        for (std::size_t id = 0; id < run_.first_; ++id) require(run_.told(id), "scores");
        for (std::size_t left = in_.count(16); left > 0; --left) {
            run_.rank_.push_back(in_.number());
            run_.crowding_.push_back(in_.real());
        }
        require(!run_.strategy_->several_scores || run_.rank_.size() == run_.population_.size(),
                "population");
    }

    void read_endgame() {
        run_.endgame_ = in_.number();
        const std::size_t next = in_.number();
        if (run_.endgame_ == 0) return;
        require(run_.endgame_ <= run_.known() + 1 && is_near_the_end(), "end of the search");
        run_.list_remaining();
        require(next <= run_.remaining_.size() && next % run_.length_ == 0, "end of the search");
        run_.next_remaining_ = next;
    }

    // The rest is listed once draws find nothing new, so most architectures were known then. To
    // list the rest of a set of which few are known would take minutes, and the memory of the set.
    [[nodiscard]] bool is_near_the_end() const {
        const Feasible& feasible = *run_.feasible_;
        const std::size_t before = run_.endgame_ - 1;
        if (feasible.at_most() > Evolution::most_listed || before == 0) return false;
        if (feasible.exact()) return feasible.count() <= 8 * static_cast<Wide>(before);
        Rng rng(run_.settings_.seed);
        Genome genome(run_.length_);
        for (int draw = 0; draw < most_probes; ++draw) {
            feasible.sample(rng, Uniform::architectures, genome);
            if (run_.set_.find(run_.set_.hash(genome.data()), genome.data(), run_.genomes_.data()) <
                before)
                return true;
        }
        return false;
    }

    static constexpr Wide most_work = Wide{1} << 22;
    static constexpr int most_probes = 24;

    Evolution& run_;
    ByteReader& in_;
    std::size_t bytes_;
};

std::string Evolution::state() const {
    const std::string content = StateWriter::content(*this);
    ByteWriter header;
    header.number(version);
    header.number(content.size());
    std::string state = std::string(magic) + header.bytes() + content;
    ByteWriter checksum;
    checksum.number(hytas::fingerprint(state));
    return state + checksum.bytes();
}

Evolution Evolution::restore(std::shared_ptr<const Feasible> feasible, const std::string& state) {
    ByteReader in(content_of(state));
    if (in.number() != feasible->fingerprint())
        throw Error(
            "state: belongs to another space, other variables or another budget than " +
            feasible->space().name() + " with " +
            (feasible->budget().bounds().empty() ? "no budget" : feasible->budget().text()));
    Evolution run(std::move(feasible), read_settings(in));
    StateReader(run, in, state.size()).read();
    return run;
}

}  // namespace hytas
