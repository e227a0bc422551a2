#include "graph.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "hytas/onboard.hpp"
#include "limits.hpp"
#include "protobuf.hpp"

namespace hytas::onboard {
namespace {

constexpr std::uint64_t int64_element = 7;

// The value of a key in a table of limits.hpp.
template <typename Table, typename Key>
auto found_in(const Table& table, const Key& key) {
    const auto entry = std::find_if(table.begin(), table.end(),
                                    [&](const auto& pair) { return pair.first == key; });
    return entry == table.end() ? std::nullopt : std::optional(entry->second);
}

[[noreturn]] void refuse(const std::string& rule) { throw Error(Status::model_unsupported, rule); }

std::string_view bytes_of(const Field& field) {
    if (field.is_number)
        throw Error(Status::model_damaged,
                    "is not an ONNX file (a protobuf field is a number; a message is needed)");
    return field.bytes;
}

// Values of a shape; as unsigned numbers, so that a negative size is a large one.
std::uint64_t count_of(const std::vector<std::uint64_t>& sizes) {
    std::uint64_t count = 1;
    for (const std::uint64_t size : sizes) {
        if (size > most_values || count * size > most_values)
            refuse("declares a shape of more than " + std::to_string(most_values) + " values");
        count *= size;
    }
    return count;
}

bool is_operator_of_hytas(std::string_view name) {
    return name.find(' ') == std::string_view::npos &&
           operators.find(" " + std::string(name) + " ") != std::string_view::npos;
}

struct Tensor {
    std::string_view name;
    // Its first values, where these are of 64 bits, as sizes are.
    std::vector<std::int64_t> numbers;
};

// Refuse a constant that asks for more values than any of hytas does.
void check_sizes(const Tensor& tensor) {
    std::uint64_t count = 1;
    for (const std::int64_t number : tensor.numbers) {
        const auto size = static_cast<std::uint64_t>(number);
        count *= std::clamp<std::uint64_t>(number < 0 ? 0 - size : size, 1, most_made + 1);
        if (count > most_made)
            refuse("makes more than " + std::to_string(most_made) + " values by a constant");
    }
}

// A walk over one file. Graphs wait in a list: a file may nest them as deeply as it likes.
class Check {
  public:
    explicit Check(std::uint64_t& left) : left_(left) {}

    Ends graph(std::string_view message) {
        const Ends ends = one(0, message);
        while (!waiting_.empty()) {
            const auto [depth, inner] = waiting_.back();
            waiting_.pop_back();
            one(depth, inner);
        }
        return ends;
    }

  private:
    Ends one(int depth, std::string_view message) {
        if (depth > most_depth)
            refuse("has graphs nested more than " + std::to_string(most_depth) + " deep");
        Ends ends;
        std::set<std::string_view> sizes;
        std::vector<Tensor> tensors;
        Fields fields(message, left_);
        while (const auto field = fields.next()) switch (field->number) {
                case 1: node(depth, bytes_of(*field), sizes); break;
                case 5: tensors.push_back(tensor(bytes_of(*field))); break;
                case 11: ends.inputs.push_back(end(bytes_of(*field))); break;
                case 12: ends.outputs.push_back(end(bytes_of(*field))); break;
                case 13: end(bytes_of(*field)); break;
                case 15: refuse("has sparse tensors, which hytas never writes");
            }
        for (const Tensor& found : tensors)
            if (sizes.contains(found.name)) check_sizes(found);
        return ends;
    }

    // Check a node, and keep the input that says how many values it makes.
    void node(int depth, std::string_view message, std::set<std::string_view>& sizes) {
        std::string_view kind, domain;
        std::vector<std::string_view> inputs;
        std::uint64_t outputs = 0;
        std::optional<std::uint64_t> parts;
        Fields fields(message, left_);
        while (const auto field = fields.next()) switch (field->number) {
                case 1: inputs.push_back(bytes_of(*field)); break;
                case 4: kind = bytes_of(*field); break;
                case 2: ++outputs; break;
                case 5:
                    if (const auto told = attribute(depth, bytes_of(*field))) parts = told;
                    break;
                case 7: domain = bytes_of(*field); break;
            }
        if (!domain.empty() && domain != "ai.onnx")
            refuse("uses an operator of another domain than ONNX's, whose operators hytas writes");
        if (!is_operator_of_hytas(kind)) refuse("uses an operator that hytas never writes");
        // onnxruntime takes memory for each part before it looks at the outputs.
        if (parts && *parts != outputs)
            refuse("makes more or fewer parts of a tensor than it has outputs");
        if (const auto place = found_in(makers, kind); place && *place < inputs.size())
            sizes.insert(inputs[*place]);
    }

