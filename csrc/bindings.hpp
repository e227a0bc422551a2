// What the bind_<topic>.cpp files share: their entry points, and the few values that need
// translating by hand.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <pybind11/typing.h>

#include <cstdint>

#include "hytas/architecture.hpp"
#include "hytas/json.hpp"
#include "hytas/search_space.hpp"
#include "hytas/wide.hpp"

namespace py = pybind11;

void bind_search_space(py::module_& module);
void bind_budget(py::module_& module);
void bind_feasible(py::module_& module);
void bind_evolution(py::module_& module);

// An architecture as Python sees it: {"depth": 4, "num_heads": [3, 4, 5, 6], ...}.
using Architecture = py::typing::Dict<py::str, py::object>;
using WholeNumber = py::typing::Union<py::int_>;  // of any size and type: also NumPy's
using Genomes = py::array_t<hytas::Gene8>;
using Ids = py::array_t<std::int64_t>;
using Scores = py::array_t<double>;

// dict, list, str, int, float, bool and None (numpy's scalars too) to the engine's JSON value and
// back.
hytas::Json to_json(const py::handle& value);
py::object from_json(const hytas::Json& value);
Architecture architecture_of(const hytas::SearchSpace& space, hytas::GenomeView genome);

// An exact count as a Python int.
py::int_ to_python(hytas::Wide value);
// A whole number of 0 or more; `name` is the argument, for the message.
hytas::Wide to_wide(const py::object& value, const std::string& name);

// A view of a (N, G) uint8 array, no copy; throws hytas::Error on another type, shape or layout.
struct GenomeRows {
    const hytas::Gene8* data;
    std::size_t count;
    std::size_t length;

    [[nodiscard]] const hytas::Gene8* row(std::size_t index) const { return data + index * length; }
};
GenomeRows genome_rows(const py::array& genomes, const hytas::SearchSpace& space);
Genomes empty_genomes(std::size_t count, const hytas::SearchSpace& space);
