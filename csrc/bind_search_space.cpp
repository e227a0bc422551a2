#include "bindings.hpp"
#include "hytas/search_space.hpp"

using hytas::SearchSpace;

namespace {

py::typing::List<py::typing::Dict<py::str, py::object>> describe_genes(const SearchSpace& space) {
    py::typing::List<py::typing::Dict<py::str, py::object>> genes;
    for (const hytas::Gene& gene : space.genes()) {
        py::list lists;
        for (const hytas::Values& values : gene.lists)
            lists.append(from_json(hytas::Json::array(values.all)));
        py::object per = py::none();
        if (gene.group >= 0)
            per = py::str(
                space.genes()[space.groups()[static_cast<std::size_t>(gene.group)].depth_gene]
                    .name);
        py::typing::Dict<py::str, py::object> description;
        description["name"] = gene.name;
        description["key"] = gene.key;
        description["values"] = gene.lists.size() == 1 ? py::object(lists[0]) : py::object(lists);
        description["length"] =
            gene.length == 0 ? py::object(py::none()) : py::object(py::int_(gene.length));
        description["per"] = per;
        genes.append(description);
    }
    return genes;
}

py::typing::Dict<py::str, py::int_> cost_of(const SearchSpace& space,
                                            const Architecture& architecture) {
    const hytas::Genome genome = space.pack(to_json(architecture));
    py::typing::Dict<py::str, py::int_> costs;
    for (std::size_t i = 0; i < space.costs().size(); ++i)
        costs[py::str(space.costs()[i].name)] = space.cost(i, genome.data());
    return costs;
}

Genomes pack(const SearchSpace& space, const std::vector<Architecture>& architectures) {
    Genomes genomes = empty_genomes(architectures.size(), space);
    for (std::size_t i = 0; i < architectures.size(); ++i) {
        const hytas::Genome genome = space.pack(to_json(architectures[i]));
        std::copy(genome.begin(), genome.end(), genomes.mutable_data() + i * space.genome_length());
    }
    return genomes;
}

py::typing::List<Architecture> unpack(const SearchSpace& space, const py::array& genomes) {
    const GenomeRows rows = genome_rows(genomes, space);
    py::typing::List<Architecture> architectures;
    for (std::size_t i = 0; i < rows.count; ++i)
        architectures.append(architecture_of(space, {rows.row(i), rows.length}));
    return architectures;
}

py::array_t<std::int64_t> costs(const SearchSpace& space, const py::array& genomes,
                                const std::string& name) {
    const GenomeRows rows = genome_rows(genomes, space);
    const std::size_t index = space.cost_index(name);
    py::array_t<std::int64_t> result(static_cast<py::ssize_t>(rows.count));
    std::int64_t* out = result.mutable_data();
    const py::gil_scoped_release release;
    for (std::size_t i = 0; i < rows.count; ++i) {
        space.check({rows.row(i), rows.length});
        out[i] = space.cost(index, rows.row(i));
    }
    return result;
}

std::string key_of(const SearchSpace& space, const Architecture& architecture) {
    return space.key(space.pack(to_json(architecture)));
}

}  // namespace

void bind_search_space(py::module_& module) {
    module.def("builtin_spaces", &hytas::builtin_spaces,
               "The names of the spaces that come with the engine.");
    module.def(
        "builtin_space_text",
        [](const std::string& name) { return std::string(hytas::builtin_space_text(name)); },
        py::arg("name"),
        "The JSON file of a built-in space: the example to start a space of one's own from.");
    py::class_<SearchSpace, std::shared_ptr<SearchSpace>>(
        module, "SearchSpace", "A search space and the exact costs of its architectures.")
        .def_static("builtin", &SearchSpace::builtin, py::arg("name"),
                    py::arg("variables") = hytas::Variables(),
                    "A built-in space; ValueError on an unknown name or variable.")
        .def_static(
            "parse",
            [](const std::string& text, const hytas::Variables& variables) {
                return SearchSpace::parse(text, variables);
            },
            py::arg("text"), py::arg("variables") = hytas::Variables(),
            "A space from the JSON text of a space file (docs/research.md).")
        .def(
            "with_table",
            [](const SearchSpace& space, const std::string& name, const std::string& text) {
                return space.with_table(name, text);
            },
            py::arg("name"), py::arg("text"),
            "A copy with the cost latency@<name>, from the JSON text of a latency table "
            "(docs/budget-and-time.md).")
        .def_property_readonly("name", &SearchSpace::name)
        .def_property_readonly("about", &SearchSpace::about)
        .def_property_readonly("variables", &SearchSpace::variables)
        .def_property_readonly(
            "genes", &describe_genes,
            "One dict a gene: name, key, values (a list an element where they differ), length (of "
            "a list gene), per (the depth gene that counts its layers).")
        .def_property_readonly("cost_names", &SearchSpace::cost_names)
        .def_property_readonly(
            "cost_units",
            [](const SearchSpace& space) {
                std::map<std::string, std::string> units;
                for (const hytas::CostTable& cost : space.costs()) units[cost.name] = cost.unit;
                return units;
            },
            "The unit of each cost, by name.")
        .def_property_readonly("genome_length", &SearchSpace::genome_length,
                               "Bytes of a packed genome.")
        .def_property_readonly("fingerprint", &SearchSpace::fingerprint,
                               "Equal for equal spaces, 64 bits.")
        .def(
            "size", [](const SearchSpace& space) { return to_python(space.size()); },
            "The exact number of architectures.")
        .def("cost", &cost_of, py::arg("architecture"),
             "Every cost of one architecture, by name; ValueError names a wrong gene.")
        .def("costs", &costs, py::arg("genomes"), py::arg("name"),
             "One cost of packed genomes (N, G): int64 (N,).")
        .def("pack", &pack, py::arg("architectures"),
             "Packed genomes, uint8 (N, G), of a list of architectures.")
        .def("unpack", &unpack, py::arg("genomes"), "The architectures of packed genomes (N, G).")
        .def("key", &key_of, py::arg("architecture"),
             "A stable text, e.g. hytas:d4-e64-h3.4.5.6-m1.2.3.4; a safe file name but for the "
             "colon.");
}
