#include <hytas/json.hpp>

#include "hytas/onboard.hpp"
#include "utf8.hpp"

namespace hytas::onboard {

const char* name_of(Status status) {
    switch (status) {
#define HYTAS_ONBOARD_NAME(number, name, meaning) \
    case Status::name: return #name;
        HYTAS_ONBOARD_STATUSES(HYTAS_ONBOARD_NAME)
#undef HYTAS_ONBOARD_NAME
    }
    return "failed";
}

bool is_utf8(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto lead = static_cast<unsigned char>(text[at++]);
        if (lead < 0x80) continue;
        const int more = lead >= 0xC2 && lead < 0xE0   ? 1
                         : lead >= 0xE0 && lead < 0xF0 ? 2
                         : lead >= 0xF0 && lead < 0xF5 ? 3
                                                       : 0;
        if (more == 0 || text.size() - at < static_cast<std::size_t>(more)) return false;
        unsigned code = lead & (0x3Fu >> more);
        for (int step = 0; step < more; ++step) {
            const auto next = static_cast<unsigned char>(text[at++]);
            if ((next & 0xC0) != 0x80) return false;
            code = code << 6 | (next & 0x3Fu);
        }
        if ((more == 2 && (code < 0x800 || (code >= 0xD800 && code < 0xE000))) ||
            (more == 3 && (code < 0x10000 || code > 0x10FFFF)))
            return false;
    }
    return true;
}

std::string one_line(std::string text) {
    const bool is_text = is_utf8(text);
    for (char& letter : text) {
        const auto byte = static_cast<unsigned char>(letter);
        if (byte < 0x20 || byte == 0x7F) letter = ' ';
        if (byte >= 0x80 && !is_text) letter = '?';
    }
    return text;
}

std::string telemetry(Status status, const std::string& message,
                      const std::vector<std::string>& notes, const Numbers& numbers) {
    std::vector<Json> lines;
    for (const std::string& note : notes) lines.push_back(Json::string(one_line(note)));
    Json::Members members{{"status", Json::number(std::to_string(static_cast<int>(status)))},
                          {"name", Json::string(name_of(status))},
                          {"message", Json::string(one_line(message))},
                          {"notes", Json::array(lines)}};
    for (const auto& [name, value] : numbers)
        members.emplace_back(name, Json::number(std::to_string(value)));
    return Json::object(members).dump();
}

}  // namespace hytas::onboard
