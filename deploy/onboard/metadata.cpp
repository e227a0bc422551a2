#include "metadata.hpp"

#include <charconv>
#include <cstdlib>

#include "error.hpp"

namespace onboard {
namespace {

[[noreturn]] void broken(const std::string& key) {
    throw Error("model: its metadata are broken: hytas." + key);
}

void append_utf8(std::string& text, unsigned code) {
    // As `hytas classify` has it: controls and ends of lines are spaces, half a character is the
    // mark for what is none.
    if (code < 0x20 || (code >= 0x7F && code < 0xA0) || code == 0x2028 || code == 0x2029)
        code = ' ';
    if (code >= 0xD800 && code < 0xE000) code = 0xFFFD;
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xC0 | (code >> 6));
        text += static_cast<char>(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        text += static_cast<char>(0xE0 | (code >> 12));
        text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        text += static_cast<char>(0x80 | (code & 0x3F));
    } else {
        text += static_cast<char>(0xF0 | (code >> 18));
        text += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
        text += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
        text += static_cast<char>(0x80 | (code & 0x3F));
    }
}

unsigned hexadecimal(const std::string& json, std::size_t at, const std::string& key) {
    unsigned code = 0;
    if (at + 4 > json.size()) broken(key);
    const auto [end, error] = std::from_chars(json.data() + at, json.data() + at + 4, code, 16);
    if (error != std::errc() || end != json.data() + at + 4) broken(key);
    return code;
}

// Read an escape whose backslash is at `at`; returns the place of its last character.
std::size_t escape(const std::string& json, std::size_t at, std::string& text,
                   const std::string& key) {
    if (++at >= json.size()) broken(key);
    const std::string letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (const auto found = letters.find(json[at]); found != std::string::npos) {
        append_utf8(text, static_cast<unsigned char>(meanings[found]));
        return at;
    }
    if (json[at] != 'u') broken(key);
    unsigned code = hexadecimal(json, at + 1, key);
    at += 4;
    if (code >= 0xD800 && code < 0xDC00 &&
        json.compare(at + 1, 2, "\\u") == 0) {  // a pair of surrogates
        const unsigned low = hexadecimal(json, at + 3, key);
        if (low >= 0xDC00 && low < 0xE000) {
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
            at += 6;
        }
    }
    append_utf8(text, code);
    return at;
}

}  // namespace

std::vector<std::int64_t> parse_integers(const std::string& json, const std::string& key) {
    std::vector<std::int64_t> values;
    for (std::size_t at = 0; at < json.size();) {
        const char letter = json[at];
        if (letter == '[' || letter == ']' || letter == ',' || letter == ' ') {
            ++at;
            continue;
        }
        std::int64_t value = 0;
        const auto [end, error] =
            std::from_chars(json.data() + at, json.data() + json.size(), value);
        if (error != std::errc()) broken(key);
        values.push_back(value);
        at = static_cast<std::size_t>(end - json.data());
    }
    return values;
}

std::vector<double> parse_numbers(const std::string& json, const std::string& key) {
    std::vector<double> values;
    for (std::size_t at = 0; at < json.size();) {
        const char letter = json[at];
        if (letter == '[' || letter == ']' || letter == ',' || letter == ' ') {
            ++at;
            continue;
        }
        char* end = nullptr;
        values.push_back(std::strtod(json.c_str() + at, &end));
        if (end == json.c_str() + at) broken(key);
        at = static_cast<std::size_t>(end - json.c_str());
    }
    return values;
}

std::string parse_member(const std::string& json, const std::string& name, const std::string& key) {
    int depth = 0;
    std::size_t value = 0;  // where the member's text begins
    for (std::size_t at = 0; at < json.size(); ++at) {
        const char letter = json[at];
        if (letter == '"') {
            const std::size_t first = ++at;
            while (at < json.size() && json[at] != '"') at += json[at] == '\\' ? 2 : 1;
            if (at >= json.size()) broken(key);
            const std::size_t colon = json.find_first_not_of(' ', at + 1);
            if (depth == 1 && value == 0 && json.compare(first, at - first, name) == 0 &&
                colon != std::string::npos && json[colon] == ':') {
                value = json.find_first_not_of(' ', colon + 1);
                if (value == std::string::npos) broken(key);
                at = colon;
            }
            continue;
        }
        const bool closes = letter == '}' || letter == ']';
        if (value != 0 && depth == 1 && (letter == ',' || closes))
            return json.substr(value, at - value);
        depth += letter == '{' || letter == '[' ? 1 : closes ? -1 : 0;
    }
    broken(key);
}

double parse_number(const std::string& json, const std::string& key) {
    char* end = nullptr;
    const double value = std::strtod(json.c_str(), &end);
    if (json.empty() || *end != '\0') broken(key);
    return value;
}

std::int64_t parse_integer(const std::string& json, const std::string& key) {
    const std::vector<std::int64_t> values = parse_integers(json, key);
    if (values.size() != 1) broken(key);
    return values.front();
}

std::vector<std::string> parse_strings(const std::string& json, const std::string& key) {
    std::vector<std::string> values;
    for (std::size_t at = json.find('"'); at != std::string::npos; at = json.find('"', at + 1)) {
        std::string text;
        for (++at; at < json.size() && json[at] != '"'; ++at) {
            if (static_cast<unsigned char>(json[at]) < 0x20) broken(key);
            if (json[at] == '\\')
                at = escape(json, at, text, key);
            else
                text += json[at];
        }
        if (at >= json.size()) broken(key);
        values.push_back(text);
    }
    return values;
}

}  // namespace onboard
