#include "bindings.hpp"
void bind_evolution(py::module_&) {}
