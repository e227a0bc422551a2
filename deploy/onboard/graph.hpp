#pragma once
// The graph of an ONNX file: what it takes and gives, and that nothing in it is beyond bounds.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hytas::onboard {

// An input or output of the graph; a size of -1 is any.
struct End {
    std::string name;
    std::uint64_t element = 0;
    std::vector<std::int64_t> sizes;
};

struct Ends {
    std::vector<End> inputs, outputs;
};

// The ends of the main graph, once every node, tensor and shape in it, at any depth, was checked.
// `left` counts the protobuf fields of the file down. Throws Error, whose text goes on from the
// file's name.
Ends check_graph(std::string_view graph, std::uint64_t& left);

}  // namespace hytas::onboard
