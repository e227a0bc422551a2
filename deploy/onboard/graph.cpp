#include "graph.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>

#include "error.hpp"
#include "protobuf.hpp"

namespace onboard {
namespace {

constexpr int most_depth = 4;
constexpr std::uint64_t most_values = std::uint64_t{1} << 27;
constexpr std::uint64_t most_made = std::uint64_t{1} << 20;
constexpr std::size_t most_axes = 64;
constexpr std::uint64_t int64_element = 7;
const std::map<std::uint64_t, std::uint64_t> element_bytes{{1, 4},  {2, 1},  {3, 1},  {4, 2},
                                                           {5, 2},  {6, 4},  {7, 8},  {9, 1},
                                                           {10, 2}, {11, 8}, {12, 4}, {13, 8}};
// The fields of a tensor that hold values by their type: the fewest bytes that one takes there.
const std::map<std::uint64_t, std::uint64_t> typed_bytes{{4, 4}, {5, 1}, {7, 1}, {10, 8}, {11, 1}};
// Operators that make as many values as an input says, and the number of that input.
const std::map<std::string_view, std::size_t> makers{
    {"ConstantOfShape", 0}, {"Expand", 1}, {"Loop", 0}, {"Pad", 1}, {"Range", 1}, {"Tile", 1}};

constexpr std::array<std::string_view, 82> operators{"Abs",
                                                     "Add",
                                                     "And",
                                                     "ArgMax",
                                                     "ArgMin",
                                                     "AveragePool",
                                                     "BatchNormalization",
                                                     "Cast",
                                                     "CastLike",
                                                     "Clip",
                                                     "Concat",
                                                     "Constant",
                                                     "ConstantOfShape",
                                                     "Conv",
                                                     "DequantizeLinear",
                                                     "Div",
                                                     "DynamicQuantizeLinear",
                                                     "Equal",
                                                     "Erf",
                                                     "Exp",
                                                     "Expand",
                                                     "Flatten",
                                                     "Gather",
                                                     "GatherElements",
                                                     "GatherND",
                                                     "Gelu",
                                                     "Gemm",
                                                     "GlobalAveragePool",
                                                     "Greater",
                                                     "GreaterOrEqual",
                                                     "HardSigmoid",
                                                     "HardSwish",
                                                     "Identity",
                                                     "InstanceNormalization",
                                                     "IsInf",
                                                     "IsNaN",
                                                     "LayerNormalization",
                                                     "Less",
                                                     "LessOrEqual",
                                                     "Log",
                                                     "LogSoftmax",
                                                     "Loop",
                                                     "MatMul",
                                                     "MatMulInteger",
                                                     "Max",
                                                     "Min",
                                                     "Mod",
                                                     "Mul",
                                                     "Neg",
                                                     "Not",
                                                     "Or",
                                                     "Pad",
                                                     "Pow",
                                                     "QuantizeLinear",
                                                     "RMSNormalization",
                                                     "Range",
                                                     "Reciprocal",
                                                     "ReduceL2",
                                                     "ReduceMax",
                                                     "ReduceMean",
                                                     "ReduceMin",
                                                     "ReduceSum",
                                                     "ReduceSumSquare",
                                                     "Relu",
                                                     "Reshape",
                                                     "Round",
                                                     "Shape",
                                                     "Sigmoid",
                                                     "Sign",
                                                     "Slice",
                                                     "Softmax",
                                                     "Split",
                                                     "Sqrt",
                                                     "Squeeze",
                                                     "Sub",
                                                     "Sum",
                                                     "Swish",
                                                     "Tanh",
                                                     "Tile",
                                                     "Transpose",
                                                     "Unsqueeze",
                                                     "Where"};

std::string_view bytes_of(const Field& field) {
    if (field.is_number)
        throw Error("is not an ONNX file (a protobuf field is a number; a message is needed)");
    return field.bytes;
}

// Values of a shape; as unsigned numbers, so that a negative size is a large one.
std::uint64_t count_of(const std::vector<std::uint64_t>& sizes) {
    std::uint64_t count = 1;
    for (const std::uint64_t size : sizes) {
        if (size > most_values || count * size > most_values)
            throw Error("declares a shape of more than " + std::to_string(most_values) + " values");
        count *= size;
    }
    return count;
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
            throw Error("makes more than " + std::to_string(most_made) + " values by a constant");
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
            throw Error("has graphs nested more than " + std::to_string(most_depth) + " deep");
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
                case 15: throw Error("has sparse tensors, which hytas never writes");
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
            throw Error(
                "uses an operator of another domain than ONNX's, whose operators hytas writes");
        if (!is_operator_of_hytas(kind)) throw Error("uses an operator that hytas never writes");
        // onnxruntime takes memory for each part before it looks at the outputs.
        if (parts && *parts != outputs)
            throw Error("makes more or fewer parts of a tensor than it has outputs");
        if (const auto maker = makers.find(kind);
            maker != makers.end() && maker->second < inputs.size())
            sizes.insert(inputs[maker->second]);
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
                case 23: throw Error("has sparse tensors, which hytas never writes");
            }
        return name == "num_outputs" ? std::optional(told) : std::nullopt;
    }

    // The numbers of one entry of a repeated field, which may hold many of them packed.
    void numbers(const Field& field, std::vector<std::uint64_t>& into) {
        if (field.is_number) return into.push_back(field.value);
        Fields packed(field.bytes, left_);
        while (!packed.done()) {
            if (left_ == 0) throw Error("has too many protobuf fields for a model");
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
                throw Error("keeps weights in another file; a model of hytas is one file");
            if (const auto least = typed_bytes.find(field->number); least != typed_bytes.end())
                held += field->is_number ? 1 : field->bytes.size() / least->second;
        }
        const auto size = element_bytes.find(element);
        if (size == element_bytes.end())
            throw Error("has a tensor of element type " + std::to_string(element) +
                        ", which hytas never writes");
        const std::uint64_t count = count_of(sizes);
        if (raw ? count * size->second != raw->size() : count > held)
            throw Error("has a tensor of " + std::to_string(count) +
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
                    throw Error("has a value that is no tensor, which hytas never writes");
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

bool is_operator_of_hytas(std::string_view name) {
    return std::find(operators.begin(), operators.end(), name) != operators.end();
}

Ends check_graph(std::string_view graph, std::uint64_t& left) { return Check(left).graph(graph); }

}  // namespace onboard
