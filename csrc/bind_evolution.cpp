#include <string>

#include "bindings.hpp"
#include "hytas/error.hpp"
#include "hytas/evolution.hpp"

using hytas::Evolution;
using hytas::Feasible;

namespace {

using GivenIds = py::array_t<std::int64_t, py::array::c_style>;
using GivenScores = py::array_t<double, py::array::c_style | py::array::forcecast>;
using Batch = py::typing::Tuple<Ids, Genomes>;
using ScoredBatch = py::typing::Tuple<Ids, Genomes, Scores>;
using Winner = py::typing::Tuple<Architecture, py::object>;

Ids ids_from(std::size_t first, std::size_t count) {
    Ids ids(static_cast<py::ssize_t>(count));
    for (std::size_t i = 0; i < count; ++i)
        ids.mutable_data()[i] = static_cast<std::int64_t>(first + i);
    return ids;
}

Ids ids_of(const std::vector<std::size_t>& list) {
    Ids ids(static_cast<py::ssize_t>(list.size()));
    std::copy(list.begin(), list.end(), ids.mutable_data());
    return ids;
}

Genomes genomes_of(const Evolution& run, const std::vector<std::size_t>& ids) {
    Genomes genomes = empty_genomes(ids.size(), run.feasible().space());
    hytas::Gene8* out = genomes.mutable_data();
    for (const std::size_t id : ids)
        out = std::copy(run.genome(id).begin(), run.genome(id).end(), out);
    return genomes;
}

Batch ask(Evolution& run, std::optional<std::size_t> count) {
    if (count == std::size_t{0})
        throw hytas::Error("n 0: must be 1 or more, or None for the rest of the generation");
    std::vector<hytas::Gene8> genomes;
    std::size_t first = 0;
    {
        const py::gil_scoped_release release;
        first = run.ask(count.value_or(0), genomes);
    }
    const std::size_t length = run.feasible().space().genome_length();
    // The vector moves into the array's owner, so the genomes are not copied again.
    auto* owned = new std::vector<hytas::Gene8>(std::move(genomes));
    const py::capsule owner(
        owned, [](void* vector) { delete static_cast<std::vector<hytas::Gene8>*>(vector); });
    const std::size_t rows = owned->size() / length;
    return py::make_tuple(ids_from(first, rows), Genomes({rows, length}, owned->data(), owner));
}

using Take = void (Evolution::*)(const std::vector<std::size_t>&, const double*, std::size_t);

// `take` the scores of ids: tell or rescore.
template <Take take>
void give(Evolution& run, const GivenIds& ids, const GivenScores& scores) {
    const auto rows = static_cast<std::size_t>(ids.size());
    if (ids.ndim() != 1) throw hytas::Error("ids: must have one dimension");
    if (scores.ndim() < 1 || scores.ndim() > 2 || static_cast<std::size_t>(scores.shape(0)) != rows)
        throw hytas::Error("scores: must have shape (" + std::to_string(rows) + ",) or (" +
                           std::to_string(rows) + ", k), one row an id");
    std::vector<std::size_t> list;
    for (std::size_t i = 0; i < rows; ++i) {
        if (ids.data()[i] < 0)
            throw hytas::Error("ids: " + std::to_string(ids.data()[i]) + " was never asked for");
        list.push_back(static_cast<std::size_t>(ids.data()[i]));
    }
    const std::size_t objectives =
        scores.ndim() == 1 ? 1 : static_cast<std::size_t>(scores.shape(1));
    const py::gil_scoped_release release;
    (run.*take)(list, scores.data(), objectives);
}

py::object score_of(const Evolution& run, std::size_t id) {
    if (run.objectives() == 1) return py::float_(run.scores(id)[0]);
    py::list scores;
    for (std::size_t k = 0; k < run.objectives(); ++k) scores.append(run.scores(id)[k]);
    return py::tuple(scores);
}

Winner best(const Evolution& run) {
    const std::size_t id = run.best();
    return py::make_tuple(architecture_of(run.feasible().space(), run.genome(id)),
                          score_of(run, id));
}

Batch pending(const Evolution& run) {
    const auto ids = run.pending();
    return py::make_tuple(ids_of(ids), genomes_of(run, ids));
}

ScoredBatch with_scores(const Evolution& run, const std::vector<std::size_t>& ids) {
    const std::size_t objectives = std::max<std::size_t>(1, run.objectives());
    Scores scores({ids.size(), objectives});
    double* out = scores.mutable_data();
    for (const std::size_t id : ids)
        out = std::copy(run.scores(id), run.scores(id) + run.objectives(), out);
    return py::make_tuple(ids_of(ids), genomes_of(run, ids), scores);
}

py::typing::Dict<py::str, py::typing::Dict<py::str, py::object>> strategies() {
    py::typing::Dict<py::str, py::typing::Dict<py::str, py::object>> found;
    for (const hytas::StrategyFacts& one : hytas::strategies()) {
        py::typing::Dict<py::str, py::object> facts;
        facts["about"] = one.about;
        facts["several_scores"] = one.several_scores;
        found[py::str(one.name)] = facts;
    }
    return found;
}

}  // namespace

