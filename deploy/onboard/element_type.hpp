#pragma once

#include <cstddef>
#include <string>

namespace hytas::onboard {

// Types of a cube's values: as numpy, ONNX's TensorProto and ENVI name them, and their bytes.
struct ElementType {
    const char* name;
    int onnx;
    int envi;
    std::size_t size;
};

const ElementType& element_type_of_name(const std::string& numpy);
const ElementType& element_type_of_envi(int code);

}  // namespace hytas::onboard
