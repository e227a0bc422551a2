"""The operators that a model of hytas may have; the program on board holds the same list."""

OPERATORS = frozenset(
    b"""
    Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast CastLike Clip Concat
    Constant ConstantOfShape Conv DequantizeLinear Div DynamicQuantizeLinear Equal Erf Exp
    Expand Flatten Gather GatherElements GatherND Gelu Gemm GlobalAveragePool Greater
    GreaterOrEqual HardSigmoid HardSwish Identity InstanceNormalization IsInf IsNaN
    LayerNormalization Less LessOrEqual Log LogSoftmax Loop MatMul MatMulInteger Max Min Mod
    Mul Neg Not Or Pad Pow QuantizeLinear RMSNormalization Range Reciprocal ReduceL2
    ReduceMax ReduceMean ReduceMin ReduceSum ReduceSumSquare Relu Reshape Round Shape
    Sigmoid Sign Slice Softmax Split Sqrt Squeeze Sub Sum Swish Tanh Tile Transpose
    Unsqueeze Where
    """.split()
)
"""Operators that the exporter writes, and arithmetic that another version of it may write. There
are no branches, no random numbers and no access to files."""
