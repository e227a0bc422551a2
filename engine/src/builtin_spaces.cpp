#include "builtin_spaces.hpp"

#include <map>

#include "hytas/error.hpp"
#include "hytas/json.hpp"
#include "hytas/search_space.hpp"
#include "text.hpp"

namespace hytas {

namespace {

Json with_values(const Json& gene, const Json& values) {
    Json::Members members = gene.members();
    for (auto& [name, value] : members)
        if (name == "values") value = values;
    return Json::object(std::move(members));
}

// A space that is "like" another has its own name and text, and its own "values" of some genes.
std::string like_another(const Json& file) {
    const Json base = Json::parse(builtin_space_text(file.find("like")->text()), "built-in space");
    Json::Members members = base.members();
    for (auto& [name, value] : members) {
        if (const Json* own = file.find(name)) value = *own;
        if (name != "genes") continue;
        std::vector<Json> genes = value.items();
        for (Json& gene : genes)
            if (const Json* own = file.find("values")->find(gene.find("name")->text()))
                gene = with_values(gene, *own);
        value = Json::array(std::move(genes));
    }
    return Json::object(std::move(members)).dump();
}

const std::map<std::string, std::string>& spaces_like_others() {
    static const std::map<std::string, std::string> texts = [] {
        std::map<std::string, std::string> found;
        for (const BuiltinSpace& space : embedded_spaces()) {
            if (space.text.find("\"like\"") == std::string_view::npos) continue;
            found[space.name] = like_another(Json::parse(space.text, "built-in space"));
        }
        return found;
    }();
    return texts;
}

}  // namespace

std::vector<std::string> builtin_spaces() {
    std::vector<std::string> names;
    for (const BuiltinSpace& space : embedded_spaces()) names.push_back(space.name);
    return names;
}

std::string_view builtin_space_text(const std::string& name) {
    for (const BuiltinSpace& space : embedded_spaces()) {
        if (space.name != name) continue;
        if (space.text.find("\"like\"") == std::string_view::npos) return space.text;
        return spaces_like_others().at(name);
    }
    const std::string near = nearest(name, builtin_spaces());
    throw Error("space " + quoted(name) + ": must be one of " + join(builtin_spaces()) +
                ", or a space file" + (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

}  // namespace hytas
