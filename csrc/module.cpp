// hytas._engine: the search engine, bound as it is. One bind_<topic>.cpp a header of engine/.
#include "bindings.hpp"

PYBIND11_MODULE(_engine, module) {
    module.doc() =
        "The search engine of hytas: spaces, exact costs, budgets, sampling and selection.";
    bind_search_space(module);
    bind_budget(module);
    bind_feasible(module);
    bind_evolution(module);
}
