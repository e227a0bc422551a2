#include "metadata.hpp"

#include <charconv>
#include <cstdlib>
#include <exception>

#include "hytas/onboard.hpp"
#include "utf8.hpp"

namespace hytas::onboard {
namespace {

// Controls and ends of lines as spaces, half of a surrogate pair as the replacement character, as
// `hytas.files.legible` has it.
std::string legible(const std::string& text) {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
        const std::string_view rest = std::string_view(text).substr(at);
        const auto byte = [&](std::size_t place) {
            return place < rest.size() ? static_cast<unsigned char>(rest[place]) : 0U;
        };
        const bool is_separator = rest.starts_with("\u2028") || rest.starts_with("\u2029");
        const bool is_surrogate = byte(0) == 0xED && byte(1) >= 0xA0;
        const bool is_wide_control = byte(0) == 0xC2 && byte(1) < 0xA0;
        const bool is_control = byte(0) < 0x20 || byte(0) == 0x7F;
        if (is_control || is_wide_control || is_separator) {
            result += ' ';
        } else if (is_surrogate) {
            result += "\uFFFD";
        } else {
            result += text[at];
        }
        at += is_separator || is_surrogate ? 3 : is_wide_control ? 2 : 1;
    }
    return result;
}

template <typename Value, typename Read>
void flatten(const Json& value, const std::string& key, const Read& read,
             std::vector<Value>& into) {
    if (!value.is(Json::Kind::array)) return into.push_back(read(value, key));
    for (const Json& item : value.items()) flatten(item, key, read, into);
}

}  // namespace

void broken(const std::string& rule) {
    throw Error(Status::model_unsupported, "model: its metadata are broken: " + rule);
}

std::string property(const SceneModel& model, const std::string& key) {
    const auto text = model.metadata("hytas." + key);
    if (!text)
        throw Error(Status::model_unsupported, "model: has no hytas metadata (hytas." + key +
                                                   "): it was not written by `hytas export`");
    if (!is_utf8(*text)) broken("they are not UTF-8");
    return *text;
}

Json value_of(const SceneModel& model, const std::string& key) {
    if (!model.metadata("hytas." + key)) return {};
    const std::string text = property(model, key);
    try {
        return Json::parse(text, key);
    } catch (const std::exception&) {
        broken("hytas." + key);
    }
}

const Json& member(const Json& object, const std::string& name, const std::string& key) {
    const Json* value = object.find(name);
    if (value == nullptr) broken("hytas." + key);
    return *value;
}

double number(const Json& value, const std::string& key) {
    if (!value.is(Json::Kind::number)) broken("hytas." + key);
    return std::strtod(value.text().c_str(), nullptr);
}

std::int64_t integer(const Json& value, const std::string& key) {
    const std::string& text = value.text();
    std::int64_t result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (!value.is(Json::Kind::number) || error != std::errc() || end != text.data() + text.size())
        broken("hytas." + key);
    return result;
}

std::vector<double> numbers(const Json& value, const std::string& key) {
    std::vector<double> values;
    flatten(
        value, key, [](const Json& item, const std::string& name) { return number(item, name); },
        values);
    return values;
}

std::vector<std::int64_t> integers(const Json& value, const std::string& key) {
    std::vector<std::int64_t> values;
    flatten(
        value, key, [](const Json& item, const std::string& name) { return integer(item, name); },
        values);
    return values;
}

std::vector<std::string> texts(const Json& value, const std::string& key) {
    const auto text = [](const Json& item, const std::string& name) {
        if (!item.is(Json::Kind::string)) broken("hytas." + name);
        return legible(item.text());
    };
    std::vector<std::string> values;
    flatten(value, key, text, values);
    return values;
}

}  // namespace hytas::onboard
