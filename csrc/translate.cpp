// Translation between Python's values and the engine's, with no rule of the domain.
#include "bindings.hpp"
#include "hytas/error.hpp"

namespace {

// Values that hold values; also where one holds itself, which would never end.
constexpr int deepest = 32;

hytas::Json to_json_at(const py::handle& value, int depth);

std::string text_of(const py::handle& value) {
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (text == nullptr) {
        PyErr_Clear();
        const auto shown = py::reinterpret_steal<py::str>(PyObject_ASCII(value.ptr()));
        throw hytas::Error("text " + shown.cast<std::string>() +
                           ": must be Unicode, without lone surrogates");
    }
    return {text, static_cast<std::size_t>(size)};
}

hytas::Json sequence_to_json(const py::handle& value, int depth) {
    std::vector<hytas::Json> items;
    for (const py::handle item : value) items.push_back(to_json_at(item, depth));
    return hytas::Json::array(std::move(items));
}

hytas::Json to_json_at(const py::handle& value, int depth) {
    if (depth > deepest)
        throw hytas::Error("value: must not be nested deeper than " + std::to_string(deepest));
    if (value.is_none()) return {};
    if (py::isinstance<py::bool_>(value)) return hytas::Json::boolean(value.cast<bool>());
    if (py::isinstance<py::str>(value)) return hytas::Json::string(text_of(value));
    if (py::isinstance<py::dict>(value)) {
        hytas::Json::Members members;
        for (const auto& [name, member] : py::reinterpret_borrow<py::dict>(value))
            members.emplace_back(text_of(py::str(name)), to_json_at(member, depth + 1));
        return hytas::Json::object(std::move(members));
    }
    if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value) ||
        (py::isinstance<py::array>(value) && py::len_hint(value) > 0))
        return sequence_to_json(value, depth + 1);
    // An integer of any kind (numpy's too) has __index__; what is left may be a float, whose repr
    // is exact.
    if (PyIndex_Check(value.ptr()) != 0) {
        PyObject* index = PyNumber_Index(value.ptr());
        if (index == nullptr) throw py::error_already_set();
        return hytas::Json::number(
            py::str(py::reinterpret_steal<py::object>(index)).cast<std::string>());
    }
    if (PyNumber_Check(value.ptr()) != 0)
        return hytas::Json::number(
            py::repr(py::float_(py::reinterpret_borrow<py::object>(value))).cast<std::string>());
    throw hytas::Error("value " + py::repr(value).cast<std::string>() +
                       ": must be a number, a text, a list or a dict");
}

}  // namespace

hytas::Json to_json(const py::handle& value) { return to_json_at(value, 0); }

py::object from_json(const hytas::Json& value) {
    switch (value.kind()) {
        case hytas::Json::Kind::null: return py::none();
        case hytas::Json::Kind::boolean: return py::bool_(value.truth());
        case hytas::Json::Kind::string: return py::str(value.text());
        case hytas::Json::Kind::number: {
            const bool whole = value.text().find_first_of(".eE") == std::string::npos;
            if (whole) return py::int_(py::str(value.text()));
            return py::float_(py::str(value.text()));
        }
        case hytas::Json::Kind::array: {
            py::list items;
            for (const hytas::Json& item : value.items()) items.append(from_json(item));
            return items;
        }
        case hytas::Json::Kind::object: {
            py::dict members;
            for (const auto& [name, member] : value.members())
                members[py::str(name)] = from_json(member);
            return members;
        }
    }
    return py::none();
}

Architecture architecture_of(const hytas::SearchSpace& space, hytas::GenomeView genome) {
    return py::reinterpret_borrow<Architecture>(from_json(space.unpack(genome)));
}

py::int_ to_python(hytas::Wide value) { return py::int_(py::str(hytas::to_text(value))); }

hytas::Wide to_wide(const py::object& value, const std::string& name) {
    // Also NumPy's integers.
    const auto whole = py::reinterpret_steal<py::object>(PyNumber_Index(value.ptr()));
    if (!whole) throw py::error_already_set();
    const auto text = py::str(whole).cast<std::string>();
    if (text[0] == '-') throw hytas::Error(name + " " + text + ": must be 0 or more");
    return hytas::parse_wide(text);
}

GenomeRows genome_rows(const py::array& genomes, const hytas::SearchSpace& space) {
    const std::size_t length = space.genome_length();
    const bool bytes = genomes.dtype().equal(py::dtype::of<hytas::Gene8>());
    const bool rows = genomes.ndim() == 2 && static_cast<std::size_t>(genomes.shape(1)) == length;
    const bool packed = (genomes.flags() & py::array::c_style) != 0;
    if (!bytes || !rows || !packed)
        throw hytas::Error("genomes: must be a C-contiguous uint8 array of shape (N, " +
                           std::to_string(length) + ") for space " + space.name());
    return {static_cast<const hytas::Gene8*>(genomes.data()),
            static_cast<std::size_t>(genomes.shape(0)), length};
}

Genomes empty_genomes(std::size_t count, const hytas::SearchSpace& space) {
    return Genomes({count, space.genome_length()});
}
