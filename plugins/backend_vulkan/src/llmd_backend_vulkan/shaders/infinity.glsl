// The bits of minus infinity: Vulkan lets compilers assume that no number is infinite, so shaders only compare these.
const uint MINUS_INFINITY = 0xff800000u;
