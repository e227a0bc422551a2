#pragma once
// onnxruntime through its C interface, loaded when the program runs.

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <memory>
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

// What the model says of the pixels of a tile: class ids, and the values of another output.
struct Answers {
    std::vector<std::int32_t> classes;
    std::vector<float> values;
};

// One thing that onnxruntime made; it is released with its handle.
template <typename Kind>
struct Release {
    void (*release)(Kind*);
    void operator()(Kind* one) const { release(one); }
};
template <typename Kind>
using Handle = std::unique_ptr<Kind, Release<Kind>>;

// The functions of a library. It stays open: onnxruntime runs code of its own when it is closed.
class Api {
  public:
    explicit Api(const std::string& library);

    const OrtApi* operator->() const { return api_; }
    [[nodiscard]] const std::string& version() const { return version_; }

    // Throws Error with the message of a call that failed.
    void check(OrtStatus* status) const;

    // What `call` makes of the arguments, by its last parameter.
    template <typename Kind, typename Call, typename... Arguments>
    [[nodiscard]] Handle<Kind> make(void (*release)(Kind*), Call call,
                                    Arguments... arguments) const {
        Kind* made = nullptr;
        check(call(arguments..., &made));
        return Handle<Kind>(made, {release});
    }

  private:
    const OrtApi* api_ = nullptr;
    std::string version_;
};

// A scene graph: a tile with its margin in, class ids out.
class SceneModel {
  public:
    // `bytes` is the content of the file `name`.
    SceneModel(const std::string& library, const std::string& name, const std::string& bytes,
               int threads);

    // Class ids, and the values of the output `values` ("confidence" or "probabilities").
    [[nodiscard]] Answers run(const Tile& tile, const char* values) const;

    // The release of onnxruntime.
    [[nodiscard]] const std::string& version() const { return api_.version(); }

  private:
    template <typename Value>
    [[nodiscard]] std::vector<Value> take(OrtValue* output, ONNXTensorElementDataType element,
                                          const char* what) const;

    Api api_;
    Handle<OrtEnv> environment_;
    Handle<OrtSession> session_;
    Handle<OrtMemoryInfo> memory_;
};

}  // namespace onboard
