#include "bindings.hpp"
void bind_feasible(py::module_&) {}
