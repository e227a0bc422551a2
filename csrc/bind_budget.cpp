#include "bindings.hpp"
#include "hytas/budget.hpp"

using hytas::Budget;

namespace {

std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> bounds_of(const Budget& budget) {
    std::vector<std::tuple<std::string, std::int64_t, std::int64_t>> bounds;
    for (const hytas::Bound& bound : budget.bounds())
        bounds.emplace_back(bound.cost, bound.lower, bound.upper);
    return bounds;
}

}  // namespace

void bind_budget(py::module_& module) {
    module.def("amount_text", &hytas::amount_text, py::arg("cost"), py::arg("value"),
               "A cost in the notation of a budget: 2M-params, 4MB-int8.");
    module.def("spoken_amount", &hytas::spoken_amount, py::arg("cost"), py::arg("value"),
               py::arg("plain") = false, "A cost as a sentence says it: 203,456 params.");
    py::class_<Budget>(
        module, "Budget",
        "Bounds on costs that must all hold: 2M-params, 1.5M..2M-params, 4MB-int8, ...")
        .def(py::init<>(), "No bound: everything fits.")
        .def_static("parse", py::overload_cast<const std::vector<std::string>&>(&Budget::parse),
                    py::arg("text"), "From texts; each may hold several, comma-separated.")
        .def_static("parse", py::overload_cast<const std::string&>(&Budget::parse), py::arg("text"))
        .def_property_readonly("bounds", &bounds_of,
                               "A list of (cost name, lower, upper), both ends included.")
        .def_property_readonly("tables", &Budget::tables,
                               "The names of the latency tables that it needs.")
        .def("__str__", &Budget::text)
        .def("__repr__", [](const Budget& budget) { return "Budget('" + budget.text() + "')"; })
        .def("__eq__",
             [](const Budget& left, const py::object& right) {
                 return py::isinstance<Budget>(right) &&
                        left.bounds() == right.cast<const Budget&>().bounds();
             })
        .def("__hash__", [](const Budget& budget) { return py::hash(py::str(budget.text())); });
}