    // Check an attribute; its value, if it is the number of outputs.
    std::optional<std::uint64_t> attribute(int depth, std::string_view message) {
        std::string_view name;
        std::uint64_t told = 0;
        Fields fields(message, left_);
        while (const auto field = fields.next()) switch (field->number) {
                case 1: name = bytes_of(*field); break;
                case 3: told = field->is_number ? field->value : 0; break;
                case 5:
                case 10: tensor(bytes_of(*field)); break;
                case 6:
                case 11: waiting_.emplace_back(depth + 1, bytes_of(*field)); break;
                case 22:
                case 23: refuse("has sparse tensors, which hytas never writes");
            }
        return name == "num_outputs" ? std::optional(told) : std::nullopt;
    }

    // The numbers of one entry of a repeated field, which may hold many of them packed.
    void numbers(const Field& field, std::vector<std::uint64_t>& into) {
        if (field.is_number) return into.push_back(field.value);
        Fields packed(field.bytes, left_);
        while (!packed.done()) {
            if (left_ == 0) refuse("has too many protobuf fields for a model");
            --left_;
            into.push_back(packed.varint());
        }
    }

    // A tensor whose values are all there, in the file.
    Tensor tensor(std::string_view message) {
        Tensor found;
        std::vector<std::uint64_t> sizes, typed;
        std::uint64_t element = 0, held = 0;
        std::optional<std::string_view> raw;
        Fields fields(message, left_);
        while (const auto field = fields.next()) {
            if (field->number == 1) numbers(*field, sizes);
            if (field->number == 2) element = field->value;
            if (field->number == 7) numbers(*field, typed);
            if (field->number == 8) found.name = bytes_of(*field);
            if (field->number == 9) raw = bytes_of(*field);
            if (field->number == 13 || (field->number == 14 && field->value != 0))
                refuse("keeps weights in another file; a model of hytas is one file");
            if (const auto least = found_in(typed_bytes, field->number))
                held += field->is_number ? 1 : field->bytes.size() / *least;
        }
        const auto size = found_in(element_bytes, element);
        if (!size)
            refuse("has a tensor of element type " + std::to_string(element) +
                   ", which hytas never writes");
        const std::uint64_t count = count_of(sizes);
        if (raw ? count * *size != raw->size() : count > held)
            refuse("has a tensor of " + std::to_string(count) +
                   " values that are not all there, or more");
        if (element == int64_element)
            found.numbers =
                raw ? from_raw(*raw) : std::vector<std::int64_t>(typed.begin(), typed.end());
        return found;
    }

    static std::vector<std::int64_t> from_raw(std::string_view raw) {
        std::vector<std::int64_t> values;
        for (std::size_t at = 0; at + 8 <= std::min(raw.size(), 8 * most_axes); at += 8) {
            std::uint64_t value = 0;
            for (std::size_t byte = 8; byte-- > 0;)
                value = value << 8 | static_cast<unsigned char>(raw[at + byte]);
            values.push_back(static_cast<std::int64_t>(value));
        }
        return values;
    }

    // A named value: its name, and its type and shape if it says them.
    End end(std::string_view message) {
        End found;
        Fields fields(message, left_);
        while (const auto field = fields.next()) {
            if (field->number == 1) found.name = bytes_of(*field);
            if (field->number != 2) continue;
            Fields kinds(bytes_of(*field), left_);
            while (const auto kind = kinds.next()) {
                if (kind->number != 1)
                    refuse("has a value that is no tensor, which hytas never writes");
                type(bytes_of(*kind), found);
            }
        }
        std::vector<std::uint64_t> known;
        for (const std::int64_t size : found.sizes)
            if (size != -1) known.push_back(static_cast<std::uint64_t>(size));
        count_of(known);
        return found;
    }

    void type(std::string_view message, End& into) {
        Fields fields(message, left_);
        while (const auto field = fields.next()) {
            if (field->number == 1) into.element = field->value;
            if (field->number != 2) continue;
            Fields dims(bytes_of(*field), left_);
            while (const auto dim = dims.next()) {
                std::int64_t size = -1;
                Fields inside(bytes_of(*dim), left_);
                while (const auto part = inside.next())
                    if (part->number == 1) {
                        count_of({part->value});  // -1 stands for any size, and is none
                        size = static_cast<std::int64_t>(part->value);
                    }
                into.sizes.push_back(size);
            }
        }
    }

    std::uint64_t& left_;
    std::vector<std::pair<int, std::string_view>> waiting_;
};

}  // namespace

Ends check_graph(std::string_view graph, std::uint64_t& left) { return Check(left).graph(graph); }

}  // namespace hytas::onboard