void bind_evolution(py::module_& module) {
    const hytas::EvolutionSettings usual;
    module.def("strategies", &strategies,
               "The search strategies: name -> {about: a text, several_scores: whether a row of "
               "scores may have more than one}.");
    module.def("mutation_presets", &hytas::mutation_presets,
               "The names of the presets of mutation rates.");
    py::class_<Evolution>(module, "Evolution",
                          "The search loop: ask -> score -> tell. Everything asked for is "
                          "feasible, new and distinct. One thread at a time.")
        .def(py::init([](std::shared_ptr<Feasible> feasible, std::string strategy,
                         std::size_t population, std::size_t offspring, std::size_t parents,
                         double mutation_share, std::string mutation,
                         std::map<std::string, double> rates, std::string uniform,
                         std::size_t retries, std::uint64_t seed) {
                 return Evolution(std::move(feasible), {.strategy = std::move(strategy),
                                                        .population = population,
                                                        .offspring = offspring,
                                                        .parents = parents,
                                                        .mutation_share = mutation_share,
                                                        .mutation = std::move(mutation),
                                                        .rates = std::move(rates),
                                                        .uniform = std::move(uniform),
                                                        .retries = retries,
                                                        .seed = seed});
             }),
             py::arg("feasible").none(false), py::arg("strategy") = usual.strategy,
             py::arg("population") = usual.population, py::arg("offspring") = usual.offspring,
             py::arg("parents") = usual.parents, py::arg("mutation_share") = usual.mutation_share,
             py::arg("mutation") = usual.mutation, py::arg("rates") = usual.rates,
             py::arg("uniform") = usual.uniform, py::arg("retries") = usual.retries,
             py::arg("seed") = usual.seed)
        .def("ask", &ask, py::arg("n") = py::none(),
             "(ids int64 (n,), genomes uint8 (n, G)): up to n architectures of this generation, "
             "None for its rest. Empty: the feasible set is exhausted.")
        .def("tell", &give<&Evolution::tell>, py::arg("ids"), py::arg("scores"),
             "Scores (n,) or (n, k) of ids, larger is better, NaN ranks last; in any order and in "
             "parts.")
        .def("rescore", &give<&Evolution::rescore>, py::arg("ids"), py::arg("scores"),
             "Other scores of ids that were told, where scores depend on what was evaluated since; "
             "the next generation is chosen by them.")
        .def_property_readonly("feasible",
                               [](const Evolution& run) {
                                   return std::const_pointer_cast<Feasible>(run.shared_feasible());
                               })
        .def_property_readonly("generation", &Evolution::generation,
                               "Generations completed when the last one was asked for.")
        .def_property_readonly("evaluated", &Evolution::evaluated, "Architectures told.")
        .def_property_readonly("asked", &Evolution::asked, "Architectures asked for.")
        .def_property_readonly("objectives", &Evolution::objectives,
                               "Scores a row; 0 before the first tell.")
        .def_property_readonly("exhausted", &Evolution::exhausted,
                               "Every feasible architecture has been asked for.")
        .def("pending", &pending,
             "(ids, genomes) asked for but not told: what to score first after a restore.")
        .def("best", &best,
             "(architecture, score) of the best first score; ValueError before any tell.")
        .def(
            "population", [](const Evolution& run) { return with_scores(run, run.population()); },
            "(ids, genomes, scores (n, k)) of the current parents.")
        .def(
            "front", [](const Evolution& run) { return with_scores(run, run.front()); },
            "(ids, genomes, scores (n, k)) that no other told architecture dominates.")
        .def(
            "state", [](const Evolution& run) { return py::bytes(run.state()); },
            "Versioned, checksummed and complete, the generator included.")
        .def_static(
            "restore",
            [](std::shared_ptr<Feasible> feasible, const py::bytes& state) {
                return Evolution::restore(std::move(feasible), state);
            },
            py::arg("feasible").none(false), py::arg("state"),
            "An evolution that goes on bit by bit; ValueError on a truncated, edited, newer or "
            "foreign state.");
}
