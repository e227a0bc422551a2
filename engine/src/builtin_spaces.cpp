#include "builtin_spaces.hpp"

#include "hytas/error.hpp"
#include "hytas/search_space.hpp"
#include "text.hpp"

namespace hytas {

std::vector<std::string> builtin_spaces() {
    std::vector<std::string> names;
    for (const BuiltinSpace& space : embedded_spaces()) names.push_back(space.name);
    return names;
}

std::string_view builtin_space_text(const std::string& name) {
    for (const BuiltinSpace& space : embedded_spaces())
        if (space.name == name) return space.text;
    const std::string near = nearest(name, builtin_spaces());
    throw Error("space " + quoted(name) + ": must be one of " + join(builtin_spaces()) +
                ", or a space file" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace hytas
