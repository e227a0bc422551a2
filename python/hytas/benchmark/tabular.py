class Benchmark: pass
