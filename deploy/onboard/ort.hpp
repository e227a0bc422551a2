#pragma once
// onnxruntime through its C interface, loaded when the program runs.
//
// The interface is a table of function pointers to which versions only append, so the place of a
// function in it is fixed.

#include <cstdint>
#include <string>
#include <vector>

namespace onboard {

// Element types of a cube, by the numbers of ONNX's TensorProto, and their size in bytes.
struct ElementType {
    const char* name;  // as numpy calls it
    int onnx;
    int envi;
    std::size_t size;
};

const ElementType& element_type_of_name(const std::string& numpy);
const ElementType& element_type_of_envi(int code);

struct Tile {
    const void* data;
    const ElementType* type;
    std::int64_t rows, columns, bands;
};

// A scene graph: a tile with its margin in, class ids out.
class SceneModel {
  public:
    // `bytes` is the content of the file `name`.
    SceneModel(const std::string& library, const std::string& name, const std::string& bytes,
               int threads);
    ~SceneModel();
    SceneModel(const SceneModel&) = delete;
    SceneModel& operator=(const SceneModel&) = delete;

    // Class ids, and the values of the output `values` ("confidence" or "probabilities").
    std::vector<std::int32_t> run(const Tile& tile, const char* values,
                                  std::vector<float>& found) const;

  private:
    template <typename Value>
    std::vector<Value> take(void* output, int element) const;
    template <typename... Arguments>
    void call(std::size_t slot, Arguments... arguments) const;
    template <typename... Arguments>
    void release(std::size_t slot, Arguments... arguments) const;

    void* library_ = nullptr;
    void* const* api_ = nullptr;
    void* environment_ = nullptr;
    void* session_ = nullptr;
    void* memory_ = nullptr;
};

}  // namespace onboard
