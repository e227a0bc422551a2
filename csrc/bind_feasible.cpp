#include "bindings.hpp"
#include "hytas/error.hpp"
#include "hytas/feasible.hpp"

using hytas::Budget;
using hytas::Feasible;
using hytas::SearchSpace;

namespace {

Genomes sample(const Feasible& feasible, std::size_t count, std::uint64_t seed,
               const std::string& uniform) {
    Genomes genomes = empty_genomes(count, feasible.space());
    hytas::Gene8* out = genomes.mutable_data();
    const hytas::Uniform meaning = hytas::uniform_named(uniform);
    const py::gil_scoped_release release;
    hytas::Rng rng(seed);
    for (std::size_t i = 0; i < count; ++i, out += feasible.space().genome_length())
        feasible.sample(rng, meaning, {out, feasible.space().genome_length()});
    return genomes;
}

Genomes enumerate(const Feasible& feasible, const WholeNumber& start, std::size_t count) {
    const hytas::Wide first = to_wide(start, "start");
    const hytas::Wide left = first < feasible.count() ? feasible.count() - first : 0;
    const auto rows = left < count ? static_cast<std::size_t>(left) : count;
    Genomes genomes = empty_genomes(rows, feasible.space());
    hytas::Gene8* out = genomes.mutable_data();
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < rows; ++i, out += feasible.space().genome_length())
        feasible.unrank(first + i, {out, feasible.space().genome_length()});
    return genomes;
}

py::array_t<bool> contains(const Feasible& feasible, const py::array& genomes) {
    const GenomeRows rows = genome_rows(genomes, feasible.space());
    py::array_t<bool> inside(static_cast<py::ssize_t>(rows.count));
    bool* out = inside.mutable_data();
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < rows.count; ++i)
        out[i] = feasible.contains({rows.row(i), rows.length});
    return inside;
}

Architecture unrank(const Feasible& feasible, const WholeNumber& index) {
    hytas::Genome genome(feasible.space().genome_length());
    feasible.unrank(to_wide(index, "index"), genome);
    return architecture_of(feasible.space(), genome);
}

py::int_ rank(const Feasible& feasible, const Architecture& architecture) {
    return to_python(feasible.rank(feasible.space().pack(to_json(architecture))));
}

}  // namespace

void bind_feasible(py::module_& module) {
    py::class_<Feasible, std::shared_ptr<Feasible>>(
        module, "Feasible", "The architectures of a space that fit a budget, known exactly.")
        .def(py::init([](const std::shared_ptr<SearchSpace>& space, const Budget& budget,
                         std::size_t most_entries) {
                 const py::gil_scoped_release release;
                 return std::make_shared<Feasible>(space, budget, most_entries);
             }),
             py::arg("space").none(false), py::arg("budget") = Budget(),
             py::arg("most_entries") = Feasible::default_entries,
             "ValueError with the smallest, largest or nearest possible costs when no architecture "
             "fits.")
        .def_property_readonly(
            "space",
            [](const Feasible& feasible) {
                return std::const_pointer_cast<SearchSpace>(feasible.shared_space());
            })
        .def_property_readonly("budget", &Feasible::budget)
        .def_property_readonly("exact", &Feasible::exact,
                               "False when the exact table would be too large: then sample stays "
                               "exact, but count, rank, unrank and enumerate raise ValueError.")
        .def(
            "at_most", [](const Feasible& feasible) { return to_python(feasible.at_most()); },
            "The count, or a number that it cannot exceed where it is not known exactly.")
        .def(
            "count", [](const Feasible& feasible) { return to_python(feasible.count()); },
            "The exact number of feasible architectures.")
        .def("sample", &sample, py::arg("n"), py::arg("seed"), py::arg("uniform") = "architectures",
             "Exact independent draws, uint8 (n, G): uniform over 'architectures', or over "
             "'choices' (each gene uniform).")
        .def("enumerate", &enumerate, py::arg("start"), py::arg("n"),
             "Architectures start .. start + n of the fixed order, uint8 (<= n, G).")
        .def("rank", &rank, py::arg("architecture"), "Its place in the fixed order.")
        .def("unrank", &unrank, py::arg("index"), "The architecture at a place in the fixed order.")
        .def("contains", &contains, py::arg("genomes"),
             "For each packed genome whether it is valid and fits: bool (N,).");
}
